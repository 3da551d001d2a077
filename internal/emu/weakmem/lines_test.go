package weakmem

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// tears stores and loads 4 lines of 128 bytes, the last word of each a flag, and tells whether under some seed
// a flag is seen without the data, or a line with parts of two values.
func tears(t *testing.T, c Config, spoil func(store func(mask uint32))) bool {
	for seed := range uint64(tier.Count(50, 300)) {
		c.Seed = seed
		m := New(c)
		require.NoError(t, m.Map(Allocation{Addr: x, Data: make([]byte, 1024), Name: "lines"}))
		block := func(device int) *Block {
			return m.Begin(device, "k", Clock{}).Block([3]int{}, [3]int{32, 1, 1}, 0)
		}
		w, r := block(0), block(1)
		var addr, v, a, b alu.Lanes
		for l := range addr {
			addr[l] = x + uint64(16*l)
		}
		how := How{Order: Relaxed, Scope: System, Line: 1}
		store := func(mask uint32) {
			require.Nil(t, w.Store(0, mask, &addr, 8, []*alu.Lanes{&v, &v}, how))
		}
		for round := range uint64(4) {
			for l := range v {
				v[l] = round + 1
			}
			spoil(store)
			for range 30 {
				require.Nil(t, r.Load(0, ^uint32(0), &addr, 8, []*alu.Lanes{&a, &b}, how))
				for l := range a {
					if a[l] != b[l|7] || b[l] != b[l|7] {
						return true
					}
				}
				m.Tick()
			}
		}
	}
	return false
}

// TestLines: a line that a warp stores with one instruction is seen whole with
// Config.Lines, and not without; stored with two it is not.
func TestLines(t *testing.T) {
	whole := func(store func(uint32)) { store(^uint32(0)) }
	halves := func(store func(uint32)) { store(0x0f0f0f0f); store(0xf0f0f0f0) }
	all := func(int, *Allocation) bool { return true }
	require.False(t, tears(t, Config{Lines: all}, whole))
	require.False(t, tears(t, Config{Lines: all, OldLoads: true}, whole))
	require.False(t, tears(t, Config{Lines: all, Plain: true}, whole))
	require.True(t, tears(t, Config{}, whole))
	require.True(t, tears(t, Config{OldLoads: true}, whole))
	require.True(t, tears(t, Config{Lines: all}, halves))
}

// TestLinesOverLinks: lines tear where either end is a device whose link to the memory does
// not carry them whole.
func TestLinesOverLinks(t *testing.T) {
	whole := func(store func(uint32)) { store(^uint32(0)) }
	for _, far := range []int{0, 1} { // the writer, the reader
		torn := Config{Lines: func(device int, _ *Allocation) bool { return device != far }}
		require.True(t, tears(t, torn, whole), "device %d", far)
		torn.OldLoads = true
		require.True(t, tears(t, torn, whole), "device %d", far)
	}
}

// TestLinesOverAddress: a load word by word may overwrite the register of its address.
func TestLinesOverAddress(t *testing.T) {
	m := New(Config{Lines: func(int, *Allocation) bool { return false }})
	require.NoError(t, m.Map(Allocation{Addr: x, Data: make([]byte, 512), Name: "lines"}))
	b := m.Begin(0, "k", Clock{}).Block([3]int{}, [3]int{32, 1, 1}, 0)
	how := How{Order: Relaxed, Scope: System}
	var v, second alu.Lanes
	for l := range v {
		v[l] = uint64(l)
	}
	require.Nil(t, b.Store(0, ^uint32(0), row(x, 16), 8, []*alu.Lanes{&v, &v}, how))
	at := row(x, 16)
	require.Nil(t, b.Load(0, ^uint32(0), at, 8, []*alu.Lanes{at, &second}, how))
	require.Equal(t, v, *at)
	require.Equal(t, v, second)
}

// TestLinesOf: units become visible with the rest of their line, if the store
// covers it.
func TestLinesOf(t *testing.T) {
	const line = 1<<16 - 1
	for _, test := range []struct {
		name        string
		addr, n     uint64
		units, want uint64
	}{
		{"whole", 0x1000, 128, 1 << 3, line},
		{"too short", 0x1000, 120, 1 << 3, 0},
		{"not aligned", 0x1008, 128, 1 << 3, 0},
		{"second", 0x1000, 256, 1 << 16, line << 16},
		{"after a part", 0x1040, 192, 1 << 8, line << 8},
		{"the part", 0x1040, 192, 1 << 7, 0},
		{"all", 0x1000, 512, ^uint64(0), ^uint64(0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pending{addr: test.addr, n: test.n}
			require.Equal(t, test.want, p.lines(test.units))
		})
	}
}

// TestLinesBetweenProcesses: a reader that sees the flag of another process's line sees its
// data, whatever stores of its own are pending. Lines tear seldom: it is the race detector
// that finds a copy in another order.
func TestLinesBetweenProcesses(t *testing.T) {
	const rounds = 1000
	data := make([]byte, 512)
	process := func() *Block {
		m := New(Config{Lines: func(int, *Allocation) bool { return true }})
		for i, s := range []Allocation{{Data: make([]byte, 64)}, {Data: data, Device: 1, Foreign: true},
			{Data: make([]byte, 64)}} {
			s.Addr = x + uint64(i-1)*0x1000
			require.NoError(t, m.Map(s))
		}
		return m.Begin(1, "k", Clock{}).Block([3]int{}, [3]int{32, 1, 1}, 0)
	}
	how := How{Order: Relaxed, Scope: System}
	w, r := process(), process()
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		var v alu.Lanes
		for round := range uint64(rounds) {
			for l := range v {
				v[l] = round
			}
			_ = w.Store(0, ^uint32(0), row(x, 16), 8, []*alu.Lanes{&v, &v}, how)
			w.memory.settle()
		}
	}()
	_ = store(r, 0, lane0, x-0x1000, How{})
	_ = store(r, 0, lane0, x+0x1000, How{})
	require.True(t, r.warps[0].buffer.covers(x, 512))
	var a, b alu.Lanes
	for !done.Load() {
		require.Nil(t, r.Load(0, ^uint32(0), row(x, 16), 8, []*alu.Lanes{&a, &b}, how))
		for l := range a {
			flag := b[l|7]
			require.GreaterOrEqual(t, min(a[l], b[l]), flag, "lane %d", l)
		}
	}
}
