package sim_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

var algorithms = map[string]func(n int) sched.Schedule{
	"ring all-reduce":     func(n int) sched.Schedule { return ring.AllReduce{N: n} },
	"ring all-gather":     func(n int) sched.Schedule { return ring.AllGather{N: n} },
	"ring broadcast":      func(n int) sched.Schedule { return ring.Broadcast{N: n} },
	"tree all-reduce":     func(n int) sched.Schedule { return tree.AllReduce{N: n} },
	"binomial reduce":     func(n int) sched.Schedule { return tree.BinomialReduce{N: n} },
	"one-shot all-reduce": func(n int) sched.Schedule { return direct.OneShot{N: n} },
	"two-shot all-reduce": func(n int) sched.Schedule { return direct.TwoShot{N: n} },
	"all-to-all":          func(n int) sched.Schedule { return direct.AlltoAll{N: n} },
}

func TestEstimateIsRun(t *testing.T) {
	var off []float64
	for _, name := range slices.Sorted(maps.Keys(algorithms)) {
		for _, preset := range slices.Sorted(maps.Keys(sim.Presets)) {
			for _, n := range []int{1, 2, 5, 16} {
				for _, bytes := range []int64{0, 8, 100_000, 1 << 20, 50 << 20} {
					s, m := algorithms[name](n), sim.Presets[preset]
					res, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
					require.NoError(t, err)
					got, err := sim.Estimate(s, m, bytes)
					require.NoError(t, err)
					what := fmt.Sprintf("%s of %d, %s, %d bytes, %d rounds", name, n, preset, bytes, len(res.Ends))
					if len(res.Ends) <= 8 {
						require.Equal(t, res.Time, got, what)
						continue
					}
					require.InDelta(t, res.Time, got, 0.3*res.Time, what)
					off = append(off, math.Abs(got-res.Time)/res.Time)
				}
			}
		}
	}
	slices.Sort(off)
	require.Less(t, off[len(off)/2], 1e-9, "exact for half of %d cases", len(off))
	require.Less(t, off[len(off)*9/10], 0.02)
}

// Laws of every schedule under every model.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "ranks")
		s := algorithms[rapid.SampledFrom(slices.Sorted(maps.Keys(algorithms))).Draw(t, "algorithm")](n)
		unit := rapid.Float64Range(0.1, 10)
		link := func(name string) sim.Link {
			l := sim.Link{
				Latency:   unit.Draw(t, name+" latency") * 1e-6,
				Overhead:  unit.Draw(t, name+" overhead") * 1e-7,
				Bandwidth: unit.Draw(t, name+" bandwidth") * 1e9,
				Busy:      rapid.Bool().Draw(t, name+" busy"),
			}
			if rapid.Bool().Draw(t, name+" is shared") {
				l.Shared = unit.Draw(t, name+" shared") * 1e9
			}
			return l
		}
		m := sim.Model{
			NodeRanks: rapid.IntRange(0, n).Draw(t, "ranks of a node"),
			Intra:     link("intra"),
			Inter:     link("inter"),
			Reduce:    unit.Draw(t, "reduce") * 1e-11,
			Copy:      unit.Draw(t, "copy") * 1e-11,
			SlotBytes: rapid.IntRange(64, 5000).Draw(t, "slot"),
			Slots:     rapid.IntRange(2, 9).Draw(t, "slots"),
		}
		bytes := rapid.Int64Range(0, 1<<16).Draw(t, "bytes")
		res, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
		require.NoError(t, err)
		again, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
		require.NoError(t, err)
		require.Equal(t, res, again, "the same each time")

		// A machine that is twice as slow in everything takes twice as long.
		slow := m
		for _, l := range []*sim.Link{&slow.Intra, &slow.Inter} {
			l.Latency *= 2
			l.Overhead *= 2
			l.Bandwidth /= 2
			l.Shared /= 2
		}
		slow.Reduce *= 2
		slow.Copy *= 2
		twice, err := sim.Run(context.Background(), s, slow, bytes, sim.Options{})
		require.NoError(t, err)
		require.Equal(t, 2*res.Time, twice.Time)

		// No faster than the busiest port and what ranks share. A core that moves bytes works beside a card.
		if n > 1 && res.IntraBytes+res.InterBytes > 0 {
			best, most := max(m.Intra.Bandwidth, m.Inter.Bandwidth), res.IntraBytes+res.InterBytes
			if m.Intra.Busy != m.Inter.Busy {
				most = max(res.IntraBytes, res.InterBytes)
			}
			require.Greater(t, res.Time, float64(most)/float64(n)/best)
		}
		if nodes := float64(n) / float64(max(1, m.NodeRanks)); m.Intra.Shared > 0 && m.NodeRanks > 0 {
			require.GreaterOrEqual(t, res.Time*(1+1e-9), float64(res.IntraBytes)/(nodes+1)/m.Intra.Shared)
		}
		for r, at := range res.Ranks {
			require.LessOrEqual(t, at, res.Time, "rank %d", r)
		}
		require.IsIncreasing(t, append([]float64{-1}, res.Ends...))
	})
}

// Without ports that are shared, and so without turns, nothing gets faster when
// the machine gets slower.
func TestSlowerIsNotFaster(t *testing.T) {
	m := sim.InfiniBandNDR
	m.Intra.Shared = 0
	for name, algorithm := range algorithms {
		s := algorithm(12)
		before, err := sim.Run(context.Background(), s, m, 3<<20, sim.Options{})
		require.NoError(t, err)
		for change, f := range map[string]func(*sim.Model){
			"latency":   func(m *sim.Model) { m.Inter.Latency *= 1.5 },
			"overhead":  func(m *sim.Model) { m.Intra.Overhead *= 1.5 },
			"bandwidth": func(m *sim.Model) { m.Inter.Bandwidth /= 1.5 },
			"compute":   func(m *sim.Model) { m.Reduce *= 1.5; m.Copy *= 1.5 },
		} {
			slow := m
			f(&slow)
			after, err := sim.Run(context.Background(), s, slow, 3<<20, sim.Options{})
			require.NoError(t, err)
			require.GreaterOrEqual(t, after.Time*(1+1e-12), before.Time, "%s, %s", name, change)
		}
	}
}

func TestDecompose(t *testing.T) {
	const n, bytes = 8, 1 << 20
	s := ring.AllReduce{N: n}
	m := hockney
	parts, err := sim.Decompose(context.Background(), s, m, bytes, sim.Options{})
	require.NoError(t, err)
	require.InEpsilon(t, 2*(n-1)*alpha, parts.Latency, 1e-6)
	require.InEpsilon(t, 2.0*(n-1)/n*bytes*beta, parts.Wire, 1e-6)
	require.InEpsilon(t, float64(n-1)/n*bytes*gamma, parts.Compute, 1e-6)
	require.Zero(t, parts.Overhead+parts.Shared)

	res, err := sim.Run(context.Background(), s, sim.SharedMemory, bytes, sim.Options{})
	require.NoError(t, err)
	parts, err = sim.Decompose(context.Background(), s, sim.SharedMemory, bytes, sim.Options{})
	require.NoError(t, err)
	require.InEpsilon(t, res.Time, parts.Latency+parts.Overhead+parts.Wire+parts.Shared+parts.Compute, 0.02)
}
