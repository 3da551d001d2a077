package simt_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

func TestSpinLock(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		got := run{file: "order.ptx", kernel: "locked", blocks: 2, threads: 34, words: [][]uint32{{0}, {0}}}.do(t, o)
		require.EqualValues(t, 68, got[1][0])
	})
}

// A relaxed red counts as late as a store does: without a fence behind it a flag may be seen before. All accesses are
// strong, so nothing but the count shows it.
func TestRedBeforeFlag(t *testing.T) {
	for fence, want := range map[string][]uint32{"": {6, 7}, "fence.acq_rel.gpu;": {7}} {
		var seen []uint32
		for seed := range uint64(400) {
			m := boot(t, hand(`mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra READ;
				mov.u32 %r4, 7; red.relaxed.gpu.global.max.u32 [%rd0], %r4; mov.u32 %r4, 9; `+fence+`
				st.relaxed.gpu.global.u32 [%rd0+256], 1;
				mov.u32 %r5, 0; WAIT: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 30; @%p2 bra WAIT; ret;
				READ: ld.acquire.gpu.global.u32 %r1, [%rd0+256]; setp.eq.u32 %p1, %r1, 0; @%p1 bra READ;
				ld.relaxed.gpu.global.u32 %r2, [%rd0]; st.global.u32 [%rd0+512], %r2;`), options{seed: seed})
			at := m.words(append([]uint32{6}, make([]uint32, 200)...)...)
			m.run(m.grid("k", 2, 1, at, 0))
			require.EqualValues(t, 7, m.read(at, 1)[0], "by the register's value then")
			if v := m.read(at+512, 1)[0]; !slices.Contains(seen, v) {
				seen = append(seen, v)
			}
		}
		slices.Sort(seen)
		require.Equal(t, want, seen, fence)
	}
}

// A barrier of the warp orders memory; a vote, a shuffle and a fence do not.
func TestWarpBarrierOrders(t *testing.T) {
	for _, c := range []struct {
		name, wait string
		right      bool
	}{
		{"barrier", "bar.warp.sync 0xffffffff;", true},
		{"vote", "setp.eq.u32 %p2, %r0, 0; vote.sync.any.pred %p2, %p2, 0xffffffff;", false},
		{"shuffle", "shfl.sync.idx.b32 %r2, %r0, 31, 31, 0xffffffff;", false},
		{"fence", "fence.sc.sys;", false},
		{"nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, o options) {
				m := boot(t, hand("setp.eq.u32 %p1, %r0, 31; @%p1 st.global.u32 [%rd0], 42;"+c.wait+"@!%p1 ld.global.u32 %r1, "+
					"[%rd0];"), o)
				g := m.grid("k", 1, 32, m.words(0), 5)
				m.start(g)
				if c.right {
					require.Nil(t, g.Fault())
					return
				}
				require.NotNil(t, g.Fault())
				require.Equal(t, weakmem.Race, g.Fault().Kind)
			})
		})
	}
}

// Threads of a warp wait for each other: those that part make progress on their own.
func TestIndependentThreads(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		got := run{file: "order.ptx", kernel: "inWarp", threads: 32, words: [][]uint32{{0}}, unset: []int{1, 1}}.do(t, o)
		require.EqualValues(t, 42, got[2][0])
	})
}

func TestBarrierOfTheGrid(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		got := run{file: "order.ptx", kernel: "meet", blocks: 8, threads: 64, cooperative: true, words: [][]uint32{{0}},
			unset: []int{8, 8}}.do(t, o)
		for _, v := range got[2] { // as many as there is room for
			require.EqualValues(t, 36, v)
		}
	})
}

func TestTooManyBlocksHang(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		o.stall = 100_000
		m := boot(t, "order.ptx", o)
		arrived, data, out := m.words(0), m.unwritten(9), m.unwritten(9)
		g := m.grid("meet", 9, 64, arrived, data, out)
		m.start(g)
		f := g.Fault()
		require.NotNil(t, f)
		require.Equal(t, weakmem.Deadlock, f.Kind)
		require.Contains(t, f.Detail, "which is 0x8")
		require.Contains(t, f.Detail, "1 of 9 blocks are not resident")
		require.Equal(t, arrived, f.Addr)
		t.Log(f.Detail)
	})
}

// Blocks wait for room, and the next grid for the blocks of the one before.
func TestBlocksWaitForRoom(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		m := boot(t, "order.ptx", o)
		counter, seen := m.words(0), m.unwritten(200*32)
		m.run(m.grid("count", 100, 32, counter, seen), m.grid("count", 100, 32, counter, seen))
		require.Equal(t, []uint32{200 * 32}, m.read(counter, 1))
	})
}

func TestKill(t *testing.T) {
	m := boot(t, "order.ptx", options{devices: []simt.Shape{small, small}})
	a, b, data := m.words(0), m.words(0), m.words(0)
	ping, other := m.grid("ping", 1, 1, a, b, data, 8), m.grid("count", 1, 32, m.words(0), m.unwritten(32))
	other.Device = 1
	require.NoError(t, m.world.Start(ping))
	require.NoError(t, m.world.Start(other))
	lost := &weakmem.Fault{Detail: "device is lost"}
	m.world.Step(100)
	m.world.Kill(0, lost)
	require.True(t, ping.Done())
	require.Equal(t, lost, ping.Fault())
	for m.world.Step(1000) > 0 {
	}
	require.True(t, other.Done())
	require.Nil(t, other.Fault())
}

func TestKillFromTrace(t *testing.T) {
	var m *machine
	n := 0
	m = boot(t, "order.ptx", options{trace: func(simt.Event) {
		if n++; n == 100 {
			m.world.Kill(0, &weakmem.Fault{Detail: "enough"})
		}
	}})
	g := m.grid("count", 5, 96, m.words(0), m.unwritten(5*96))
	m.start(g)
	require.Equal(t, "enough", g.Fault().Detail)
	require.Equal(t, 100, n)
}

// A store by others keeps waiting threads from being called a deadlock.
func TestTouch(t *testing.T) {
	m := boot(t, "order.ptx", options{stall: 5000})
	flag, data, out := m.words(0), m.words(7), m.unwritten(1)
	g := m.grid("send", 2, 1, flag, data, out)
	g.Dim[0] = 1 // nobody reads
	m.run(g)
	wait := m.grid("ping", 1, 1, flag, out, data, 2)
	wait.After = g.Clock()
	require.NoError(t, m.world.Start(wait))
	for range 20 {
		m.world.Step(2000)
		m.world.Touch()
	}
	require.False(t, wait.Done(), "%v", wait.Fault())
	for m.world.Step(2000) > 0 {
	}
	require.Equal(t, weakmem.Deadlock, wait.Fault().Kind)
}

// A barrier that is right unless one block is much faster than another.
func TestUnluckyScheduleIsFound(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("about the emulator's choice of order")
	}
	hangs := 0
	each(t, func(t *testing.T, o options) {
		o.stall = 50_000
		m := boot(t, "order.ptx", o)
		g := m.grid("meetAgain", 5, 1, m.words(0), 20)
		m.start(g)
		if f := g.Fault(); f != nil {
			require.Equal(t, weakmem.Deadlock, f.Kind)
			hangs++
		}
	})
	t.Logf("%d of %d seeds", hangs, seeds)
	require.Positive(t, hangs)
}
