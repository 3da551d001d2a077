package grid

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
)

// lingering are options of kernels that linger for a time.
func lingering(ranks int, d time.Duration) Options {
	o := bulkOptions(ranks)
	o.Linger = Linger{Time: d}
	return o
}

// TestLinger queues operations of several kinds one behind the other: sums and means of two types, which need kernels
// of their own, moves, which any kernel carries out, and operations that do not linger: too short or long, of chunks of
// different sizes, or moves that are not in vectors of 16 bytes.
func TestLinger(t *testing.T) {
	const n = 2
	sum := trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 500}
	mean := trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Avg, count: 300, in: 1}
	other := trial{name: "oneshot", schedule: direct.OneShot{N: n}, t: kernels.BFloat16, op: &kernels.Sum, count: 77}
	gather := trial{name: "gather", schedule: direct.AllGather{N: n}, shares: true, t: kernels.Float32, count: 256}
	odd, varied, long, short := gather, gather, sum, sum
	odd.count, varied.varied, long.count, short.count = 255, true, 1001, 15
	all := []trial{sum, sum, gather, mean, gather, long, sum, other, varied, other, short, gather, odd, sum, gather}
	const own = 4
	for _, pause := range []time.Duration{time.Nanosecond, 30 * time.Microsecond} {
		t.Run(pause.String(), func(t *testing.T) {
			cfg := cudaemu.Config{Seed: uint64(pause), Plain: unchecked(pause == time.Nanosecond)}
			r := newRig(t, emulated(t, n, cfg), small(n),
				lingering(n, pause)) // kernels that do not linger share nothing
			for i, m := range r.ranks {
				m.engine.bulk.uneven = i == 0 // rank 1 has threads carry out what lies unevenly
				for _, x := range []trial{sum, mean, other} {
					red, err := kernels.NewReducer(x.t, *x.op, n)
					require.NoError(t, err)
					require.NoError(t, m.engine.Prepare(red))
				}
				require.NoError(t, m.engine.Prepare(nil))
			}
			var queued []worker
			for i, x := range all {
				o := r.prepare(x, uint64(i))
				r.reset(o)
				queued = append(queued, o)
			}
			r.run(queued...)
			r.check(queued...)
			for i, m := range r.ranks {
				require.EqualValues(t, len(all)-own, m.engine.linger.asked, "rank %d", i)
				_, finished := m.engine.Control().Progress()
				require.EqualValues(t, len(all), finished, "rank %d", i)
			}
		})
	}
}

// TestLingerMany has more operations than the work FIFO holds, and graphs between them, whose kernels do not linger.
func TestLingerMany(t *testing.T) {
	const n, times = 2, 12
	o := lingering(n, 10*time.Microsecond)
	o.FIFOBytes = 1 // as short as it can be
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), small(n), o)
	graph := r.prepare(allReduce(n), 99)
	graphs := make([]cuda.GraphExec, n)
	for i, m := range r.ranks {
		j := &graph.jobs[i]
		require.NoError(t, m.engine.Prepare(j.Reducer))
		require.Less(t, m.engine.tables.space.Capacity(), times*len(cuda.ArgsOf(&m.engine.interpreter.args.run)))
		j.Capture = 1
		graphs[i] = r.capture(m, func(m *member) error { return carry(m.engine, j) })
		require.Zero(t, m.engine.linger.asked)
	}
	r.reset(graph)
	var queued []*operation
	for k := range times {
		x := r.prepare(allReduce(n), uint64(k))
		r.reset(x)
		queued = append(queued, x)
	}
	for k, x := range queued {
		r.run(x)
		if k == times/2 {
			for i, m := range r.ranks {
				r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
			}
		}
	}
	for _, x := range append(queued, graph) {
		r.check(x)
	}
}

// TestLingerEnds: a rank never comes. The other one's streams go on.
func TestLingerEnds(t *testing.T) {
	const n, times = 2, 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), lingering(n, 10*time.Microsecond))
	m := r.ranks[0]
	for k := range times {
		x := r.prepare(allReduce(n), uint64(k))
		r.reset(x)
		r.runOn(r.ranks[:1], x)
	}
	require.EqualValues(t, 1, r.endStuck(m, times).Peer)
	require.EqualValues(t, times, m.engine.linger.asked)
}

// TestLingerFails: whichever call of the driver fails, the job's error says so, and no stream waits for ever.
func TestLingerFails(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a real driver does not fail when it is told to")
	}
	const n = 2
	for _, call := range []string{"cuStreamWriteValue64", "cuStreamWaitValue64", "cuLaunchKernel", "cuStreamWaitValue32"} {
		t.Run(call, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), lingering(n, 10*time.Microsecond))
			x := r.prepare(allReduce(n), 1)
			r.reset(x)
			m := r.ranks[0]
			require.NoError(t, m.engine.Prepare(x.jobs[0].Reducer))
			r.d.(*cudaemu.Machine).Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrUnknown})
			err := cuda.With(r.d, m.ctx, func() error { return carry(m.engine, &x.jobs[0]) })
			require.ErrorIs(t, err, cuda.ErrUnknown)
			require.ErrorContains(t, err, call)
			m.engine.Control().Abort() // as a communicator does
			r.sync()
			r.with(m, func() error { return r.d.StreamSynchronize(m.engine.linger.stream) })
		})
	}
}
