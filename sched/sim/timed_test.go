package sim_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// Options.Step sees every step once, in the order of its rank, without gaps or overlaps; the last
// one ends when the rank does; and a watched run takes the times of one that is not.
func TestSteps(t *testing.T) {
	for _, s := range []sched.Schedule{ring.AllReduce{N: 6}, tree.AllReduce{N: 9}, direct.AlltoAll{N: 5},
		direct.RecursiveDoubling{N: 512}} {
		for name, m := range sim.Presets {
			if s.Shape().Ranks > 500 && name != "nvlink" {
				continue
			}
			plain, err := sim.Run(context.Background(), s, m, 3<<20, sim.Options{})
			require.NoError(t, err)
			last := make([]sim.Timed, s.Shape().Ranks)
			count := make([]int, s.Shape().Ranks)
			res, err := sim.Run(context.Background(), s, m, 3<<20, sim.Options{Step: func(x sim.Timed) {
				require.Equal(t, count[x.Rank], x.Round*s.Len(x.Rank)+x.Step)
				require.Equal(t, last[x.Rank].End, x.Start)
				require.LessOrEqual(t, x.Start+max(x.Recv, x.Send), x.End)
				require.GreaterOrEqual(t, min(x.Recv, x.Send), 0.0)
				if step := s.At(x.Rank, x.Step); step.Recv == sched.Nobody {
					require.Zero(t, x.Recv)
				}
				last[x.Rank] = x
				count[x.Rank]++
			}})
			require.NoError(t, err)
			require.Equal(t, plain.Ranks, res.Ranks, "%T on %s", s, name)
			for r, n := range count {
				require.Equal(t, res.Rounds*s.Len(sched.Rank(r)), n)
				require.LessOrEqual(t, last[r].End, res.Ranks[r])
			}
		}
	}
	// The last rank of a chain waits for its message while that passes through the others.
	res, err := sim.Run(context.Background(), ring.Broadcast{N: 3}, sim.NVLink, 1<<10,
		sim.Options{Step: func(x sim.Timed) {
			require.Equal(t, x.Rank > 0, x.Recv > float64(x.Rank)*0.74e-6, "%+v", x)
		}})
	require.NoError(t, err)
	require.Greater(t, res.Time, 2*0.74e-6)
}
