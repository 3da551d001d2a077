package simt_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// small is a device of two multiprocessors.
var small = simt.Shape{SMs: 2, ThreadsPerSM: 2048, BlocksPerSM: 4, SharedPerSM: 228 << 10, SharedPerBlock: 227 << 10,
	ThreadsPerBlock: 1024}

// A machine is a World with memory, for a test.
type machine struct {
	t      testing.TB
	config simt.Config
	mem    *weakmem.Memory
	world  *simt.World
	found  []*weakmem.Fault // what memory reported
	next   uint64
	image  *simt.Image
}

// options change how a machine is made.
type options struct {
	seed    uint64
	plain   bool
	devices []simt.Shape
	stall   int
	trace   func(simt.Event)
	goOn    bool // what memory reports is no fault
}

// boot makes a machine that runs the kernels of a PTX text, or of a file of testdata.
func boot(t testing.TB, text string, o options) *machine {
	emulated(t)
	m := &machine{t: t, next: 1 << 32}
	m.mem = weakmem.New(weakmem.Config{Seed: o.seed, Plain: o.plain, Report: func(f *weakmem.Fault) bool {
		m.found = append(m.found, f)
		return o.goOn
	}})
	if o.devices == nil {
		o.devices = []simt.Shape{small}
	}
	if o.stall == 0 {
		o.stall = 1_000_000
	}
	m.config = simt.Config{Seed: o.seed, Devices: o.devices, Memory: m.mem, Stall: o.stall, Trace: o.trace}
	m.world = simt.NewWorld(m.config)
	m.image = load(t, text)(m)
	return m
}

// load compiles a text, or a file of testdata; the result maps the variables of the module.
func load(t testing.TB, text string) func(m *machine) *simt.Image {
	mod := must.Get(ptx.Parse("test.ptx", []byte(source(t, text))))
	p := must.Get(simt.Compile(mod))
	return func(m *machine) *simt.Image {
		globals := map[string]uint64{}
		for _, v := range mod.Vars {
			if v.Space == ptx.Global || v.Space == ptx.Const {
				b := make([]byte, v.Size())
				copy(b, v.Init)
				globals[v.Name] = m.put(b)
			}
		}
		return p.Load(globals)
	}
}

// put maps bytes as memory of device 0.
func (m *machine) put(b []byte) uint64 {
	addr := m.next
	m.next += uint64(len(b)+511) &^ 255
	require.NoError(m.t, m.mem.Map(weakmem.Allocation{Addr: addr, Data: b}))
	return addr
}

// words maps uint32s.
func (m *machine) words(v ...uint32) uint64 {
	return m.put(bytesOf(v))
}

// unwritten maps n uint32s that nothing wrote.
func (m *machine) unwritten(n int) uint64 {
	addr := m.next
	m.next += uint64(4*n+511) &^ 255
	require.NoError(m.t, m.mem.Map(weakmem.Allocation{Addr: addr, Data: make([]byte, 4*n),
		Written: make([]uint64, (4*n+63)/64)}))
	return addr
}

// read is n uint32s.
func (m *machine) read(addr uint64, n int) []uint32 {
	s, ok := m.mem.Find(addr)
	require.True(m.t, ok)
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(s.Data[addr-s.Addr+uint64(4*i):])
	}
	return v
}

// args is a parameter block of uint64 and uint32 values.
func args(values ...any) []byte {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case uint64:
			for len(b)%8 != 0 {
				b = append(b, 0)
			}
			b = binary.LittleEndian.AppendUint64(b, v)
		case int:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// grid is a launch of the given blocks and threads.
func (m *machine) grid(kernel string, blocks, threads int, arguments ...any) *simt.Grid {
	k, ok := m.image.Program.Kernel(kernel)
	require.True(m.t, ok, "kernel %s", kernel)
	return &simt.Grid{Image: m.image, Kernel: k, Dim: [3]int{blocks, 1, 1}, Block: [3]int{threads, 1, 1},
		Args: args(arguments...)}
}

// start queues grids and runs until all is done.
func (m *machine) start(grids ...*simt.Grid) {
	m.t.Helper()
	for _, g := range grids {
		require.NoError(m.t, m.world.Start(g))
	}
	for m.world.Step(100_000) > 0 {
		require.Less(m.t, m.world.Instructions(), uint64(400_000_000), "does not end")
	}
	for _, g := range grids {
		require.True(m.t, g.Done())
	}
}

// run is start, without faults.
func (m *machine) run(grids ...*simt.Grid) {
	m.t.Helper()
	m.start(grids...)
	for _, g := range grids {
		if f := g.Fault(); f != nil {
			m.t.Fatalf("%v", f)
		}
	}
}
