package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// odd is a schedule of which one rank stores what others throw away.
type odd struct {
	sched.Schedule
	rank sched.Rank
}

func (o odd) At(r sched.Rank, i int) sched.Step {
	s := o.Schedule.At(r, i)
	if r == o.rank && i == 1 {
		s.Dst = sched.Ref{Buf: sched.Out}
	}
	return s
}

// acrossNodes is an all-reduce on nodes of 8, by s across them.
func acrossNodes(s sched.Schedule) sched.Schedule {
	return hier.AllReduce(direct.ReduceScatter{N: 8}, s, direct.AllGather{N: 8})
}

// TestSymmetry has ranks that are alike stand for each other, and compares with a run of all.
func TestSymmetry(t *testing.T) {
	m := Presets["nvlink"]
	m.NodeRanks = 8
	weak := m
	weak.Weak, weak.WeakBy = []int{5}, 3
	for _, tt := range []struct {
		name  string
		s     sched.Schedule
		model Model
		orbit int
	}{
		{"doubling", direct.RecursiveDoubling{N: 512}, m, 64},
		{"log steps across 64 nodes", acrossNodes(direct.RecursiveDoubling{N: 64}), m, 512},
		{"ring across 65 nodes", acrossNodes(ring.AllReduce{N: 65}), m, 520},
		{"tree across 64 nodes", acrossNodes(tree.AllReduce{N: 64}), m, 8},
		{"ring", ring.AllReduce{N: 520}, m, 65},
		{"tree", tree.AllReduce{N: 512}, m, 1},
		{"one rank unlike the others", odd{ring.AllReduce{N: 520}, 333}, m, 1},
		{"a weak rank", ring.AllReduce{N: 520}, weak, 1},
		{"shared cards", ring.AllReduce{N: 520}, Presets["ethernet25"], 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			times := func(alike bool) Result {
				w, err := begin(tt.s, tt.model, 100<<20, func(int64) int { return 3 }, nil)
				require.NoError(t, err)
				require.Equal(t, tt.orbit, w.sym.orbit())
				if !alike {
					w.sym = symmetry{}
				}
				require.NoError(t, w.run())
				return w.result()
			}
			want, got := times(false), times(true)
			require.InEpsilon(t, want.Time, got.Time, 1e-12)
			require.InEpsilonSlice(t, want.Ranks, got.Ranks, 1e-12)
			want.Time, want.Ranks, got.Time, got.Ranks = 0, nil, 0, nil
			want.Ends, got.Ends = nil, nil
			require.Equal(t, want, got)
		})
	}
	_, err := Run(context.Background(), stuckRing{ring.AllReduce{N: 512}}, m, 1<<20, Options{})
	require.ErrorIs(t, err, ErrDeadlock)
	require.ErrorContains(t, err, "of 512 of 512 ranks")
}

// stuckRing is a ring in which all wait before anybody sends.
type stuckRing struct{ sched.Schedule }

func (s stuckRing) At(r sched.Rank, i int) sched.Step {
	if i == 0 {
		return s.Schedule.At(r, 1)
	}
	return s.Schedule.At(r, i)
}

// An estimate has one node stand for all where the second and the last do what it does, also if its ranks share a card,
// and is close to one of all nodes.
func TestLikelySymmetry(t *testing.T) {
	cards := Presets["ethernet25"]
	cards.NodeRanks, cards.Intra.Shared = 8, 20e9
	own := Presets["nvlink"]
	own.NodeRanks = 8
	uneven, weak, small := cards, cards, cards
	uneven.Nodes = []int{8, 8, 8, 8, 8, 8, 8, 7, 1}
	weak.Weak, weak.WeakBy = []int{5}, 3
	small.NodeRanks = 16
	for _, tt := range []struct {
		name  string
		s     sched.Schedule
		model Model
		orbit int
	}{
		{"ring", ring.AllReduce{N: 64}, cards, 8},
		{"ring of seven nodes", ring.AllReduce{N: 56}, cards, 7},
		{"ring, a port for each", ring.AllReduce{N: 64}, own, 8},
		{"direct", direct.AlltoAll{N: 64}, cards, 8},
		{"direct of five nodes", direct.AlltoAll{N: 40}, cards, 5},
		{"doubling", direct.RecursiveDoubling{N: 64}, cards, 8},
		{"log steps across nodes", acrossNodes(direct.RecursiveDoubling{N: 8}), cards, 8},
		{"ring across nodes", acrossNodes(ring.AllReduce{N: 9}), cards, 9},
		{"tree", tree.AllReduce{N: 64}, cards, 1},
		{"few nodes", ring.AllReduce{N: 24}, cards, 1},
		{"nodes that are few for their ranks", ring.AllReduce{N: 48}, small, 1},
		{"a rank of the last node unlike the others", odd{ring.AllReduce{N: 64}, 60}, cards, 1},
		{"uneven nodes", ring.AllReduce{N: 64}, uneven, 1},
		{"a weak rank", ring.AllReduce{N: 64}, weak, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, bytes := range []int64{8, 4 << 20, 64 << 20} {
				w, err := begin(tt.s, tt.model, bytes, fewRounds, nil)
				require.NoError(t, err)
				require.NoError(t, w.run())
				want := w.ends[len(w.ends)-1] + w.rest()
				w.release()
				got, err := Estimate(tt.s, tt.model, bytes)
				require.NoError(t, err)
				require.InEpsilon(t, want, got, 0.05, "%d bytes", bytes)
				w, err = begin(tt.s, tt.model, bytes, fewRounds, nil)
				require.NoError(t, err)
				require.Equal(t, tt.orbit, w.likelySymmetry().orbit())
				w.release()
			}
		})
	}
}
