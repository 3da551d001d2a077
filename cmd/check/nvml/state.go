package nvml

import (
	"errors"
	"strings"
)

// A Switch is on, off, or unknown.
type Switch int8

const (
	Unknown Switch = iota
	Off
	On
)

func (s Switch) String() string { return [...]string{"unknown", "off", "on"}[s] }

// A State is the health of a GPU. Numbers are -1 where the GPU did not say.
type State struct {
	Name string `json:"name"`
	UUID string `json:"uuid"`
	PCI  string `json:"pci"` // "0000:1b:00.0", as the CUDA driver has it

	Persistence Switch `json:"persistence"`
	MIG         Switch `json:"mig"`
	ECC         Switch `json:"ecc"`
	ECCPending  Switch `json:"ecc_pending"` // after the next reboot

	// Errors of memory that ECC found: since the driver was loaded, and in the GPU's life.
	Now  Counts `json:"ecc_now"`
	Life Counts `json:"ecc_life"`

	Rows    Rows     `json:"rows"`
	Pages   Pages    `json:"pages"`
	Slowed  Reasons  `json:"slowed"`
	Clocks  Clocks   `json:"clocks"`
	Degrees int      `json:"degrees"` // of the chip, Celsius
	Limit   int      `json:"limit"`   // degrees at which it slows down
	PCIe    PCIe     `json:"pcie"`
	Links   []NVLink `json:"nvlinks,omitempty"`

	Unanswered []string `json:"unanswered,omitempty"` // calls that failed, and why
}

// Counts are errors of memory.
type Counts struct {
	Corrected   int64 `json:"corrected"`
	Uncorrected int64 `json:"uncorrected"`
}

// Rows are rows of memory that were replaced by spare ones, since the A100.
type Rows struct {
	Corrected   int    `json:"corrected"` // because of errors that were corrected
	Uncorrected int    `json:"uncorrected"`
	Pending     Switch `json:"pending"` // a row will be replaced at the next reset
	Failed      Switch `json:"failed"`  // there was no spare row left
}

// Pages are pages of memory that are no longer used, before the A100.
type Pages struct {
	Corrected   int    `json:"corrected"`
	Uncorrected int    `json:"uncorrected"`
	Pending     Switch `json:"pending"`
}

// Clocks are in MHz.
type Clocks struct {
	SM        int `json:"sm"`
	SMMax     int `json:"sm_max"`
	Memory    int `json:"memory"`
	MemoryMax int `json:"memory_max"`
}

// PCIe is the GPU's link to its host. The generation falls when the GPU rests, the width does not.
type PCIe struct {
	Generation    int   `json:"generation"`
	GenerationMax int   `json:"generation_max"` // that GPU and slot have
	Width         int   `json:"width"`          // lanes
	WidthMax      int   `json:"width_max"`
	Replays       int64 `json:"replays"`
}

// An NVLink is one of a GPU's links.
type NVLink struct {
	Active  bool   `json:"active"`
	Version int    `json:"version"`          // of the GPU's interface, not of NVLink: the driver's number
	Remote  string `json:"remote,omitempty"` // PCI address of the device at the other end
	Kind    string `json:"kind,omitempty"`   // of that device: "gpu", "switch"
	Errors  Errors `json:"errors"`
}

// Errors count a link's errors since the driver was loaded, all of which it has repaired.
type Errors struct {
	Replay   int64 `json:"replay"`
	Recovery int64 `json:"recovery"` // times that it was trained anew
	CRCFlit  int64 `json:"crc_flit"`
	CRCData  int64 `json:"crc_data"`
}

// Reasons say why a GPU's clocks are lower than they could be, a bit each.
type Reasons uint64

const (
	Idle         Reasons = 0x1
	UserClocks   Reasons = 0x2
	PowerCap     Reasons = 0x4
	HWSlowdown   Reasons = 0x8
	SyncBoost    Reasons = 0x10
	SWThermal    Reasons = 0x20
	HWThermal    Reasons = 0x40
	PowerBrake   Reasons = 0x80
	DisplayClock Reasons = 0x100
)

var reasonNames = []struct {
	r    Reasons
	name string
}{
	{Idle, "idle"}, {UserClocks, "clocks set by the user"}, {PowerCap, "power cap"}, {HWSlowdown, "hardware slowdown"},
	{SyncBoost, "sync boost"},
	{SWThermal, "too hot"}, {HWThermal, "much too hot"}, {PowerBrake, "power brake"}, {DisplayClock, "display clock"},
}

func (r Reasons) String() string {
	var names []string
	for _, n := range reasonNames {
		if r&n.r != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ", ")
}

// State asks a GPU for all fields, in a few milliseconds. It is an error if the GPU is lost or
// needs a reset; any other call that fails is noted in State.Unanswered.
func (l *Library) State(d Device) (State, error) {
	a := &asker{l: l, d: uintptr(d)}
	s := State{
		Name: a.text("nvmlDeviceGetName"), UUID: a.text("nvmlDeviceGetUUID"), PCI: a.pci("nvmlDeviceGetPciInfo_v3"),
		Persistence: a.onOff("nvmlDeviceGetPersistenceMode"),
		Now:         Counts{a.long("nvmlDeviceGetTotalEccErrors", 0, 0), a.long("nvmlDeviceGetTotalEccErrors", 1, 0)},
		Life:        Counts{a.long("nvmlDeviceGetTotalEccErrors", 0, 1), a.long("nvmlDeviceGetTotalEccErrors", 1, 1)},
		Clocks: Clocks{a.int("nvmlDeviceGetClockInfo", 1), a.int("nvmlDeviceGetMaxClockInfo", 1),
			a.int("nvmlDeviceGetClockInfo", 2), a.int("nvmlDeviceGetMaxClockInfo", 2)},
		Degrees: a.int("nvmlDeviceGetTemperature", 0), Limit: a.int("nvmlDeviceGetTemperatureThreshold", 1),
		PCIe: PCIe{a.int("nvmlDeviceGetCurrPcieLinkGeneration"), a.int("nvmlDeviceGetMaxPcieLinkGeneration"),
			a.int("nvmlDeviceGetCurrPcieLinkWidth"), a.int("nvmlDeviceGetMaxPcieLinkWidth"),
			int64(a.int("nvmlDeviceGetPcieReplayCounter"))},
		Slowed: a.reasons(), Rows: a.rows(), Pages: a.pages(),
	}
	s.MIG, _ = a.switches("nvmlDeviceGetMigMode")
	s.ECC, s.ECCPending = a.switches("nvmlDeviceGetEccMode")
	s.Links = a.links()
	s.Unanswered = a.unanswered
	return s, a.lost
}

// An asker asks a GPU, and notes the calls that fail.
type asker struct {
	l          *Library
	d          uintptr
	unanswered []string
	lost       error
}

// ask calls a function. It is false if there is no answer.
func (a *asker) ask(name string, args ...uintptr) bool {
	return a.answered(a.l.call(name, append([]uintptr{a.d}, args...)...))
}

// answered keeps the error of a call.
func (a *asker) answered(err error) bool {
	if errors.Is(err, ErrGPUIsLost) || errors.Is(err, ErrResetRequired) {
		a.lost = err
	}
	if err != nil {
		a.unanswered = append(a.unanswered, err.Error())
	}
	return err == nil
}

func (a *asker) text(name string) string {
	s, err := a.l.text(name, a.d)
	a.answered(err)
	return s
}

// int is a number of 32 bits, the last argument.
func (a *asker) int(name string, args ...uintptr) int {
	v := new(uint32)
	if !a.ask(name, append(args, addressOf(v))...) {
		return -1
	}
	return int(*v)
}

func (a *asker) long(name string, args ...uintptr) int64 {
	v := new(uint64)
	if !a.ask(name, append(args, addressOf(v))...) {
		return -1
	}
	return int64(*v)
}

func (a *asker) onOff(name string, args ...uintptr) Switch { return onOff(a.int(name, args...)) }

// onOff reads an nvmlEnableState_t, or the -1 of no answer.
func onOff(v int) Switch {
	switch v {
	case -1:
		return Unknown
	case 0:
		return Off
	}
	return On
}

// switches are the state now and the one that is pending.
func (a *asker) switches(name string) (now, pending Switch) {
	v := new([2]uint32)
	if !a.ask(name, addressOf(&v[0]), addressOf(&v[1])) {
		return Unknown, Unknown
	}
	return onOff(int(v[0])), onOff(int(v[1]))
}

func (a *asker) rows() Rows {
	v := new([4]uint32)
	if !a.ask("nvmlDeviceGetRemappedRows", addressOf(&v[0]), addressOf(&v[1]), addressOf(&v[2]), addressOf(&v[3])) {
		return Rows{Corrected: -1, Uncorrected: -1}
	}
	return Rows{int(v[0]), int(v[1]), onOff(int(v[2])), onOff(int(v[3]))}
}

func (a *asker) pages() Pages {
	count := func(cause uintptr) int {
		n := new(uint32) // 0 addresses fit: the call only sets the count, and fails with errInsufficientSize
		err := a.l.call("nvmlDeviceGetRetiredPages", a.d, cause, addressOf(n), 0)
		if !errors.Is(err, errInsufficientSize) && !a.answered(err) {
			return -1
		}
		return int(*n)
	}
	return Pages{count(0), count(1), a.onOff("nvmlDeviceGetRetiredPagesPendingStatus")}
}

// reasons asks by the function's name since R535, or else by its older name.
func (a *asker) reasons() Reasons {
	name := "nvmlDeviceGetCurrentClocksEventReasons"
	if _, ok := a.l.function(name); !ok {
		name = "nvmlDeviceGetCurrentClocksThrottleReasons"
	}
	return Reasons(max(0, a.long(name)))
}
