package grid

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// everyKind makes a work of each kind of kernel.
func everyKind(r *rig) []worker {
	n := len(r.ranks)
	gather := directTrial{d: AllGather, t: kernels.Float32, count: 90}
	all := []worker{
		r.prepare(allReduce(n), 1),
		r.prepare(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 70}, 1),
		r.prepareDirect(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 90}, 1),
		r.prepareWindow(gather, false, 1),
		r.prepareWindow(directTrial{d: Broadcast, t: kernels.Float32, count: 90}, false, 1), // moves before the first gate
		r.prepareWindow(gather, true, 1),
		r.prepareGroup([]sending{{0, 1, 200}, {1, 0, 100}}, false, 1),
		r.prepareGroup([]sending{{0, 1, 3000}, {1, 0, 50}}, false, 2),
	}
	r.reset(all...)
	return all
}

// TestEnd: after End a graph touches nothing of the peers, whose boards are gone, nor does it wait for them or fault:
// it counts, and ends.
func TestEnd(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		t.Run(fmt.Sprint("bulk ", bulk), func(t *testing.T) {
			const n = 2
			o := options(n)
			o.Bulk = bulk
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), mailed(n), o)
			narrow(r)
			graphs := r.captured(everyKind(r)...)
			r.launch(graphs)
			r.sync()
			const operations = 8
			for _, m := range r.ranks {
				require.NoError(t, m.engine.Control().Fault())
				_, finished := m.engine.Control().Progress()
				require.EqualValues(t, operations, finished)
				require.NoError(t, m.engine.End())
			}
			for _, m := range r.ranks {
				r.with(m, func() error { return r.d.MemFree(m.memory) })
				m.memory = 0
			}
			m := r.ranks[1]
			for range 2 { // one rank alone, and no other comes
				r.with(m, func() error { return r.d.GraphLaunch(graphs[1], m.stream) })
				r.sync()
			}
			require.NoError(t, m.engine.Control().Fault())
			started, finished := m.engine.Control().Progress()
			require.EqualValues(t, 3*operations, started)
			require.EqualValues(t, started, finished)
		})
	}
}

// TestEndWhileWaiting: End ends kernels that wait for a rank that never comes.
func TestEndWhileWaiting(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		t.Run(fmt.Sprint("bulk ", bulk), func(t *testing.T) {
			const n = 2
			o := options(n)
			o.Bulk = bulk
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), mailed(n), o)
			narrow(r)
			m := r.ranks[0]
			r.with(m, func() error { return m.engine.PrepareCopies() })
			graphs := r.captured(everyKind(r)...)
			r.with(m, func() error { return r.d.GraphLaunch(graphs[0], m.stream) })
			r.stuck(m)
			require.NoError(t, m.engine.End())
			r.sync()
			started, finished := m.engine.Control().Progress()
			require.EqualValues(t, started, finished)
			require.ErrorIs(t, m.engine.Control().Fault(), ErrAborted)
		})
	}
}

// TestReplayBesideCalls: one rank may replay what another calls. The numbers are those of what has run, and wrap.
func TestReplayBesideCalls(t *testing.T) {
	const n, times, collectives = 2, 3, 6
	for _, first := range []uint32{0, 1<<32 - 9} { // 6 collectives before the wrap, 6 around it
		r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
		narrow(r)
		all := everyKind(r)
		for _, m := range r.ranks {
			r.with(m, func() error { return m.engine.write(m.engine.local+8, bytesOf([]uint32{first})) })
		}
		graphs := r.captured(all...) // rank 1's is never launched
		for range times {
			r.with(r.ranks[0], func() error { return r.d.GraphLaunch(graphs[0], r.ranks[0].stream) })
			r.runOn(r.ranks[1:], all...)
		}
		r.check(all...)
		for i, m := range r.ranks { // the next call is one that differs
			o := r.prepareDirect(directTrial{d: AllGather, root: sched.Rank(i), t: kernels.Int8, count: 100}, 1)
			r.reset(o)
			o.jobs[i].Stamp[1] = uint64(i)
			r.runOn([]*member{m}, o)
		}
		r.sync()
		for _, m := range r.ranks {
			_, wrong := mismatch(t, m.engine.Control())
			require.Equal(t, first+times*collectives+1, uint32(wrong.Want[0]>>32))
			require.Equal(t, wrong.Want[0]>>32, wrong.Got[0]>>32)
		}
	}
}

// TestConsumed: the last block of a kernel stores the kernel's token when it ends, also when all is over.
func TestConsumed(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	narrow(r)
	all := everyKind(r)
	r.captured(all...) // loads
	for i, m := range r.ranks {
		m.engine.driver = &tokens{Driver: r.d, next: uint64(100 * i)}
	}
	for _, over := range []bool{false, true} {
		for _, m := range r.ranks {
			if over {
				require.NoError(t, m.engine.End())
			}
			r.runOn([]*member{m}, all...)
		}
		r.sync()
		for _, m := range r.ranks {
			d := m.engine.driver.(*tokens)
			require.EqualValues(t, 9, d.given, "one each, two for copies")
			require.Equal(t, d.next, m.engine.Control().Consumed())
			d.given = 0
		}
	}
}

// tokens is a driver that gives each communicating kernel a token.
type tokens struct {
	cuda.Driver
	next  uint64
	given int
}

func (d *tokens) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	if at := int(unsafe.Offsetof(comm{}.token)); len(args) > at {
		d.next++
		d.given++
		args = bytes.Clone(args)
		binary.NativeEndian.PutUint64(args[at:], d.next)
	}
	return d.Driver.LaunchKernel(f, l, args)
}
