package grid

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// everyKind gives a function that queues an operation of each kind of kernel on a rank.
func everyKind(r *rig) func(m *member) error {
	n := len(r.ranks)
	ring := r.prepare(allReduce(n), 1)
	all := r.prepare(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 70}, 1)
	one := r.mail(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 90}, 1)
	gather := directTrial{d: AllGather, t: kernels.Float32, count: 90}
	window, copies := r.lease(gather, false, 1), r.lease(gather, true, 1)
	root := r.lease(directTrial{d: Broadcast, t: kernels.Float32, count: 90}, false, 1) // moves before the first gate
	notes, group := r.post([]parcel{{0, 1, 200}, {1, 0, 100}}, 1), r.post([]parcel{{0, 1, 3000}, {1, 0, 50}}, 2)
	r.reset(ring)
	r.reset(all)
	for _, o := range []*directRun{one, window.directRun, copies.directRun, root.directRun} {
		r.resetDirect(o)
	}
	return func(m *member) error {
		for _, f := range []func() error{
			func() error { return carry(m.engine, &ring.jobs[m.rank]) },
			func() error { return carry(m.engine, &all.jobs[m.rank]) },
			func() error { return m.engine.RunDirect(&one.jobs[m.rank], one.d, 0, 360) },
			func() error { return window.run(m) },
			func() error { return root.run(m) },
			func() error { return copies.run(m) },
			func() error { return m.engine.RunMessages(notes.jobs[m.rank]) },
			func() error { return m.engine.RunMessages(group.jobs[m.rank]) },
		} {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// capture makes a graph of what f queues on a rank's stream.
func (r *rig) capture(m *member, f func(m *member) error) (x cuda.GraphExec) {
	r.t.Helper()
	r.with(m, func() error {
		require.NoError(r.t, r.d.StreamBeginCapture(m.stream, cuda.CaptureThreadLocal))
		require.NoError(r.t, f(m))
		g, err := r.d.StreamEndCapture(m.stream)
		require.NoError(r.t, err)
		x, err = r.d.GraphInstantiate(g, 0)
		require.NoError(r.t, err)
		return r.d.GraphDestroy(g)
	})
	return x
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
			run := everyKind(r)
			execs := make([]cuda.GraphExec, n)
			for i, m := range r.ranks {
				execs[i] = r.capture(m, run)
			}
			launch := func(m *member) {
				r.with(m, func() error { return r.d.GraphLaunch(execs[m.rank], m.stream) })
			}
			for _, m := range r.ranks {
				launch(m)
			}
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
			for range 2 {
				launch(r.ranks[1]) // one rank alone, and no other comes
				r.sync()
			}
			control := r.ranks[1].engine.Control()
			require.NoError(t, control.Fault())
			started, finished := control.Progress()
			require.EqualValues(t, 3*operations, started)
			require.EqualValues(t, started, finished)
			for i, m := range r.ranks {
				r.with(m, func() error { return r.d.GraphExecDestroy(execs[i]) })
			}
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
			run := everyKind(r)
			m := r.ranks[0]
			r.with(m, func() error { return m.engine.PrepareCopies() })
			exec := r.capture(m, run)
			r.with(m, func() error { return r.d.GraphLaunch(exec, m.stream) })
			r.stuck(m)
			require.NoError(t, m.engine.End())
			r.sync()
			started, finished := m.engine.Control().Progress()
			require.EqualValues(t, started, finished)
			require.ErrorIs(t, m.engine.Control().Fault(), ErrAborted)
			r.with(m, func() error { return r.d.GraphExecDestroy(exec) })
		})
	}
}

// TestReplayBesideCalls: one rank may replay what another calls: the numbers are those of what has run.
func TestReplayBesideCalls(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	narrow(r)
	run := everyKind(r)
	exec := r.capture(r.ranks[0], run)
	spare := r.capture(r.ranks[1], run) // never launched
	for range 3 {
		r.with(r.ranks[0], func() error { return r.d.GraphLaunch(exec, r.ranks[0].stream) })
		r.with(r.ranks[1], func() error { return run(r.ranks[1]) })
	}
	r.sync()
	const collectives = 3 * 6
	for i, m := range r.ranks { // the next call is one that differs
		require.NoError(t, m.engine.Control().Fault())
		o := r.mail(directTrial{d: AllGather, root: sched.Rank(i), t: kernels.Int8, count: 100}, 1)
		r.resetDirect(o)
		o.jobs[i].Stamp[1] = uint64(i)
		r.with(m, func() error { return m.engine.RunDirect(&o.jobs[i], o.d, 0, 100) })
	}
	r.sync()
	for _, m := range r.ranks {
		_, wrong := mismatch(t, m.engine.Control())
		require.EqualValues(t, collectives+1, wrong.Want[0]>>32)
	}
	r.with(r.ranks[0], func() error { return errors.Join(r.d.GraphExecDestroy(exec), r.d.GraphExecDestroy(spare)) })
}

// TestNumbersWrapOnDevice: numbers of collectives wrap on the device, within graphs and without.
func TestNumbersWrapOnDevice(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	narrow(r)
	run := everyKind(r)
	first := uint32(1<<32 - 9) // 6 collectives before the wrap, 6 around it
	for _, m := range r.ranks {
		r.with(m, func() error { return m.engine.write(m.engine.local+8, bytesOf([]uint32{first})) })
	}
	exec := r.capture(r.ranks[0], run)
	for range 2 {
		r.with(r.ranks[0], func() error { return r.d.GraphLaunch(exec, r.ranks[0].stream) })
		r.with(r.ranks[1], func() error { return run(r.ranks[1]) })
	}
	r.sync()
	for i, m := range r.ranks { // the next call is one that differs
		require.NoError(t, m.engine.Control().Fault())
		o := r.mail(directTrial{d: AllGather, root: sched.Rank(i), t: kernels.Int8, count: 100}, 1)
		r.resetDirect(o)
		o.jobs[i].Stamp[1] = uint64(i)
		r.with(m, func() error { return m.engine.RunDirect(&o.jobs[i], o.d, 0, 100) })
	}
	r.sync()
	for _, m := range r.ranks {
		_, wrong := mismatch(t, m.engine.Control())
		require.Equal(t, first+2*6+1, uint32(wrong.Want[0]>>32))
		require.Equal(t, wrong.Want[0]>>32, wrong.Got[0]>>32)
	}
	r.with(r.ranks[0], func() error { return r.d.GraphExecDestroy(exec) })
}

// TestConsumed: the last block of a kernel stores the kernel's token when it ends, also when all is over.
func TestConsumed(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	narrow(r)
	run := everyKind(r)
	for i, m := range r.ranks {
		loads := r.capture(m, run)
		r.with(m, func() error { return r.d.GraphExecDestroy(loads) })
		m.engine.driver = &tokens{Driver: r.d, next: uint64(100 * i)}
	}
	for _, over := range []bool{false, true} {
		for _, m := range r.ranks {
			if over {
				require.NoError(t, m.engine.End())
			}
			r.with(m, func() error { return run(m) })
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
