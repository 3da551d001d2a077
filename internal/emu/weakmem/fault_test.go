package weakmem

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/must"
)

var rewrite = flag.Bool("rewrite", false, "write the goldens of testdata anew")

// A scene is a device with an allocation "send" of 64 written bytes at 0x1000,
// "recv" of 64 unwritten ones at 0x2000, memory of another device at 0x3000, and
// a kernel of two blocks.
type scene struct {
	m      *Memory
	g      *Grid
	a, b   *Block
	faults []*Fault
}

func newScene(t *testing.T, c Config) *scene {
	s := &scene{}
	if c.Report == nil {
		c.Report = func(f *Fault) bool { s.faults = append(s.faults, f); return true }
	}
	s.m = New(c)
	require.NoError(t, s.m.Map(Allocation{Addr: 0x1000, Data: make([]byte, 64), Name: "send"}))
	require.NoError(t, s.m.Map(Allocation{Addr: 0x2000, Data: make([]byte, 64), Written: make([]uint64, 1), Name: "recv"}))
	require.NoError(t, s.m.Map(Allocation{Addr: 0x3000, Data: make([]byte, 64), Device: 1, Name: "peer"}))
	s.g = s.m.Begin(0, "combine", Clock{})
	s.a = s.g.Block([3]int{0, 0, 0}, [3]int{32, 4, 1}, 128)
	s.b = s.g.Block([3]int{1, 0, 0}, [3]int{32, 4, 1}, 128)
	return s
}

// row is addresses of all lanes, step apart.
func row(first uint64, step int) *alu.Lanes {
	var l alu.Lanes
	for i := range l {
		l[i] = first + uint64(i*step)
	}
	return &l
}

const (
	lane0 = uint32(1)
	lane1 = uint32(2)
	warp8 = uint32(0xff) // eight lanes
)

// load and store are of 4-byte elements at neighbouring addresses.
func load(b *Block, warp int, mask uint32, addr uint64, how How) *Fault {
	var d alu.Lanes
	return b.Load(warp, mask, row(addr, 4), 4, []*alu.Lanes{&d}, how)
}

func store(b *Block, warp int, mask uint32, addr uint64, how How) *Fault {
	f := b.Store(warp, mask, row(addr, 4), 4, []*alu.Lanes{row(1, 1)}, how)
	if how.Order >= Release { // who waits for it has seen it
		b.warps[warp].buffer.push(System)
	}
	return f
}

func TestFaults(t *testing.T) {
	shared := func(line int) How { return How{Line: line, Shared: true} }
	line := func(line int) How { return How{Line: line} }
	tests := []struct {
		name string
		does func(s *scene) *Fault // what stops the kernel; races are reported and go on
	}{
		{"far from anything", func(s *scene) *Fault { return load(s.a, 0, lane0, 0x800000000000, line(7)) }},
		{"null", func(s *scene) *Fault { return store(s.a, 0, lane0, 0, line(7)) }},
		{"one after the end", func(s *scene) *Fault { return load(s.a, 1, warp8, 0x1000+64-7*4, line(7)) }},
		{"in front", func(s *scene) *Fault { return store(s.b, 3, lane0, 0x1ff8, line(7)) }},
		{"vector over the end", func(s *scene) *Fault {
			_ = s.m.Map(Allocation{Addr: 0x4000, Data: make([]byte, 8), Name: "odd"})
			var d [4]alu.Lanes
			return s.a.Load(0, lane0, row(0x4000, 16), 4, []*alu.Lanes{&d[0], &d[1], &d[2], &d[3]}, line(7))
		}},
		{"freed", func(s *scene) *Fault {
			_ = s.m.Unmap(0x1000)
			return load(s.a, 0, lane0, 0x1010, line(7))
		}},
		{"shared memory", func(s *scene) *Fault { return store(s.a, 0, warp8, 112, shared(7)) }},
		{"misaligned", func(s *scene) *Fault { return load(s.a, 0, lane0, 0x1002, line(7)) }},
		{"misaligned vector", func(s *scene) *Fault {
			var d [2]alu.Lanes
			return s.a.Store(0, lane0, row(0x1004, 8), 4, []*alu.Lanes{&d[0], &d[1]}, line(7))
		}},
		{"no access", func(s *scene) *Fault { return load(s.a, 0, lane0, 0x3008, line(7)) }},
		{"unwritten", func(s *scene) *Fault {
			_ = store(s.a, 0, 0xf, 0x2000, line(6))
			return load(s.a, 0, warp8, 0x2000, line(7))
		}},
		{"unwritten shared memory", func(s *scene) *Fault { return load(s.a, 0, lane0, 0, shared(7)) }},
		{"race of blocks, write and read", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0x1004, line(6))
			return load(s.b, 2, warp8, 0x1000, line(9))
		}},
		{"race of blocks, read and write", func(s *scene) *Fault {
			_ = load(s.b, 2, warp8, 0x1000, line(9))
			return store(s.a, 0, lane0, 0x1008, line(6))
		}},
		{"race of threads in shared memory", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0, shared(6))
			return load(s.a, 1, lane0, 4, shared(9))
		}},
		{"race of lanes in shared memory", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0, shared(6))
			return load(s.a, 0, lane1, 8, shared(9))
		}},
		{"lanes store to one address", func(s *scene) *Fault {
			return s.a.Store(0, 0xf0, row(0x1000, 0), 4, []*alu.Lanes{row(0, 0)}, line(6))
		}},
		{"scopes too narrow", func(s *scene) *Fault {
			_ = store(s.a, 0, lane0, 0x1000, How{Line: 6, Order: Relaxed, Scope: CTA})
			return store(s.b, 0, lane0, 0x1000, How{Line: 6, Order: Relaxed, Scope: GPU})
		}},
		{"a strong load of a weak flag", func(s *scene) *Fault {
			_ = store(s.a, 0, lane0, 0x1000, line(6))
			return load(s.b, 0, lane0, 0x1000, How{Line: 9, Order: Acquire, Scope: System})
		}},
		{"a weak load of a strong flag", func(s *scene) *Fault {
			_ = store(s.a, 0, lane0, 0x1000, How{Line: 6, Order: Release, Scope: System})
			return load(s.b, 0, lane0, 0x1000, line(9))
		}},
		{"ld.nc of what the kernel wrote", func(s *scene) *Fault {
			_ = store(s.a, 0, lane0, 0x1000, line(6))
			return load(s.a, 0, lane0, 0x1000, How{Line: 9, NonCoherent: true})
		}},
		{"store to what ld.nc read", func(s *scene) *Fault {
			_ = load(s.a, 0, lane0, 0x1000, How{Line: 9, NonCoherent: true})
			return store(s.a, 0, lane0, 0x1000, line(6))
		}},
		{"race with a copy", func(s *scene) *Fault {
			_, _ = s.m.Copy(0x2000, 0x1000, 64, Clock{})
			return load(s.a, 0, lane0, 0x2000, line(9))
		}},
		{"a copy races", func(s *scene) *Fault {
			_ = store(s.a, 0, lane0, 0x1004, line(6))
			_, err := s.m.Copy(0x2000, 0x1000, 64, Clock{})
			if err != nil {
				return err.(*Fault)
			}
			return nil
		}},
		{"copy over the end", func(s *scene) *Fault {
			_, err := s.m.Copy(0x2000, 0x1000, 65, Clock{})
			return err.(*Fault)
		}},
		{"found again", func(s *scene) *Fault {
			_ = store(s.a, 0, lane0, 0x1000, line(6))
			_ = load(s.b, 0, lane0, 0x1000, line(9))
			_ = store(s.a, 0, lane0, 0x1010, line(6))
			return load(s.b, 0, lane0, 0x1010, line(9))
		}},
	}
	var text strings.Builder
	for _, tt := range tests {
		s := newScene(t, Config{Access: func(device int, s *Allocation) bool { return false }})
		f := tt.does(s)
		if f != nil {
			s.faults = append(s.faults, f)
		}
		require.Len(t, s.faults, 1, tt.name)
		text.WriteString("== " + tt.name + "\n" + s.faults[0].Error() + "\n")
	}
	const golden = "testdata/faults.txt"
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err, "run with -rewrite to make it")
	require.Equal(t, string(want), text.String())
}

// What is right must not be reported.
func TestNoFault(t *testing.T) {
	shared := How{Shared: true}
	all := []uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}
	tests := []struct {
		name string
		does func(s *scene) *Fault
	}{
		{"barrier", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0, shared)
			s.a.Barrier(all)
			return load(s.a, 1, warp8, 0, shared)
		}},
		{"barrier of those that live", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0, shared)
			s.a.Exit(0, ^uint32(0))
			s.a.Barrier([]uint32{0, ^uint32(0), ^uint32(0), ^uint32(0)})
			return load(s.a, 1, warp8, 0, shared)
		}},
		{"named barrier of two warps", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0, shared)
			s.a.Barrier([]uint32{^uint32(0), ^uint32(0), 0, 0})
			return load(s.a, 1, warp8, 0, shared)
		}},
		{"barrier, then global memory", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0x2000, How{})
			s.a.Barrier(all)
			return load(s.a, 1, warp8, 0x2000, How{})
		}},
		{"warp synchronised", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0, shared)
			s.a.SyncWarp(0, ^uint32(0))
			return load(s.a, 0, 0x3f, 8, shared)
		}},
		{"neighbours of 2 bytes", func(s *scene) *Fault {
			two := func(b *Block, warp int, addr uint64) *Fault {
				return b.Store(warp, lane0, row(addr, 2), 2, []*alu.Lanes{row(0, 1)}, How{})
			}
			for i := range uint64(4) {
				if f := two(s.a, int(i), 0x1000+2*i); f != nil {
					return f
				}
			}
			return two(s.b, 0, 0x1008)
		}},
		{"lanes read one address", func(s *scene) *Fault {
			var d alu.Lanes
			return s.a.Load(0, ^uint32(0), row(0x1000, 0), 4, []*alu.Lanes{&d}, How{})
		}},
		{"lanes store to one address, volatile", func(s *scene) *Fault {
			return s.a.Store(0, ^uint32(0), row(0x1000, 0), 4, []*alu.Lanes{row(0, 1)}, How{Order: Relaxed, Scope: System})
		}},
		{"ld.nc of what was copied before", func(s *scene) *Fault {
			c, _ := s.m.Copy(0x2000, 0x1000, 64, Clock{})
			b := s.m.Begin(0, "k", c).Block([3]int{}, [3]int{1, 1, 1}, 0)
			return load(b, 0, lane0, 0x2000, How{NonCoherent: true})
		}},
		{"kernel after kernel", func(s *scene) *Fault {
			_ = store(s.a, 0, warp8, 0x2000, How{})
			_ = store(s.b, 0, warp8, 0x2020, How{})
			s.a.End()
			s.b.End()
			b := s.m.Begin(0, "k", s.g.End()).Block([3]int{}, [3]int{32, 1, 1}, 0)
			return load(b, 0, 0xffff, 0x2000, How{})
		}},
		{"kernel after what the host saw of a running kernel", func(s *scene) *Fault {
			_ = s.m.Map(Allocation{Addr: 0x5000, Data: make([]byte, 64), Device: -1, Name: "pinned"})
			_ = store(s.a, 0, warp8, 0x2000, How{})
			_ = store(s.a, 0, lane0, 0x5000, How{Order: Relaxed, Scope: System}) // no release: nothing is known
			s.a.Fence(0, lane0, How{Order: AcqRel, Scope: System})
			_ = store(s.a, 0, lane0, 0x5000, How{Order: Release, Scope: System})
			b := s.m.Begin(0, "k", s.m.Host()).Block([3]int{}, [3]int{32, 1, 1}, 0)
			return load(b, 0, lane0, 0x2000, How{})
		}},
		{"value looked at and written over by the driver", func(s *scene) *Fault {
			c, _ := s.m.Write(0x2000, []byte{1, 0, 0, 0}, Clock{})
			if v, err := s.m.Peek(0x2000, 4); v != 1 || err != nil {
				panic(err)
			}
			_, _ = s.m.Write(0x2000, []byte{2, 0, 0, 0}, c)
			return nil
		}},
		{"value written and waited for by the driver", func(s *scene) *Fault {
			c, _ := s.m.Write(0x2000, []byte{1, 2, 3, 4}, Clock{})
			_, _ = s.m.StoreRelease(0x2008, 5, 4, c)
			if f := load(s.a, 0, lane0, 0x2008, How{Order: Acquire, Scope: System}); f != nil {
				return f
			}
			if f := load(s.a, 0, lane0, 0x2000, How{}); f != nil {
				return f
			}
			_ = store(s.a, 0, lane0, 0x2010, How{})
			_ = store(s.a, 0, lane0, 0x2008, How{Order: Release, Scope: System})
			_, c, _ = s.m.LoadAcquire(0x2008, 4, Clock{})
			_, err := s.m.Copy(0x1000, 0x2010, 4, c)
			if err != nil {
				return err.(*Fault)
			}
			return nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, Config{})
			require.Nil(t, tt.does(s))
			for _, f := range s.faults {
				require.NoError(t, f)
			}
		})
	}
}

func TestReportStops(t *testing.T) {
	for _, c := range []Config{{Report: func(*Fault) bool { return false }}, {}} {
		s := newScene(t, c)
		if c.Report == nil {
			s.m.config.Report = nil
		}
		_ = store(s.a, 0, lane0, 0x1000, How{})
		f := load(s.b, 0, lane0, 0x1000, How{})
		require.NotNil(t, f)
		require.Equal(t, Race, f.Kind)
		require.Equal(t, [3]int{1, 0, 0}, f.Block)
	}
}

func TestCopyOfUnwrittenBytes(t *testing.T) {
	s := newScene(t, Config{})
	c := must.Get(s.m.Write(0x2000, make([]byte, 8), Clock{}))
	require.NoError(t, s.m.Map(Allocation{Addr: 0x4000, Data: make([]byte, 128), Written: make([]uint64, 2),
		Name: "copy"}))
	c = must.Get(s.m.Copy(0x4000+61, 0x2000+3, 32, c))
	at, bad := s.m.allocations.find(0x4000).unwritten(61, 32)
	require.True(t, bad)
	require.Equal(t, uint64(61+5), at)
	must.Get(s.m.Set(0x4000, []byte{1, 2, 3}, 128, c))
	_, bad = s.m.allocations.find(0x4000).unwritten(0, 128)
	require.False(t, bad)
	require.Equal(t, byte(127%3+1), s.m.allocations.find(0x4000).Data[127])
}
