// Package emu makes emulated GPUs of any kind: of several sizes and capabilities, joined by NVLink, by PCIe or not at
// all, with old drivers, calls that fail and bits that are broken. They are for tests of programs that use package gpu
// or ringo, on machines without a GPU: the same kernels run, in Go. A program that imports this package has the
// emulated GPUs of gpu.Options.Emulate too.
//
// The emulator is stricter than hardware. It reports races, missing fences, reads of what nothing wrote, bad addresses
// and deadlocks with kernel, line and thread (Machine.Reports), and memory and streams that were not given back
// (Machine.Close). The trap: it is slow, some 10 to 100 million instructions of threads a second in all, and its times
// mean nothing unless Config.Speed says what they are.
//
// To look for faults of one kernel under many seeds, see emu/ptxcheck and "ringo ptx check".
package emu

import (
	"fmt"
	"time"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Config is a machine with emulated GPUs. The zero Config has one of capability 9.0.
type Config struct {
	GPUs []GPU // one of the zero GPU if empty

	// Link joins GPUs a and b; without one, a's kernels do not reach b's memory. Nil: NVLink everywhere.
	Link func(a, b int) Link
	// Tears reports whether the NVLink from a to b is broken: it tears the lines of 128 bytes that kernels of a store.
	// Nil: none is.
	Tears func(a, b int) bool

	// Driver is the version of the CUDA driver, 12040 for 12.4; 13000 if zero. Newer functions are missing, and
	// newer PTX is refused.
	Driver int

	// Seed decides every choice: the warp that runs, when a store becomes visible, the order of copies.
	Seed uint64
	// Repeatable runs a program of one goroutine in the same way for the same Seed: work then
	// advances only within calls that wait.
	Repeatable bool
	// Unchecked is several times faster: stores are visible at once, and nothing but addresses is checked.
	Unchecked bool

	Faults []Fault // calls and kernels that fail
	Cells  []Cell  // bits of memory that do not change

	// Speed, if set, is how fast bytes go from one GPU's memory to another GPU, or within one; Host is the host.
	// Events then tell times that are computed from it.
	Speed func(from, to int) Speed

	// CopyDelay is the most steps of the emulator by which a copy is held back, so that copies overtake each other.
	CopyDelay int
	// LoadsWait makes loading a module wait for the kernels of the GPU, and AllocsWait also allocating and
	// making streams, as hardware may. A program that launches kernels which wait for such a call deadlocks.
	LoadsWait, AllocsWait bool
	// FreshAddresses never gives an address to a second allocation, so that each use of freed memory is a report;
	// otherwise the next allocation gets the address, as on hardware.
	FreshAddresses bool
	// Stall is how long kernels may only poll, while nothing changes, before that is a deadlock. Zero: 10 s.
	Stall time.Duration

	// Report is called with each fault when it is found. False ends the kernel, which a bad address always does. The
	// function must not call the GPU.
	Report func(*Report) (goOn bool)
}

// A GPU is its size. Zero fields have defaults: capability 9.0, 1 GiB, 8 multiprocessors of an H100.
type GPU struct {
	Name            string
	Major, Minor    int // compute capability
	Memory          int // bytes
	UUID            [16]byte
	SMs             int // multiprocessors
	ThreadsPerSM    int // 2048
	BlocksPerSM     int // 32
	SharedPerSM     int // bytes of shared memory, 228 KiB
	SharedPerBlock  int // 227 KiB
	ThreadsPerBlock int // 1024
}

// A Link is what carries accesses from one GPU to another's memory.
type Link string

const (
	NoLink Link = ""
	NVLink Link = "NVLink" // carries lines of 128 bytes whole
	PCIe   Link = "PCIe"   // words of 8 bytes, in any order
)

// A Result is what a call of the driver fails with. errors.Is finds it in the errors of package gpu.
type Result = cuda.Result

// Results that are worth injecting.
const (
	OutOfMemory      = cuda.ErrOutOfMemory
	DeviceLost       = cuda.ErrDeviceUnavailable
	ECCUncorrectable = cuda.ErrECCUncorrectable
	IllegalAddress   = cuda.ErrIllegalAddress // for kernels
	LaunchFailed     = cuda.ErrLaunchFailed   // for kernels
	NotPermitted     = cuda.ErrNotPermitted
	NotSupported     = cuda.ErrNotSupported
	Unknown          = cuda.ErrUnknown
)

// A Fault makes a call of the driver fail, or a kernel when it begins to run, which ends the work on its GPU.
type Fault struct {
	Call   string  // "cuMemAlloc", or "kernel NAME"
	Nth    int     // the nth call from now on, from 1; 0: see Chance
	Chance float64 // probability that a call fails, drawn from the seed
	GPU    int     // the GPU on which calls fail, counted from 1; 0: any
	Result Result
	Hang   bool // in place of Result, for kernels: the kernel never ends
}

// A Cell is a bit of a GPU's memory that is always 1 or always 0. Allocations take the lowest bytes that are
// free, each rounded up to 512.
type Cell struct {
	GPU  int
	Byte int
	Bit  int // from 0
	One  bool
}

// Host is the host among the ends of Config.Speed.
const Host = cudaemu.Host

// A Speed is that of a link or of a memory.
type Speed struct {
	Latency   time.Duration // of a copy, and of each load of a kernel
	Bandwidth float64       // bytes a second, each way; 0: no limit
}

// A Machine is emulated GPUs. Count and Device are gpu.Machine's.
type Machine struct {
	*gpu.Machine
	emu *cudaemu.Machine
}

// Open makes a machine, until Close. It works on Linux, and within one process on macOS.
func Open(c Config) (*Machine, error) {
	in := cudaemu.Config{
		DriverVersion: c.Driver, Seed: c.Seed, Plain: c.Unchecked, Lazy: c.Repeatable, Tears: c.Tears, CopyDelay: c.CopyDelay,
		LoadsWait: c.LoadsWait, AllocsWait: c.AllocsWait, FreshAddresses: c.FreshAddresses, Stall: c.Stall,
	}
	for i, g := range c.GPUs {
		if g.Memory < 0 || min(g.SMs, g.ThreadsPerSM, g.BlocksPerSM, g.SharedPerSM, g.SharedPerBlock, g.ThreadsPerBlock) < 0 {
			return nil, fmt.Errorf("emu: GPU %d: a negative size", i)
		}
		in.Shapes = append(in.Shapes, cudaemu.Device{
			Name: g.Name, Major: g.Major, Minor: g.Minor, Memory: g.Memory, UUID: g.UUID,
			Shape: simt.Shape{SMs: g.SMs, ThreadsPerSM: g.ThreadsPerSM, BlocksPerSM: g.BlocksPerSM, SharedPerSM: g.SharedPerSM,
				SharedPerBlock: g.SharedPerBlock, ThreadsPerBlock: g.ThreadsPerBlock},
		})
	}
	if c.Link != nil {
		in.Link = func(a, b int) cuda.Link { return cuda.Link(c.Link(a, b)) }
		in.Peers = func(a, b int) bool { return c.Link(a, b) != NoLink }
	}
	for _, f := range c.Faults {
		in.Faults = append(in.Faults, f.inner())
	}
	for _, l := range c.Cells {
		in.Cells = append(in.Cells, cudaemu.Cell{Device: l.GPU, Byte: l.Byte, Bit: l.Bit, One: l.One})
	}
	if c.Speed != nil {
		in.Speed = func(from, to int) cudaemu.Speed { return cudaemu.Speed(c.Speed(from, to)) }
	}
	if c.Report != nil {
		in.Report = func(f *weakmem.Fault) bool { return c.Report(newReport(f)) }
	}
	e, err := cudaemu.New(in)
	if err != nil {
		return nil, fmt.Errorf("emu: %w", err)
	}
	m, err := gpu.Of(e)
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("emu: %w", err)
	}
	return &Machine{m, e}, nil
}

func (f Fault) inner() cudaemu.Injection {
	return cudaemu.Injection{Call: f.Call, Nth: f.Nth, Chance: f.Chance, Device: f.GPU, Result: f.Result, Hang: f.Hang}
}

// Devices are all GPUs, for ringo.Config.Device and all that package gpu does.
func (m *Machine) Devices() (all []*gpu.Device) {
	for i := range m.Count() {
		d, _ := m.Device(i)
		all = append(all, d)
	}
	return all
}

// Inject adds a fault to those of Config.
func (m *Machine) Inject(f Fault) { m.emu.Inject(f.inner()) }

// Lose ends the work of a GPU. All later calls for that GPU fail with the result; other GPUs can still read the memory
// of it that they have mapped.
func (m *Machine) Lose(gpu int, r Result) { m.emu.LoseDevice(gpu, r) }

// Instructions is how many instructions of threads were executed.
func (m *Machine) Instructions() uint64 { return m.emu.Instructions() }

// Idle reports whether nothing goes on: all work is done, or kernels only poll.
func (m *Machine) Idle() bool { return m.emu.Idle() }

// Reports are the faults found so far, one for each pair of lines.
func (m *Machine) Reports() (all []*Report) {
	for _, f := range m.emu.Reports() {
		all = append(all, newReport(f))
	}
	return all
}

// Close ends the machine. The error names every fault of Reports, and all memory, streams and modules that were not
// given back.
func (m *Machine) Close() error { return m.Machine.Close() }
