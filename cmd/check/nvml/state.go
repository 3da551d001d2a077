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
	Persistence, MIG, ECC Switch
	ECCPending            Switch // after the next reboot

	// Errors of memory that ECC found: since the driver was loaded, and in the GPU's life.
	Corrected, Uncorrected, UncorrectedEver int64

	Rows      Repairs // of memory that were replaced by spare ones, since the A100
	NoSpare   Switch  // there was no spare row left
	Pages     Repairs // of memory that are no longer used, before the A100
	Slowed    Reasons
	SM, SMMax int // clocks in MHz
	Degrees   int // of the chip, Celsius
	Limit     int // degrees at which it slows down
	PCIe      PCIe
	Links     []NVLink
}

// Repairs are parts of memory that were taken out of use.
type Repairs struct {
	Corrected, Uncorrected int    // because of errors that were corrected, and that were not
	Pending                Switch // one waits for the next reset
}

// PCIe is the GPU's link to its host. The generation falls when the GPU rests, the width does not.
type PCIe struct {
	Generation, GenerationMax int // that GPU and slot have
	Width, WidthMax           int // lanes
	Replays                   int
}

// An NVLink is one of a GPU's links. Its errors, all of which it has repaired, count since the driver was loaded.
type NVLink struct {
	Active   bool
	Switch   bool  // at the other end
	Recovery int64 // times that it was trained anew
	Errors   int64 // replays, and errors of CRC
}

// Reasons say why a GPU's clocks are lower than they could be, a bit each.
type Reasons uint64

// Reasons that are a fault. Others are that the GPU rests, or that a user has set its clocks or power.
const (
	HWSlowdown Reasons = 0x8
	SWThermal  Reasons = 0x20
	HWThermal  Reasons = 0x40
	PowerBrake Reasons = 0x80
)

func (r Reasons) String() string {
	var names []string
	for _, n := range []struct {
		r    Reasons
		name string
	}{{HWSlowdown, "hardware slowdown"}, {SWThermal, "too hot"}, {HWThermal, "much too hot"},
		{PowerBrake, "power brake"}} {
		if r&n.r != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ", ")
}

// State asks a GPU for all fields, in a few milliseconds. It is an error if the GPU is lost or needs a reset.
func (l *Library) State(d Device) (State, error) {
	a := &asker{l: l, d: uintptr(d)}
	s := State{
		Persistence:     onOff(a.int("nvmlDeviceGetPersistenceMode")),
		Corrected:       a.long("nvmlDeviceGetTotalEccErrors", 0, 0),
		Uncorrected:     a.long("nvmlDeviceGetTotalEccErrors", 1, 0),
		UncorrectedEver: a.long("nvmlDeviceGetTotalEccErrors", 1, 1),
		SM:              a.int("nvmlDeviceGetClockInfo", 1), SMMax: a.int("nvmlDeviceGetMaxClockInfo", 1),
		Degrees: a.int("nvmlDeviceGetTemperature", 0), Limit: a.int("nvmlDeviceGetTemperatureThreshold", 1),
		PCIe: PCIe{a.int("nvmlDeviceGetCurrPcieLinkGeneration"), a.int("nvmlDeviceGetMaxPcieLinkGeneration"),
			a.int("nvmlDeviceGetCurrPcieLinkWidth"), a.int("nvmlDeviceGetMaxPcieLinkWidth"),
			a.int("nvmlDeviceGetPcieReplayCounter")},
		Pages: Repairs{a.pages(0), a.pages(1), onOff(a.int("nvmlDeviceGetRetiredPagesPendingStatus"))},
		Links: a.links(),
	}
	s.MIG = onOff(a.ints("nvmlDeviceGetMigMode", 2)[0])
	ecc := a.ints("nvmlDeviceGetEccMode", 2)
	s.ECC, s.ECCPending = onOff(ecc[0]), onOff(ecc[1])
	rows := a.ints("nvmlDeviceGetRemappedRows", 4)
	s.Rows, s.NoSpare = Repairs{rows[0], rows[1], onOff(rows[2])}, onOff(rows[3])
	reasons := "nvmlDeviceGetCurrentClocksEventReasons"
	if _, ok := l.function(reasons); !ok { // before R535
		reasons = "nvmlDeviceGetCurrentClocksThrottleReasons"
	}
	s.Slowed = Reasons(max(0, a.long(reasons)))
	return s, a.lost
}

// An asker asks a GPU, and notes if that is lost.
type asker struct {
	l    *Library
	d    uintptr
	lost error
}

// ask calls a function.
func (a *asker) ask(name string, args ...uintptr) error {
	err := a.l.call(name, append([]uintptr{a.d}, args...)...)
	if errors.Is(err, ErrGPUIsLost) || errors.Is(err, ErrResetRequired) {
		a.lost = err
	}
	return err
}

// int is a number of 32 bits, the last argument; -1 without an answer.
func (a *asker) int(name string, args ...uintptr) int {
	v := new(uint32)
	if a.ask(name, append(args, addressOf(v))...) != nil {
		return -1
	}
	return int(*v)
}

func (a *asker) long(name string, args ...uintptr) int64 {
	v := new(uint64)
	if a.ask(name, append(args, addressOf(v))...) != nil {
		return -1
	}
	return int64(*v)
}

// ints are n numbers, one by each argument.
func (a *asker) ints(name string, n int) []int {
	v, at, list := new([4]uint32), make([]uintptr, n), make([]int, n)
	for i := range at {
		at[i] = addressOf(&v[i])
	}
	err := a.ask(name, at...)
	for i := range list {
		if list[i] = -1; err == nil {
			list[i] = int(v[i])
		}
	}
	return list
}

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

// pages is how many pages were retired for a cause.
func (a *asker) pages(cause uintptr) int {
	n := new(uint32) // 0 addresses fit: the call only sets the count, and fails with errInsufficientSize
	err := a.ask("nvmlDeviceGetRetiredPages", cause, addressOf(n), 0)
	if err != nil && !errors.Is(err, errInsufficientSize) {
		return -1
	}
	return int(*n)
}

// maxLinks is how many NVLinks a GPU may have: NVML_NVLINK_MAX_LINKS.
const maxLinks = 36

// links are the links of the GPU. The list ends at the first index that NVML does not know.
func (a *asker) links() (list []NVLink) {
	for i := range uintptr(maxLinks) {
		active := a.int("nvmlDeviceGetNvLinkState", i)
		if active < 0 {
			break
		}
		link := NVLink{Active: active != 0}
		if link.Active {
			const isSwitch = 2
			link.Switch = a.int("nvmlDeviceGetNvLinkRemoteDeviceType", i) == isSwitch
			count := func(kind uintptr) int64 { return max(0, a.long("nvmlDeviceGetNvLinkErrorCounter", i, kind)) }
			link.Recovery, link.Errors = count(1), count(0)+count(2)+count(3)
		}
		list = append(list, link)
	}
	return list
}
