package choice

import (
	"cmp"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/sched/sim"
)

var draws = flag.Int("draws", 0, "how many cases TestChosenIsNearTheBest draws, if not as many as usual")

// wires are networks between hosts, from a slow one to a card for each rank.
var wires = []Wire{
	{Network: "socket", Mbps: 1_000, Cards: 1}, {Network: "socket", Mbps: 25_000, Cards: 1},
	{Network: "socket", Mbps: 400_000, Cards: 4},
	{Network: "ib", Mbps: 100_000, Cards: 1}, {Network: "ib", Mbps: 800_000, Cards: 2},
	{Network: "ib", Mbps: 3_200_000, Cards: 8},
}

// draw is a layout of 2 to 64 hosts of up to 8 ranks: alike, alike but for one, or any.
func draw(r *rand.Rand) []int {
	local := 1 + r.IntN(8)
	hosts := slices.Repeat([]int{local}, 2+r.IntN(63))
	switch r.IntN(3) {
	case 0:
		hosts[r.IntN(len(hosts))] = max(1, local-1)
	case 1:
		for i := range hosts {
			hosts[i] = 1 + r.IntN(8)
		}
	}
	return hosts
}

// whole is the time of all ranks, of which none stands for others unless it is exactly like them.
func (c *costs) whole(t *testing.T, kind call.Kind, a call.Algo, bytes int) float64 {
	r, err := sim.Run(t.Context(), Key{Kind: kind, Algo: a}.Schedule(c.topo), c.model,
		int64(bytes)*int64(kind.Shares(c.topo.Ranks)), sim.Options{MaxRounds: 8})
	require.NoError(t, err)
	return r.Time
}

// Of layouts of up to 64 hosts × 8 ranks, sizes, wires and collectives that are drawn, what is chosen is close to the
// best of all algorithms as the simulator has them on the whole layout. It prints the worst ten.
func TestChosenIsNearTheBest(t *testing.T) {
	kinds := []call.Kind{call.AllReduce, call.Reduce, call.Broadcast, call.AllGather, call.ReduceScatter, call.AlltoAll,
		call.Gather, call.Scatter}
	type result struct {
		hosts        []int
		wire         Wire
		kind         call.Kind
		bytes        int
		chosen, best string
		times        float64
	}
	var all []result
	r := rand.New(rand.NewPCG(24, 1))
	for range cmp.Or(*draws, tier.Count(20, 40)) {
		hosts, wire, kind, bytes := draw(r), wires[r.IntN(len(wires))], kinds[r.IntN(len(kinds))], 1<<(3+r.IntN(20))
		c := &costs{layout: newLayout(hosts, wire, slices.Max(hosts))}
		c.few = c.samples(wire)
		chosen, _ := c.find(kind, bytes)
		one := result{hosts, wire, kind, bytes, chosen.String(), "", math.Inf(1)}
		least := math.Inf(1)
		for _, table := range tables(kind) {
			if table.offers(c.topo) {
				if took := c.whole(t, kind, table.algo, bytes); took < least {
					least, one.best = took, table.algo.String()
				}
			}
		}
		one.times = c.whole(t, kind, chosen, bytes) / least
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(b.times, a.times) })
	for _, w := range all[:min(10, len(all))] {
		t.Logf("%.2f times: %v of %d bytes by %s, best is %s, over %v on %v", w.times, w.kind, w.bytes, w.chosen, w.best,
			w.wire, w.hosts)
	}
	t.Logf("%d drawn, the median %.3f", len(all), all[len(all)/2].times)
	require.LessOrEqual(t, all[len(all)/2].times, 1.1)
	require.LessOrEqual(t, all[0].times, 1.3)
}
