package choice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/call"
)

// On several nodes the sim model of the wire chooses; for many nodes its crossings do.
func TestAcross(t *testing.T) {
	slow, cards := Wire{Network: "socket", Mbps: 25_000, Cards: 1}, Wire{Network: "ib", Mbps: 8 * 400_000, Cards: 8}
	for _, test := range []struct {
		nodes   int
		kind    call.Kind
		bytes   int
		slow    call.Algo
		cards   call.Algo
		because string
	}{
		{8, call.AllReduce, 8, call.Doubling, call.Doubling, fromSim},
		{8, call.AllReduce, 64 << 10, call.HierLog, call.HierLog, fromSim},
		{8, call.AllReduce, 16 << 20, call.Ring, call.TwoShot, fromSim}, // cards carry more than a core copies
		{8, call.AlltoAll, 64 << 10, call.Direct, call.Direct, fromSim},
		{64, call.AllReduce, 64 << 10, call.HierLog, call.HierLog, fromRules},
		{64, call.AllReduce, 4 << 20, call.HierTree, call.HierTree, fromRules},
		{64, call.AllReduce, 64 << 20, call.Hier, call.Hier, fromRules},
		{64, call.Broadcast, 64 << 20, call.HierTree, call.HierTree, fromRules},
	} {
		topo := Blocks(8*test.nodes, 8)
		for wire, want := range map[Wire]call.Algo{slow: test.slow, cards: test.cards} {
			a, why := Threshold(test.kind, topo.Over(wire), test.bytes, call.Auto)
			require.Equal(t, want.String(), a.String(), "%+v over %+v", test, wire)
			require.Equal(t, test.because, why)
		}
	}
	topo := Blocks(16, 8).Over(slow)
	a, why := Threshold(call.AllReduce, topo, 1<<20, call.Ring)
	require.Equal(t, call.Ring, a)
	require.Equal(t, asked, why)
	require.Zero(t, testing.AllocsPerRun(10, func() { Threshold(call.AllReduce, topo, 1<<20, call.Auto) }))
}
