// The Machine: the state of the emulated driver under one lock, and how it begins and ends.

package cudaemu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// In one seed of so many strong loads may give old values.
const seedsOld = 2

const maxDevices = 64 // access is kept as a set of bits

// A Machine is a number of emulated devices and their driver, as one process
// sees them.
type Machine struct {
	cfg Config

	callers atomic.Int32 // goroutines that want mu; the executor gives way
	mu      sync.Mutex   // guards all that follows, and all objects of the machine
	closing bool
	rng     *rand.Rand
	start   time.Time
	id      uint64 // of this machine among those of the host

	mem     *weakmem.Memory
	world   *simt.World
	devices []*device
	visible []*device // by the numbers that programs know
	threads map[int]*thread
	regions regions
	virtual virtualMemory
	handles handles

	streams    map[cuda.Stream]*stream
	events     map[cuda.Event]*event
	modules    map[cuda.Module]*module
	funcs      map[cuda.Function]*function
	graphs     map[cuda.Graph]*graph
	execs      map[cuda.GraphExec]*graphExec
	objects    map[cuda.UserObject]*userObject
	captures   map[*capture]bool
	conditions map[cuda.Condition]*condition
	serial     uint64 // of captures, allocations
	submitted  uint64 // ops

	exec    executor
	inject  injector
	model   model
	reports []*weakmem.Fault
	leaks   []string

	log    *processLog // nil before memory is shared with other processes
	opened int         // how often memory of other machines was opened
}

var _ cuda.Driver = (*Machine)(nil)

// New makes a machine, which the caller closes. It fails for a wrong Config, and on a system without emulated GPUs.
func New(cfg Config) (*Machine, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if !supported {
		return nil, errors.New("cudaemu: no emulated GPUs on this operating system: use Linux or macOS")
	}
	m := &Machine{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x52696e676f)), start: time.Now(),
		threads: map[int]*thread{}, streams: map[cuda.Stream]*stream{}, events: map[cuda.Event]*event{},
		modules: map[cuda.Module]*module{}, funcs: map[cuda.Function]*function{}, graphs: map[cuda.Graph]*graph{},
		execs: map[cuda.GraphExec]*graphExec{}, objects: map[cuda.UserObject]*userObject{},
		captures: map[*capture]bool{}, conditions: map[cuda.Condition]*condition{},
		handles: handles{last: 0x1000},
	}
	m.id = hash(cfg.Host, uint64(os.Getpid()), machines.Add(1))
	base := hash("place", cfg.Seed)
	if !cfg.Lazy { // an address of one process must mean nothing in another
		base ^= m.id
	}
	m.regions.init(base, cfg.FreshAddresses)
	m.virtual.init(base, cfg.FreshAddresses)
	m.mem = weakmem.New(weakmem.Config{Seed: cfg.Seed, Plain: cfg.Plain, OldLoads: cfg.Seed%seedsOld == 1, Lines: m.lines,
		Access: m.access, Book: cfg.Book, Report: m.report})
	shapes := make([]simt.Shape, len(cfg.Shapes))
	for i, d := range cfg.Shapes {
		shapes[i] = d.Shape
		m.devices = append(m.devices, newDevice(m, i, d))
	}
	for _, i := range cfg.Visible {
		m.visible = append(m.visible, m.devices[i])
	}
	world := simt.Config{Seed: cfg.Seed, Devices: shapes, Memory: m.mem, Stall: cfg.StallInstructions,
		Book: cfg.Book, SetConditional: m.setCondition, Print: cfg.Print}
	if cfg.Speed != nil {
		world.Trace = m.clock
	}
	m.world = simt.NewWorld(world)
	m.inject.init(cfg)
	m.model.init()
	m.exec.init(m)
	if sharing && !cfg.Plain {
		m.openLog()
	}
	return m, nil
}

var machines atomic.Uint64 // made by this process

// Close stops all work and frees everything. Its error lists the objects that the
// program should have released, including those left in a context when its last
// reference was released, unless a kernel or the device had failed there.
func (m *Machine) Close() error {
	m.lock()
	if m.closing {
		m.mu.Unlock()
		return nil
	}
	m.closing = true
	m.leaks = append(m.leaks, m.unreleased()...)
	m.exec.stop()
	leaks := m.leaks
	m.mu.Unlock()
	m.exec.join()

	m.lock()
	defer m.mu.Unlock()
	for _, r := range m.regions.sorted {
		r.release()
	}
	m.virtual.release()
	m.log.close()
	for _, e := range m.events {
		e.close()
	}
	m.regions.sorted, m.virtual.handles, m.events = nil, nil, nil // late callers find nothing
	if len(leaks) == 0 {
		return nil
	}
	errs := make([]error, len(leaks))
	for i, l := range leaks {
		errs[i] = errors.New(l)
	}
	return fmt.Errorf("cudaemu: not released: %w", errors.Join(errs...))
}

// Reports is every fault found so far.
func (m *Machine) Reports() []*weakmem.Fault {
	m.lock()
	defer m.mu.Unlock()
	return append([]*weakmem.Fault{}, m.reports...)
}

// Faults are the Reports, as errors.
func (m *Machine) Faults() (list []error) {
	for _, f := range m.Reports() {
		list = append(list, f)
	}
	return list
}

// report is called by weakmem, which the executor runs with mu held.
func (m *Machine) report(f *weakmem.Fault) bool {
	f.Source = m.source(f.Kernel, f.Line)
	if f.Other != nil && f.Other.Source == "" {
		f.Other.Source = m.source(f.Other.Kernel, f.Other.Line)
	}
	m.reports = append(m.reports, f)
	return m.cfg.Report(f)
}

// source is where a line of the PTX of a kernel comes from, empty if that is not known.
func (m *Machine) source(kernel string, line int) (at string) {
	for _, fn := range m.funcs {
		if fn.kernel.Name == kernel && line > 0 {
			at = fn.mod.image.Program.Module.Source(line)
		}
	}
	return at
}

// Sources fills in the sources of a scene of Config.Book. Call it only while the Book tells.
func (m *Machine) Sources(s *decision.Scene) {
	s.Source, s.ToSource = m.source(s.Kernel, s.Line), m.source(s.ToKernel, s.ToLine)
}

// Activity is how many rounds of work there were, after how many of them all work waited, and in how many some has
// begun or ended.
func (m *Machine) Activity() (rounds, idle, moved uint64) {
	m.lock()
	defer m.mu.Unlock()
	return m.exec.rounds, m.exec.idles, m.exec.moved
}

// Threads is how many threads of the process have called the driver.
func (m *Machine) Threads() int {
	m.lock()
	defer m.mu.Unlock()
	return len(m.threads)
}

// Opened is how often memory of another process was opened: see Trail of package weakmem.
func (m *Machine) Opened() int {
	m.lock()
	defer m.mu.Unlock()
	return m.opened
}

// Instructions is the number of thread-instructions executed since New.
func (m *Machine) Instructions() uint64 {
	m.lock()
	defer m.mu.Unlock()
	return m.world.Instructions()
}

// Idle reports whether all remaining work waits: for a while nothing has changed, and
// kernels have only polled. So a test can wait until a kernel has done all it can.
func (m *Machine) Idle() bool {
	m.lock()
	defer m.mu.Unlock()
	for _, o := range m.exec.ready {
		if !o.begun {
			return false
		}
	}
	return len(m.exec.ready) == 0 || m.exec.idle()
}

// Name is "emu".
func (m *Machine) Name() string { return "emu" }

func (m *Machine) DriverGetVersion() (_ int, err error) {
	c := m.call("cuDriverGetVersion", &err)
	defer c.end()
	c.begin()
	return m.cfg.DriverVersion, nil
}

// now is the time of events and of stalls: instructions count a nanosecond if
// the machine is lazy.
func (m *Machine) now() time.Duration {
	if m.cfg.Lazy {
		return time.Duration(m.world.Instructions() + m.exec.rounds)
	}
	return time.Since(m.start)
}

func (m *Machine) lock() {
	m.callers.Add(1)
	m.mu.Lock()
	m.callers.Add(-1)
}
