package grid

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
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
				r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Plain: unchecked(true)}), boardForRows(n),
					rowOptions(n))
				run := r.prepareNorm(x, 1)
				r.runOn(r.ranks[:n-1], run, run)
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
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed)}), boardForRows(n),
			rowOptions(n))
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all []worker
		for i := range 8 {
			if i%3 == 2 {
				all = append(all, r.prepareDirect(directTrial{d: []Direct{OneShot, TwoShot, AllGather}[i/3], t: kernels.Float32,
					op: []*kernels.RedOp{&kernels.Sum, &kernels.Sum, nil}[i/3], count: 300}, seed))
				continue
			}
			all = append(all, r.prepareNorm(shapes[names[rnd.IntN(len(names))]], seed))
		}
		graphs := r.captured(all...)
		r.reset(all...)
		r.launch(graphs)
		r.run(all...)
		r.launch(graphs)
		r.check(all...)
		r.close()
	}
}
