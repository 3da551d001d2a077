package grid

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A batchRun is all-reduces of a batch, in kernels of at most so many calls.
type batchRun struct {
	work
	calls, most int
	all         [][]Job // by rank
}

// prepareBatch makes a batch of all-reduces of different lengths, some of nothing.
func (r *rig) prepareBatch(t kernels.DataType, op kernels.RedOp, calls int, seed uint64) *batchRun {
	r.t.Helper()
	p := &batchRun{work: work{name: "batch"}, all: make([][]Job, len(r.ranks)), calls: calls, most: calls}
	for i := range calls {
		o := r.prepareDirect(directTrial{d: OneShot, t: t, op: &op, count: i * 37 % 130, in: i % 3, inPlace: i%4 == 3},
			seed+uint64(i))
		p.images = append(p.images, o.images...)
		for k, j := range o.jobs {
			j.Stamp[1] = uint64(o.count)
			p.all[k] = append(p.all[k], j)
		}
	}
	p.queue = func(m *member) error {
		b := m.engine.Batch(p.calls, 130*8, MaxBlocks)
		for jobs := p.all[m.rank]; len(jobs) > 0; {
			n, err := m.engine.RunMany(&b, jobs[:min(p.most, len(jobs))])
			if err != nil {
				return err
			}
			jobs = jobs[n:]
		}
		return nil
	}
	return p
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
			batches := func(seed uint64, most func(rank int) int) []worker {
				first, then := r.prepareBatch(kernels.Float32, kernels.Sum, 13, 100*seed),
					r.prepareBatch(kernels.Int8, kernels.Avg, 5, 100*seed+50)
				for _, p := range []*batchRun{first, then} {
					queue := p.queue
					p.queue = func(m *member) error {
						p.most = most(int(m.rank))
						return queue(m)
					}
				}
				return []worker{first, r.prepareDirect(directTrial{d: TwoShot, t: kernels.BFloat16, op: &kernels.Sum, count: 500},
					seed), then}
			}
			r.mix(batches(seed, func(rank int) int { return 7 - 2*rank }), batches(seed+1, func(rank int) int { return 3 + rank }))
		})
	}
}

// TestManyOneBuffer: calls in one buffer share a kernel as others do, also in place: they have no order.
func TestManyOneBuffer(t *testing.T) {
	const n, calls = 2, 100
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	p := r.prepareBatch(kernels.Float32, kernels.Sum, 2, 1)
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	for _, job := range p.all[0] {
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
		p := r.prepareBatch(kernels.Float32, kernels.Sum, 2, 1)
		r.reset(p)
		r.runOn(r.ranks[:1], p)
		r.awaitsGone(1)
		require.Equal(t, sched.Rank(1), r.endStuck(r.ranks[0], 1).Peer)
	}
}

// TestManyMismatch: ranks whose groups differ find out, whether in the first calls or in later ones.
func TestManyMismatch(t *testing.T) {
	tier.Long(t)
	beside(t)
	const n = 2
	for name, change := range map[string]func(p *batchRun){
		"first call": func(p *batchRun) { p.all[1][0].Stamp[1] = 999 },
		"later call": func(p *batchRun) { p.all[1][4].Stamp[1] = 999 },
		"more calls": func(p *batchRun) { p.calls++; p.all[1] = append(p.all[1], p.all[1][0]) },
	} {
		for turn := range uint64(2) {
			if !tier.Full() && (turn == 1) != (name == "first call") {
				continue
			}
			t.Run(fmt.Sprint(name, turn), func(t *testing.T) {
				beside(t)
				r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn), Stall: -1}), mailed(n), options(n))
				r.wipe()
				p := r.prepareBatch(kernels.Float32, kernels.Sum, 6, 1)
				r.reset(p)
				p.most = 100
				r.runOn(r.ranks[:1], p)
				change(p)
				r.runOn(r.ranks[1:], p)
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
