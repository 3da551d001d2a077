package grid

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/transport"
)

// A room is how much room tables have.
type room struct {
	name       string
	fifo, args int
}

var rooms = []room{
	{"default", 0, 0},
	{"smallest ring", 1, 0},
	{"smallest arguments", 0, 1},
	{"smallest ring and arguments", 1, 1},
}

func (s room) of(o Options) Options {
	o.FIFOBytes, o.ArgsBytes = s.fifo, s.args
	return o
}

// each calls f for all ranks side by side: with a small ring a rank may wait for others.
func (r *rig) each(f func(m *member) error) {
	r.t.Helper()
	defer time.AfterFunc(patience(), r.abort).Stop()
	errs := make([]error, len(r.ranks))
	var all sync.WaitGroup
	for i, m := range r.ranks {
		all.Go(func() { errs[i] = cuda.With(r.d, m.ctx, func() error { return f(m) }) })
	}
	all.Wait()
	require.NoError(r.t, errors.Join(errs...))
}

// drained looks whether the device is done with all that went into the rings.
func (r *rig) drained() {
	r.t.Helper()
	r.sync()
	for _, m := range r.ranks {
		s := m.engine.tables.space
		require.NoError(r.t, s.Look())
		_, some := s.Oldest()
		require.False(r.t, some, "rank %d: %v", m.rank, s)
	}
}

// TestTables runs all that has tables, with as much room for them as there can be and as
// little.
func TestTables(t *testing.T) {
	tier.Long(t)
	const n = 3
	for seed, s := range rooms {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed), Link: link(uint64(seed))}), small(n),
				s.of(options(n)))
			var all []*operation
			for i, x := range []trial{
				{name: "alltoallv", schedule: direct.AlltoAll{N: n}, shares: true, count: 300, varied: true},
				{name: "allgatherv", schedule: ring.AllGather{N: n}, shares: true, count: 300, varied: true},
				{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, count: 500},
			} {
				x.t = kernels.Int8
				o := r.prepare(x, uint64(i))
				r.reset(o)
				all = append(all, o)
			}
			var many []sending
			for i := range tier.Count(60, 150) {
				many = append(many, sending{i % n, (i / n) % n, 3 * i})
			}
			p := r.prepareGroup(many, false, 1)
			r.each(func(m *member) error {
				for range tier.Count(2, 3) {
					for _, o := range all {
						if err := carry(m.engine, &o.jobs[m.rank]); err != nil {
							return err
						}
					}
					if err := m.engine.RunMessages(p.messages[m.rank]); err != nil {
						return err
					}
				}
				return nil
			})
			for _, o := range all {
				r.check(o)
			}
			r.check(p)
			r.drained()
		})
	}
}

// TestLongGroup: groups have no greatest length, however small the ring is and however different the ranks' parts are.
func TestLongGroup(t *testing.T) {
	tier.Long(t)
	const n = 3
	all := tier.Count(3000, 12000)
	parcels := make([]sending, 0, all)
	for i := range all { // rank 0 sends most of them, all ranks some to themselves
		x := sending{0, 1 + i%2, 1}
		switch {
		case i%7 == 0:
			x = sending{i % n, i % n, 300}
		case i%11 == 0:
			x = sending{2, 1, 30}
		case i%101 == 0:
			x = sending{1, 0, 2000}
		}
		parcels = append(parcels, x)
	}
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), rooms[1].of(options(n)))
	p := r.prepareGroup(parcels, true, 1)
	r.each(func(m *member) error { return m.engine.RunMessages(p.messages[m.rank]) })
	r.check(p)
	r.drained()
}

// TestRingsOfAllSizes: ranks may cut the order of messages where they like: here each has another ring.
func TestRingsOfAllSizes(t *testing.T) {
	const n = 3
	var parcels []sending
	for i := range tier.Count(100, 300) {
		parcels = append(parcels, sending{i % n, i / 7 % n, 13 * i})
	}
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for i, m := range r.ranks {
		m.engine.tables.args = []int{8, 200, maxArgsBytes}[i]
		m.engine.tables.space = fifo.NewSpace([]int{1 << 20, 160, 1000}[i], &m.engine.control.words.consumed)
		m.engine.tables.ring = m.engine.tables.ring[:m.engine.tables.space.Capacity()/8]
	}
	p := r.prepareGroup(parcels, false, 1)
	r.each(func(m *member) error { return m.engine.RunMessages(p.messages[m.rank]) })
	r.check(p)
	r.drained()
}

// TestTablesOfGraphs: the tables of captured calls are the graph's. A graph runs never or often, after calls that have
// tables of their own and beside other graphs, and its memory is used again when it is gone.
func TestTablesOfGraphs(t *testing.T) {
	tier.Long(t)
	const n = 3
	for _, s := range rooms {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), s.of(options(n)))
			var all []*operation
			for i := range 3 {
				o := r.prepare(trial{name: "allgatherv", schedule: ring.AllGather{N: n}, shares: true, count: 100 + 70*i,
					varied: true, t: kernels.Int8}, uint64(i))
				all = append(all, o)
			}
			var held []uintptr
			for round := range uint64(4) {
				var graphs [3][n]cuda.GraphExec
				for i, o := range all {
					for k, m := range r.ranks {
						o.jobs[k].Capture = round*10 + uint64(i) + 1
						graphs[i][k] = r.capture(m, func(m *member) error { return carry(m.engine, &o.jobs[k]) })
						o.jobs[k].Capture = 0
					}
				}
				for _, i := range []int{1, 0, 1} { // the last is never run
					for _, o := range all {
						r.reset(o)
					}
					r.each(func(m *member) error { // an eager call between
						return errors.Join(carry(m.engine, &all[2].jobs[m.rank]), r.d.GraphLaunch(graphs[i][m.rank], m.stream))
					})
					r.check(all[2])
					r.check(all[i])
				}
				var now []uintptr
				for k, m := range r.ranks {
					e := m.engine
					for i := range all {
						require.Len(t, e.tables.graphs[round*10+uint64(i)+1], 1)
						now = append(now, e.tables.graphs[round*10+uint64(i)+1][0].at)
						r.destroy(m, graphs[i][k])
						e.Forget(round*10 + uint64(i) + 1)
					}
					require.Empty(t, e.tables.graphs)
				}
				if round > 0 {
					require.ElementsMatch(t, held, now, "what the graphs before had is used again")
				}
				held = now
			}
			r.drained()
		})
	}
}

// TestTablesFull: a rank whose peer does not come finds the ring full in the end. The error says what the call waits
// for. An abort ends the wait and the kernels, which store their tokens all the same.
func TestTablesFull(t *testing.T) {
	const n = 3
	for _, aborts := range []bool{false, true} {
		t.Run(fmt.Sprint("abort ", aborts), func(t *testing.T) {
			var guard fifo.Guard
			o := rooms[3].of(options(n))
			o.Guard = &guard
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), o)
			op := r.prepare(trial{name: "allgatherv", schedule: ring.AllGather{N: n}, shares: true, count: 90, varied: true,
				t: kernels.Int8}, 1)
			m := r.ranks[1]
			if guard.Begin(time.Hour); !aborts {
				guard.Begin(20 * time.Millisecond)
			}
			gone := errors.New("rank 0 is gone")
			started := func() bool { s, _ := m.engine.control.Progress(); return s > 0 }
			r.with(m, func() error {
				op.jobs[1].Stamp = transport.Stamp{5, 6}
				for range leastFIFO(n) / 80 {
					require.NoError(t, carry(m.engine, &op.jobs[1]))
				}
				require.Eventually(t, started, patience(), time.Millisecond)
				if aborts {
					time.AfterFunc(20*time.Millisecond, func() { guard.Abort(gone) })
				}
				op.jobs[1].Stamp = transport.Stamp{7, 8}
				err := carry(m.engine, &op.jobs[1])
				var full *FullError
				require.ErrorAs(t, err, &full)
				require.Equal(t, FullError{Rank: 1, Oldest: transport.Stamp{5, 6}, Running: true, Err: full.Err}, *full)
				if aborts {
					require.ErrorIs(t, err, gone)
				} else {
					require.ErrorIs(t, err, fifo.ErrDeadline)
				}
				require.ErrorContains(t, err, "work fifo full: no room for 80 bytes: produced 800, consumed 0, capacity 800")
				require.ErrorContains(t, err, "on rank 1 a kernel runs")
				return nil
			})
			r.abort()
			r.drained()
		})
	}
}

// TestTokens: a kernel that ends because all is over stores its token; a launch that fails has none.
func TestTokens(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), rooms[3].of(options(n)))
	op := r.prepare(trial{name: "allgatherv", schedule: ring.AllGather{N: n}, shares: true, count: 90, varied: true,
		t: kernels.Int8}, 1)
	r.reset(op)
	e := r.ranks[0].engine
	broken := errors.New("no launch")
	for range 5 {
		r.with(r.ranks[0], func() error {
			e.driver = failing{r.d, broken}
			defer func() { e.driver = r.d }()
			require.ErrorIs(t, carry(e, &op.jobs[0]), broken)
			return nil
		})
		r.run(op)
		r.check(op)
	}
	r.drained()
	m := r.ranks[1]
	p := r.prepareGroup([]sending{{0, 1, 10}, {1, 0, 10}, {1, 1, 700}}, false, 1)
	r.with(m, func() error { require.NoError(t, carry(m.engine, &op.jobs[1])); return m.engine.End() })
	r.with(m, func() error {
		for range 20 { // many times the ring, and nobody to meet
			if err := errors.Join(carry(m.engine, &op.jobs[1]), p.queue(m)); err != nil {
				return err
			}
		}
		return nil
	})
	r.drained()
}

type failing struct {
	cuda.Driver
	err error
}

func (f failing) LaunchKernel(cuda.Function, *cuda.Launch, []byte) error { return f.err }

func TestTablesDoNotAllocate(t *testing.T) {
	for _, s := range rooms {
		t.Run(s.name, func(t *testing.T) {
			r, d := newIdle(t, s)
			e := r.ranks[0].engine
			p := r.prepareGroup(roundTrips(200), false, 1)
			op := r.prepare(trial{name: "allgatherv", schedule: ring.AllGather{N: 2}, shares: true, count: 90, varied: true,
				t: kernels.Int8}, 1)
			e.driver = d
			run := func() {
				require.NoError(t, e.RunMessages(p.messages[0]))
				require.NoError(t, carry(e, &op.jobs[0]))
			}
			run()
			require.Zero(t, testing.AllocsPerRun(20, run))
			e.driver = r.d
		})
	}
}

// BenchmarkGroup is what a message of a group costs the host, without the driver.
func BenchmarkGroup(b *testing.B) {
	for _, s := range rooms {
		for _, n := range []int{1, 100, 10000} {
			b.Run(fmt.Sprintf("%s/%d messages", s.name, n), func(b *testing.B) {
				r, d := newIdle(b, s)
				e := r.ranks[0].engine
				p := r.prepareGroup(roundTrips(n), true, 1)
				e.driver = d
				for b.Loop() {
					if err := e.RunMessages(p.messages[0]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/message")
				e.driver = r.d
			})
		}
	}
}

// roundTrips is what rank 0 sends to rank 1 and back.
func roundTrips(n int) (all []sending) {
	for i := range n {
		all = append(all, sending{i % 2, 1 - i%2, 100})
	}
	return all
}

// An idle driver queues nothing; its device is done with everything at once.
type idle struct {
	cuda.Driver
	e *Engine
}

func (d idle) MemcpyAsync(uintptr, uintptr, int, cuda.Stream) error { return nil }

func (d idle) LaunchKernel(_ cuda.Function, _ *cuda.Launch, args []byte) error {
	if token := max(d.e.messages.args.token, d.e.interpreter.args.run.token); token > 0 {
		d.e.control.words.consumed.Store(token)
	}
	return nil
}

func newIdle(t testing.TB, s room) (*rig, cuda.Driver) {
	r := newRig(t, emulated(t, 2, cudaemu.Config{}), small(2), s.of(options(2)))
	return r, idle{r.d, r.ranks[0].engine}
}
