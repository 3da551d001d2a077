package grid

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/sched"
)

// normShapes are trials of all that a norm kernel has ways of its own for: rows in parts, one line of a thread or two,
// several rows of a block, several rounds, two hops.
func normShapes() map[string]normTrial {
	x := normTrial{d: OneShot, residual: true, weight: true, sum: true, normed: true, rows: 3,
		Norm: kernels.Norm{Type: kernels.BFloat16, Row: 1200, Epsilon: 1e-6}}
	parts, whole, pair, several, rounds, two, scatter := x, x, x, x, x, x, x
	parts.Small = kernels.Float8E4M3
	whole.Row, whole.blocks = 600, 3
	pair.blocks = 3
	several.blocks, several.rows = 2, 4
	rounds.blocks, rounds.rows = 1, 9
	two.d = TwoShot
	scatter.d, scatter.rows = ReduceScatter, 6
	return map[string]normTrial{"parts": parts, "whole": whole, "pair": pair, "several": several, "rounds": rounds,
		"two hops": two, "scatter": scatter}
}

// TestNormMissing: a rank that never comes leaves the others waiting until the host ends them, whatever the shape, also
// if the host says that the rank has left. What they report names it.
func TestNormMissing(t *testing.T) {
	const n = 3
	for name, x := range normShapes() {
		for _, norms := range tier.Some(2, []bool{true, false}) {
			t.Run(fmt.Sprint(name, " ", norms), func(t *testing.T) {
				x := x
				x.normed = norms
				if !norms {
					x.Small = 0
				}
				r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Plain: unchecked(true)}), forRows(n, 2400),
					Options{Ranks: n, Threads: 128})
				run := r.prepareNorm(x, 1)
				for range 2 {
					r.runNorm(run, n-1)
				}
				r.awaitsGone(n - 1)
				require.Equal(t, sched.Rank(n-1), r.endStuck(r.ranks[0], 2).Peer)
			})
		}
	}
}

// TestNormMixed: norm kernels of all shapes and direct kernels follow each other, eagerly and in graphs, with nothing
// waited for between.
func TestNormMixed(t *testing.T) {
	const n = 2
	shapes := normShapes()
	names := []string{"parts", "whole", "pair", "several", "rounds", "two hops", "scatter"}
	for seed := range uint64(tier.Count(2, 12)) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed)}), forRows(n, 2400),
			Options{Ranks: n, Threads: 128})
		rnd := rand.New(rand.NewPCG(seed, 1))
		var norms []*normRun
		var directs []*directRun
		for i := range 8 {
			if i%3 == 2 {
				o := r.mail(directTrial{d: []Direct{OneShot, TwoShot, AllGather}[i/3], t: kernels.Float32,
					op: []*kernels.RedOp{&kernels.Sum, &kernels.Sum, nil}[i/3], count: 300}, seed)
				r.resetDirect(o)
				directs = append(directs, o)
				continue
			}
			x := shapes[names[rnd.IntN(len(names))]]
			norms = append(norms, r.prepareNorm(x, seed))
		}
		queue := func(m *member) error {
			for i := range max(len(norms), len(directs)) {
				if i < len(norms) {
					if err := m.engine.RunNorm(&norms[i].jobs[m.rank], &norms[i].norms[m.rank], norms[i].x.d); err != nil {
						return err
					}
				}
				if i < len(directs) {
					o := directs[i]
					if err := m.engine.RunDirect(&o.jobs[m.rank], o.d, 0, o.count*4); err != nil {
						return err
					}
				}
			}
			return nil
		}
		var graphs []cuda.GraphExec
		for _, m := range r.ranks {
			graphs = append(graphs, r.capture(m, queue))
		}
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
			r.with(m, func() error { return queue(m) })
			r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
		}
		r.sync()
		for _, m := range r.ranks {
			require.NoError(t, m.engine.Control().Fault())
		}
		for _, run := range norms {
			require.NoError(t, r.wrongNorm(run))
		}
		for _, o := range directs {
			r.checkDirect(o)
		}
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphExecDestroy(graphs[i]) })
		}
		r.close()
	}
}

// TestNormBroken takes out, one at a time, what the parts of a row rest on, and has the results be wrong or the
// emulator complain.
func TestNormBroken(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	const n = 2
	for _, test := range []struct{ name, shape, pattern, new string }{
		{"words are told weakly", "parts", `st\.relaxed\.sys\.global\.u64`, "st.global.u64"},
		{"words are heard weakly", "parts", `ld\.relaxed\.sys\.global\.u64`, "ld.global.u64"},
		{"no barrier before squares are added", "pair", `bar\.red\.or\.pred q, 0, p;`, "mov.pred q, p;"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := false
			for seed := uint64(0); seed < 20 && !found; seed++ {
				d := gputest.Driver(t, gputest.Faults(),
					gputest.Emu(cudaemu.Config{Devices: n, Seed: seed, StallInstructions: 2000, Link: link(0)}))
				r := newRig(t, d, forRows(n, 2400), Options{Ranks: n, Threads: 128})
				changed := false
				for _, m := range r.ranks {
					m.engine.text = func(name ptx.Name) ([]byte, error) {
						text, err := ptx.Text(name)
						broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
						changed = changed || string(text) != string(broken)
						return broken, err
					}
				}
				run := r.prepareNorm(normShapes()[test.shape], seed)
				for range 3 {
					for i, m := range r.ranks {
						_ = cuda.With(d, m.ctx, func() error {
							found = m.engine.RunNorm(&run.jobs[i], &run.norms[i], run.x.d) != nil || found
							return nil
						})
					}
				}
				for _, m := range r.ranks {
					_ = cuda.With(d, m.ctx, func() error {
						found = d.StreamSynchronize(m.stream) != nil || found
						return nil
					})
				}
				require.True(t, changed)
				found = r.wrongNorm(run) != nil || found
				for _, f := range d.(*cudaemu.Machine).Reports() {
					found = found || f.Kind == weakmem.Race || f.Kind == weakmem.Uninitialized
				}
				r.close()
			}
			require.True(t, found)
		})
	}
}
