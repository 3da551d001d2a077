package grid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// TestWrongOptions: an engine refuses options before it has done anything.
func TestWrongOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"grid: 0 ranks":      {},
		"grid: -1 ranks":     {Ranks: -1},
		"grid: rank 2 of 2":  {Ranks: 2, Rank: 2},
		"grid: rank -1 of 2": {Ranks: 2, Rank: -1},
		"grid: blocks of 48 threads: want a multiple of 32 up to 512":  {Ranks: 2, Threads: 48},
		"grid: blocks of 16 threads: want a multiple of 32 up to 512":  {Ranks: 2, Threads: 16},
		"grid: blocks of 544 threads: want a multiple of 32 up to 512": {Ranks: 2, Threads: 544},
		"grid: direct kernels of 129 blocks: want 1 to 128":            {Ranks: 2, DirectBlocks: 129},
		"grid: direct kernels of -1 blocks: want 1 to 128":             {Ranks: 2, DirectBlocks: -1},
		"grid: a ring of -1 bytes: want 0 to 1073741824":               {Ranks: 2, FIFOBytes: -1},
		"grid: a ring of 1073741825 bytes: want 0 to 1073741824":       {Ranks: 2, FIFOBytes: 1<<30 + 1},
		"grid: tables of -1 bytes in arguments":                        {Ranks: 2, ArgsBytes: -1},
		"grid: slices of 64 bytes: want a multiple of 128":             {Ranks: 2, MinSlice: 64},
		"grid: slices of 200 bytes: want a multiple of 128":            {Ranks: 2, MinSlice: 200},
	} {
		e, err := New(nil, 0, 0, nil, o)
		require.EqualError(t, err, want)
		require.Nil(t, e)
	}
	for _, tile := range []int{leastTile - tileUnit, mostTile + tileUnit, leastTile + 1} {
		_, err := New(nil, 0, 0, nil, Options{Ranks: 2, TileBytes: tile})
		require.ErrorContains(t, err, "grid: tiles of ")
	}
}

// oddLinks are links whose ends are of a shape.
type oddLinks struct {
	Links
	shape Geometry
}

func (l oddLinks) Send(sched.Rank) (End, error) { return End{Geometry: l.shape}, nil }
func (l oddLinks) Recv(sched.Rank) (End, error) { return End{Geometry: l.shape}, nil }

// TestWrongShapes: queues of shapes that no kernel knows are refused.
func TestWrongShapes(t *testing.T) {
	good := Geometry{Lanes: 1, Slots: 2, SlotBytes: 128}
	for want, change := range map[string]func(g *Geometry){
		"grid: 0 lanes of 2 slots of 128 bytes: want 1 to 128, a power of two, a multiple of 128":   func(g *Geometry) { g.Lanes = 0 },
		"grid: 129 lanes of 2 slots of 128 bytes: want 1 to 128, a power of two, a multiple of 128": func(g *Geometry) { g.Lanes = 129 },
		"grid: 1 lanes of 1 slots of 128 bytes: want 1 to 128, a power of two, a multiple of 128":   func(g *Geometry) { g.Slots = 1 },
		"grid: 1 lanes of 3 slots of 128 bytes: want 1 to 128, a power of two, a multiple of 128":   func(g *Geometry) { g.Slots = 3 },
		"grid: 1 lanes of 2 slots of 0 bytes: want 1 to 128, a power of two, a multiple of 128":     func(g *Geometry) { g.SlotBytes = 0 },
		"grid: 1 lanes of 2 slots of 192 bytes: want 1 to 128, a power of two, a multiple of 128":   func(g *Geometry) { g.SlotBytes = 192 },
		"grid: notes of -128 bytes: want a multiple of 128 up to 8192":                              func(g *Geometry) { g.NoteBytes = -128 },
		"grid: notes of 8320 bytes: want a multiple of 128 up to 8192":                              func(g *Geometry) { g.NoteBytes = 8320 },
		"grid: notes of 130 bytes: want a multiple of 128 up to 8192":                               func(g *Geometry) { g.NoteBytes = 130 },
	} {
		g := good
		change(&g)
		e := ends{links: oddLinks{shape: g}}
		for _, sends := range []bool{true, false} {
			_, err := e.end(1, sends)
			require.EqualError(t, err, want)
		}
	}
}

// TestDirectMemory: the buffers that a direct kernel needs depend on the rank and on who is root.
func TestDirectMemory(t *testing.T) {
	const n = 64
	sum, err := kernels.NewReducer(kernels.Float32, kernels.Sum, 3)
	require.NoError(t, err)
	type sizes struct{ in, out int }
	for d, want := range map[Direct][2]sizes{ // of the root, and of another rank
		OneShot: {{n, n}, {n, n}}, TwoShot: {{n, n}, {n, n}}, ReduceScatter: {{3 * n, n}, {3 * n, n}},
		Reduce:    {{n, n}, {n, 0}},
		Broadcast: {{n, n}, {0, n}}, AllGather: {{n, 3 * n}, {n, 3 * n}}, AllToAll: {{3 * n, 3 * n}, {3 * n, 3 * n}},
		Gather: {{n, 3 * n}, {n, 0}}, Scatter: {{3 * n, n}, {0, n}},
	} {
		for i, w := range want {
			e := base{memory: &memory{dev: 5}, ranks: 3, rank: 1}
			root := sched.Rank([]int{1, 2}[i])
			at := func(n int) mem.Region { return mem.Device(5, 0x1000, n) }
			check := func(in, out mem.Region) error {
				j := Job{In: in, Out: out}
				if d.Reduces() {
					j.Reducer = sum
				}
				return e.checkDirect(&j, d, root, n)
			}
			require.NoError(t, check(at(w.in), at(w.out)), "%v", d)
			if w.in > 0 {
				require.EqualError(t, check(at(w.in-4), at(w.out)), ArgumentError{"in", 5, outside(at(w.in-4), w.in, 4)}.text(),
					"%v", d)
			}
			if w.out > 0 {
				require.EqualError(t, check(at(w.in), at(w.out-4)), ArgumentError{"out", 5, outside(at(w.out-4), w.out, 4)}.text(),
					"%v", d)
			}
		}
	}
	e := base{memory: &memory{dev: 5}, ranks: 2}
	x := mem.Device(5, 0x1000, 64)
	require.EqualError(t, e.checkDirect(&Job{In: x, Out: x, Reducer: sum}, OneShot, 0, 62),
		"grid: device 5: in: 62 bytes are no multiple of the element's 4 bytes")
	require.EqualError(t, e.checkDirect(&Job{In: x, Out: x, Scalar: 0x1002, Reducer: sum}, OneShot, 0, 64),
		"grid: device 5: scalar: address 0x1002 is no multiple of the element's 4 bytes")
	for r, want := range map[mem.Region]string{
		mem.Device(5, 0x1000, 64): "", mem.Device(5, 0x1002, 64): "address 0x1002 is no multiple of the element's 4 bytes",
		mem.Device(5, 0x1000, 60): "60 bytes, and the operation takes 64",
		mem.Device(5, 0, 64):      "null",
	} {
		require.Equal(t, want, outside(r, 64, 4))
	}
	require.Equal(t, "host memory: register it and pass its device pointer", outside(mem.Host(make([]byte, 64)), 64, 4))
	require.Empty(t, outside(mem.Region{}, 0, 4))
}

func (e ArgumentError) text() string { return (&e).Error() }

// TestAsk: kernels are asked for whom they wait, unless they are to end.
func TestAsk(t *testing.T) {
	d := emulated(t, 1, cudaemu.Config{})
	_, ctx := gputest.Context(t, d, 0)
	s := cuda.OpenStore(d, ctx)
	require.NoError(t, cuda.With(d, ctx, func() error {
		c, err := newControl(d, s, 4)
		require.NoError(t, err)
		defer c.free(s)
		wish := func() uint32 { return uint32(c.words.wish.Load()) }
		require.Empty(t, c.Awaited())
		c.awaited[2].Store(1)
		c.Ask()
		require.EqualValues(t, toSay, wish())
		require.Empty(t, c.Awaited(), "what was said before is forgotten")
		c.awaited[3].Store(1)
		c.awaited[0].Store(7)
		require.Equal(t, []int{0, 3}, c.Awaited())
		c.AskNoMore()
		require.Zero(t, wish())
		require.Equal(t, []int{0, 3}, c.Awaited())
		require.False(t, c.Aborted())
		c.Abort()
		require.True(t, c.Aborted())
		c.Ask()
		c.AskNoMore()
		require.EqualValues(t, toEnd, wish())
		return nil
	}))
	require.NoError(t, s.Close())
}
