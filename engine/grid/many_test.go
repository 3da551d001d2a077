package grid

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A pile is all-reduces that are alike, with what should come of them.
type pile struct {
	runs  []*directRun
	jobs  [][]Job // by rank
	calls int
}

// pile makes a batch of all-reduces of different lengths, some of nothing.
func (r *rig) pile(t kernels.DataType, op kernels.RedOp, calls int, seed uint64) *pile {
	p := &pile{jobs: make([][]Job, len(r.ranks)), calls: calls}
	for i := range calls {
		o := r.mail(directTrial{d: OneShot, t: t, op: &op, count: i * 37 % 130, in: i % 3, inPlace: i%4 == 3}, seed+uint64(i))
		r.resetDirect(o)
		p.runs = append(p.runs, o)
		for k, j := range o.jobs {
			j.Stamp[1] = uint64(o.count)
			p.jobs[k] = append(p.jobs[k], j)
		}
	}
	return p
}

// run queues a pile on a rank, in kernels of at most so many calls.
func (p *pile) run(t testing.TB, m *member, most int) error {
	b := m.engine.Batch(p.calls, 130*8, MaxBlocks)
	for jobs := p.jobs[m.rank]; len(jobs) > 0; {
		n, err := m.engine.RunMany(&b, jobs[:min(most, len(jobs))])
		if err != nil {
			return err
		}
		require.LessOrEqual(t, n, most)
		jobs = jobs[n:]
	}
	return nil
}

// TestMany: batches are right beside other operations in the same mailboxes, by kernels of different numbers of calls
// on each rank, from graphs too, under many seeds.
func TestMany(t *testing.T) {
	tier.Long(t)
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := []int{2, 3, 4}[seed%3]
			board := mailed(n)
			board.MailBytes *= 4
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed + seed/2)}), board, options(n))
			wide(r)
			first := r.pile(kernels.Float32, kernels.Sum, 13, 100*seed)
			then := r.pile(kernels.Int8, kernels.Avg, 5, 100*seed+50)
			direct := r.mail(directTrial{d: TwoShot, t: kernels.BFloat16, op: &kernels.Sum, count: 500}, seed)
			r.resetDirect(direct)
			run := func(m *member, most int) error {
				require.NoError(t, first.run(t, m, most))
				require.NoError(t, m.engine.RunDirect(&direct.jobs[m.rank], direct.d, 0, 1000))
				return then.run(t, m, most)
			}
			var graphs []cuda.GraphExec
			for i, m := range r.ranks {
				graphs = append(graphs, r.capture(m, func(m *member) error { return run(m, 7-2*i) }))
			}
			for turn := range 3 {
				for _, o := range append(append([]*directRun{direct}, first.runs...), then.runs...) {
					r.resetDirect(o)
				}
				for i, m := range r.ranks {
					r.with(m, func() error {
						if turn == 1 {
							return run(m, 3+i)
						}
						return r.d.GraphLaunch(graphs[i], m.stream)
					})
				}
				for _, o := range append(append([]*directRun{direct}, first.runs...), then.runs...) {
					r.checkDirect(o)
				}
			}
			for i, m := range r.ranks {
				r.with(m, func() error { return r.d.GraphExecDestroy(graphs[i]) })
			}
		})
	}
}

// TestManyOneBuffer: calls in one buffer share a kernel as others do, also in place: they have no order.
func TestManyOneBuffer(t *testing.T) {
	const n, calls = 2, 100
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	p := r.pile(kernels.Float32, kernels.Sum, 2, 1)
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	for _, job := range p.jobs[0] {
		for _, in := range []mem.Region{job.In, job.Out} {
			job.In = in
			b := m.engine.Batch(calls, 1040, MaxBlocks)
			r.with(m, func() error {
				k, err := m.engine.RunMany(&b, slices.Repeat([]Job{job}, calls))
				require.Equal(t, calls, k)
				return err
			})
		}
	}
}

// TestManyGone: a rank that has left is awaited, for its data are in every sum.
func TestManyGone(t *testing.T) {
	const n = 2
	for turn := range uint64(2) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Link: link(turn)}), mailed(n), options(n))
		p := r.pile(kernels.Float32, kernels.Sum, 2, 1)
		m := r.ranks[0]
		r.with(m, func() error { return p.run(t, m, p.calls) })
		r.awaitsGone(1)
		require.Equal(t, sched.Rank(1), r.endStuck(m, 1).Peer)
	}
}

// TestManyMismatch: ranks whose groups differ find out, whether in the first calls or in later ones.
func TestManyMismatch(t *testing.T) {
	tier.Long(t)
	beside(t)
	const n = 2
	for name, change := range map[string]func(p *pile){
		"first call": func(p *pile) { p.jobs[1][0].Stamp[1] = 999 },
		"later call": func(p *pile) { p.jobs[1][4].Stamp[1] = 999 },
		"more calls": func(p *pile) { p.calls++; p.jobs[1] = append(p.jobs[1], p.jobs[1][0]) },
	} {
		for turn := range uint64(2) {
			if !tier.Full() && (turn == 1) != (name == "first call") {
				continue
			}
			t.Run(fmt.Sprint(name, turn), func(t *testing.T) {
				beside(t)
				r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn), Stall: -1}), mailed(n), options(n))
				r.wipe()
				p := r.pile(kernels.Float32, kernels.Sum, 6, 1)
				r.with(r.ranks[0], func() error { return p.run(t, r.ranks[0], 100) })
				change(p)
				r.with(r.ranks[1], func() error { return p.run(t, r.ranks[1], 100) })
				r.sync()
				for _, m := range r.ranks {
					step, wrong := mismatch(t, m.engine.Control())
					require.EqualValues(t, 1-m.rank, step.Peer)
					require.EqualValues(t, 1, wrong.Want[0]>>32, "the number of the first call")
				}
			})
		}
	}
}

// TestManyMissing: a rank that never comes leaves a batch waiting until the host ends it; what is queued after it ends
// too.
func TestManyMissing(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), mailed(n), options(n))
	p := r.pile(kernels.Float32, kernels.Sum, 6, 1)
	m := r.ranks[0]
	r.with(m, func() error { return m.engine.PrepareMany(p.jobs[0][0].Reducer) })
	for range 2 {
		r.with(m, func() error { return p.run(t, m, 3) })
	}
	require.EqualValues(t, 1, r.endStuck(m, 4).Peer)
}

// TestManyAllocates: queuing a batch takes nothing from the heap.
func TestManyAllocates(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	p := r.pile(kernels.Float32, kernels.Sum, 50, 1)
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	r.with(m, func() error {
		require.NoError(t, p.run(t, m, 50))
		return nil
	})
	var err error
	require.Zero(t, testing.AllocsPerRun(20, func() {
		b := m.engine.Batch(50, 1040, MaxBlocks)
		_, err = m.engine.RunMany(&b, p.jobs[0])
	}))
	require.NoError(t, err)
}
