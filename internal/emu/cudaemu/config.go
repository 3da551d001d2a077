package cudaemu

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Config describes the machine to emulate. The zero value is one device with all
// that this package models.
type Config struct {
	Devices int      // number of equal devices; 1 if zero; ignored if Shapes is set
	Shapes  []Device // each device by itself
	// Visible are the devices that programs see, as with CUDA_VISIBLE_DEVICES: they know them as 0, 1 and so on.
	// Memory of the others may be opened all the same. Nil: all. Faults and the fields below number all devices.
	Visible []int

	// Peers says whether kernels of device a may be given access to memory of
	// device b. Nil: all pairs.
	Peers func(a, b int) bool
	// Link is what joins devices a and b where there is access. Nil: cuda.NVLink, which
	// carries lines of 128 bytes whole; others tear them (see weakmem.Config.Lines).
	Link func(a, b int) cuda.Link
	// Tears says whether the link is broken and tears the lines that device a stores to b, whatever Link is. It
	// shows only if the machine is not Plain. Nil: no link is.
	Tears func(a, b int) bool
	// Speed gives events a clock that is computed, not measured: its result is how fast bytes go from one device's
	// memory to another device, or within one, where both are the same. Host stands for the host. Nil: events
	// measure the emulator. Kernels run several times slower with it.
	Speed func(from, to int) Speed

	// DriverVersion is the answer of DriverGetVersion, 13000 if zero. Newer functions
	// return cuda.ErrNotFound, newer PTX is refused.
	DriverVersion int

	// Seed decides every choice: the warp that runs, the time at which a store becomes
	// visible, the order of independent copies.
	Seed uint64
	// Plain makes stores visible at once and checks addresses alone: several times faster.
	Plain bool
	// Book, if set, is where the decisions of kernels and streams that differ from the plain order are written down, or
	// looked up in place of the seed. What it is told of has the lines of PTX, not of the source: see Sources.
	Book *decision.Book
	// Lazy lets work advance only inside calls that wait or query, on the caller's
	// goroutine. So a program with one goroutine runs the same way for the same seed.
	// Otherwise a goroutine of the machine advances the work.
	Lazy bool

	// Stall is how long kernels may run without changing anything, while nothing
	// else can happen either, before they are reported as a deadlock and
	// stopped. Zero: 10 s; negative: never. If Lazy, StallInstructions alone decides.
	Stall time.Duration
	// StallInstructions is how many thread-instructions such kernels run after Stall, or in
	// all if Lazy. Zero: 100,000, or 2 million if Lazy.
	StallInstructions int

	// Caller says who makes the call under way on this thread, about a device or -1. It is asked where something is
	// made or launched. Nil: the program makes all calls, and its lines are not known.
	Caller func(device int) Caller

	// Report is called with each fault when it is found; Reports lists them too. If it
	// returns false a race or a read of unwritten memory ends the kernel, as a bad
	// address always does. It runs within the driver and must not call the driver.
	Report func(*weakmem.Fault) (goOn bool)

	// Launched is called with the name of each kernel that begins, and with those of its instructions and functions whose
	// results may differ from a GPU's in their last bits. It must not call the driver. May be nil.
	Launched func(kernel string, approximate []string)

	// Print gets the text that kernels print by printf, as threads come to it. It must not call the driver. May be nil.
	Print func(device int, text string)

	// Host names the host: processes of machines with different ones cannot share memory.
	Host string

	// Faults are injected into the calls that they name.
	Faults []Injection
	// Cells are bits of memory that do not change.
	Cells []Cell
	// CopyDelay is the most rounds of the executor by which a copy is delayed; the seed
	// decides. It makes copies overtake each other.
	CopyDelay int

	// RDMA lets network cards of the host reach memory of MemCreate that asks for it (Linux): a
	// process that maps its dma-buf plays a card. Kernels see a card's writes in order; with Flushes
	// the driver says that they do not.
	RDMA, Flushes bool

	// LoadsWait makes ModuleLoadData wait for the work of its context, as hardware may.
	// ModuleLoadData and the calls that give memory or modules back, which always wait for
	// that work, also keep all other calls in the context waiting meanwhile. A program
	// deadlocks if its kernels wait for a call that loads first, or that is kept waiting.
	// MemcpyAsync from another GPU to or from memory of MemAlloc waits for these calls too, and for
	// MemcpyHtoD and MemcpyDtoH of the memory's context; copies in graphs and of mapped memory do not.
	LoadsWait bool
	// AllocsWait makes calls that allocate or free memory, other than by cuMemCreate, and calls
	// that make a stream, wait in the same way.
	AllocsWait bool

	// FreshAddresses makes device addresses that were freed never come back, so that
	// each access of freed memory is reported as such. Otherwise the next memory gets
	// them, as on hardware, and a late access hits it.
	FreshAddresses bool
}

// A Caller is who makes a call of the driver.
type Caller struct {
	Library bool          // beneath the program: what it makes is no leak, and its kernels are those of For
	For     func() string // the program's call, such as "ncclSend at ring.cu:44", "" if not known; nil: as ""
}

// forWhat is For, or what stands for it.
func (c Caller) forWhat() (call string) {
	if c.For != nil {
		call = c.For()
	}
	if call == "" && c.Library {
		call = "a library"
	}
	return call
}

// A Device describes a device. Zero fields take defaults: capability 9.0, 1 GiB,
// 8 multiprocessors of an H100.
type Device struct {
	Name         string
	Major, Minor int // compute capability
	Memory       int // bytes
	UUID         [16]byte
	Bus          int // of its PCI address
	Shape        simt.Shape
}

func (c *Config) fill() error {
	var all []int
	if c.Devices < 0 {
		return fmt.Errorf("cudaemu: %d devices: give none or more", c.Devices)
	}
	if c.Shapes == nil {
		c.Shapes = make([]Device, max(1, c.Devices))
	} else {
		c.Shapes = append([]Device{}, c.Shapes...)
	}
	if len(c.Shapes) > maxDevices {
		return fmt.Errorf("cudaemu: %d devices: at most %d", len(c.Shapes), maxDevices)
	}
	for i := range c.Shapes {
		c.Shapes[i].fill(i, c.Host)
		if c.Visible == nil {
			all = append(all, i)
		}
	}
	c.Visible = append(all, c.Visible...)
	for k, i := range c.Visible {
		if i < 0 || i >= len(c.Shapes) || slices.Contains(c.Visible[:k], i) {
			return fmt.Errorf("cudaemu: visible devices %v of %d: give numbers of devices, each once", c.Visible, len(c.Shapes))
		}
	}
	if c.Peers == nil {
		c.Peers = func(a, b int) bool { return true }
	}
	if c.Link == nil {
		c.Link = func(a, b int) cuda.Link { return cuda.NVLink }
	}
	if c.DriverVersion == 0 {
		c.DriverVersion = 13000
	}
	if c.Stall == 0 {
		c.Stall = 10 * time.Second
	}
	if c.StallInstructions == 0 {
		c.StallInstructions = 100_000
		if c.Lazy {
			c.StallInstructions = 2_000_000
		}
	}
	if c.Stall < 0 {
		c.StallInstructions = 0
	}
	if c.Report == nil {
		c.Report = func(*weakmem.Fault) bool { return true }
	}
	return c.checkFaults()
}

// checkFaults returns the first error of Faults and Cells.
func (c *Config) checkFaults() error {
	for _, f := range c.Faults {
		if f.Call == "" || f.Result == 0 && !f.Hang {
			return errors.New("cudaemu: an injected fault needs Call and Result")
		}
		if f.Hang && !strings.HasPrefix(f.Call, "kernel ") {
			return fmt.Errorf("cudaemu: a fault that hangs is of a kernel, not of %q: name it as \"kernel NAME\"", f.Call)
		}
	}
	for _, l := range c.Cells {
		if l.Device < 0 || l.Device >= len(c.Shapes) || l.Byte < 0 || l.Byte >= c.Shapes[l.Device].Memory || l.Bit < 0 ||
			l.Bit > 7 {
			return fmt.Errorf("cudaemu: cell %+v: there are %d devices, and bits are 0 to 7 of a byte of their memory",
				l, len(c.Shapes))
		}
	}
	return nil
}

func (d *Device) fill(i int, host string) {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	if d.Name == "" {
		d.Name = "Emulated GPU"
	}
	if d.Major == 0 {
		d.Major, d.Minor = 9, 0
	}
	def(&d.Memory, 1<<30)
	def(&d.Bus, i+1)
	def(&d.Shape.SMs, 8)
	def(&d.Shape.ThreadsPerSM, 2048)
	def(&d.Shape.BlocksPerSM, 32)
	def(&d.Shape.SharedPerSM, 228<<10)
	def(&d.Shape.SharedPerBlock, 227<<10)
	def(&d.Shape.ThreadsPerBlock, 1024)
	if d.UUID == [16]byte{} {
		copy(d.UUID[:], "emu:")
		put64(d.UUID[4:], hash(host, uint64(d.Bus)))
		d.UUID[15] = byte(d.Bus)
	}
}

// An Injection makes a call of the driver fail, or a kernel when it begins to
// run, which ends its context.
type Injection struct {
	Call   string  // "cuMemAlloc", or "kernel NAME"
	Nth    int     // the nth call from now on, counted from 1; 0: see Chance
	Chance float64 // of each call, by the seed
	Device int     // only with this device's context current, counted from 1; 0: any
	Result cuda.Result
	Hang   bool // in place of a Result, and only of a kernel: it never ends
}

// A Cell is a bit of a device's memory that has one value whatever is written. Allocations get the lowest
// bytes that are free, each rounded up to 512; memory of cuMemCreate has no such cells.
type Cell struct {
	Device int
	Byte   int // of the device's memory
	Bit    int // of the byte, from 0
	One    bool
}

// ParseVisible is the devices of a list such as that of CUDA_VISIBLE_DEVICES, up to the first word that is no number
// below devices, as with the driver. It knows no UUIDs.
func ParseVisible(list string, devices int) (visible []int) {
	for number := range strings.SplitSeq(list, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || i < 0 || i >= devices {
			break
		}
		visible = append(visible, i)
	}
	return visible
}
