package choice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/sched/sim"
)

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
// best of all algorithms as the simulator has them on the whole layout.
func TestChosenIsNearTheBest(t *testing.T) {
	kinds := []call.Kind{call.AllReduce, call.Reduce, call.Broadcast, call.AllGather, call.ReduceScatter, call.AlltoAll,
		call.Gather, call.Scatter}
	var all []float64 // multiples of the best time
	r := rand.New(rand.NewPCG(24, 1))
	for range tier.Count(20, 40) {
		hosts, wire, kind, bytes := draw(r), wires[r.IntN(len(wires))], kinds[r.IntN(len(kinds))], 1<<(3+r.IntN(20))
		c := &costs{layout: newLayout(hosts, wire, slices.Max(hosts))}
		c.few = c.samples(wire)
		chosen, _ := c.find(kind, bytes)
		what := fmt.Sprintf("%v of %d bytes by %v over %v on %v", kind, bytes, chosen, wire, hosts)
		least := math.Inf(1)
		for _, table := range tables(kind) {
			if table.offers(c.topo) {
				least = min(least, c.whole(t, kind, table.algo, bytes))
			}
		}
		all = append(all, c.whole(t, kind, chosen, bytes)/least)
		require.LessOrEqual(t, all[len(all)-1], 1.3, what)
	}
	slices.Sort(all)
	require.LessOrEqual(t, all[len(all)/2], 1.1)
}
