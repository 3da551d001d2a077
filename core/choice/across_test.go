// The choice across hosts, and the parts of schedules with hierarchy.

package choice

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched"
)

// All-reduce and all-gather across nodes have parts that hand each other nothing but results.
func TestPhases(t *testing.T) {
	topo := Blocks(8, 4)
	for kind := call.AllReduce; kind <= call.AlltoAll; kind++ {
		for _, a := range []call.Algo{call.Ring, call.Hier, call.HierTree, call.HierLog} {
			key := Key{Kind: kind, Algo: a}
			if !key.Exists(topo) {
				continue
			}
			want := 0
			switch {
			case a < call.Hier:
			case kind == call.AllReduce:
				want = 3
			case kind == call.AllGather:
				want = 2
			}
			require.Equal(t, want, topo.phases(kind, a), "%v %v", kind, a)
			for k := range want {
				key.Phase = uint8(k + 1)
				s := key.Schedule(topo)
				for r := range sched.Rank(8) {
					written := map[sched.Ref]bool{}
					for i := range s.Len(r) {
						step := s.At(r, i)
						require.True(t, step.Src.Buf != sched.Tmp ||
							written[step.Src], "%v %v part %d reads scratch of another", kind, a, k)
						written[step.Dst] = true
					}
				}
			}
		}
	}
	flat := Blocks(8, 0)
	require.Zero(t, flat.phases(call.AllReduce, call.Ring))
}

// Across hosts the sim model of the wire chooses, whatever the layout: thresholds of shared memory would connect
// each rank with all others.
func TestAcross(t *testing.T) {
	slow, cards := Wire{Network: "socket", Mbps: 25_000, Cards: 1}, Wire{Network: "ib", Mbps: 8 * 400_000, Cards: 8}
	for _, test := range []struct {
		topo  Topology
		kind  call.Kind
		bytes int
		slow  call.Algo
		cards call.Algo
	}{
		{Blocks(64, 8), call.AllReduce, 8, call.Doubling, call.Doubling},
		{Blocks(64, 8), call.AllReduce, 64 << 10, call.HierLog, call.HierLog},
		{Blocks(64, 8), call.AllReduce, 16 << 20, call.Ring, call.TwoShot}, // cards carry more than a core copies
		{Blocks(64, 8), call.AlltoAll, 64 << 10, call.Direct, call.Direct},
	} {
		for wire, want := range map[Wire]call.Algo{slow: test.slow, cards: test.cards} {
			a, why := Threshold(test.kind, test.topo.Over(wire), test.bytes, call.Auto)
			require.Equal(t, want.String(), a.String(), "%+v over %+v", test, wire)
			require.Contains(t, why, fromSim)
		}
	}
	for _, ranks := range []int{15, 16} { // sizes without end
		topo := Blocks(ranks, 8).Over(slow)
		for kind := call.AllReduce; kind <= call.AlltoAll; kind++ {
			want, _ := Threshold(kind, topo, 1<<mostSize, call.Auto)
			got, _ := Threshold(kind, topo, math.MaxInt, call.Auto)
			require.Equal(t, want.String(), got.String(), "%v of %d ranks", kind, ranks)
		}
	}
	topo := Blocks(16, 8).Over(slow)
	a, why := Threshold(call.AllReduce, topo, 1<<20, call.Ring)
	require.Equal(t, call.Ring, a)
	require.Equal(t, asked, why)
	require.Zero(t, testing.AllocsPerRun(10, func() { Threshold(call.AllReduce, topo, 1<<20, call.Auto) }))
}

// A schedule that connects a rank with more than farPeers ranks of other hosts is chosen only where it is quicker by
// more than worthPeers.
func TestFewPeersWhereItCostsLittle(t *testing.T) {
	c := costsOf(Blocks(80, 2).Hosts, Wire{Network: "ib", Mbps: 3_200_000, Cards: 8})
	gave := 0
	for kind := call.AllReduce; kind <= call.ReduceScatter; kind++ {
		for bytes := 8; bytes <= 1<<20; bytes *= 4 {
			least, few := math.Inf(1), math.Inf(1)
			for _, table := range tables(kind) {
				time := c.time(kind, table.algo, bytes, math.Inf(1))
				if least = min(least, time); c.reaches(Key{Kind: kind, Algo: table.algo}.Schedule(c.topo)) <= farPeers {
					few = min(few, time)
				}
			}
			chosen, _ := c.find(kind, bytes)
			reach := c.reaches(Key{Kind: kind, Algo: chosen}.Schedule(c.topo))
			require.Equal(t, few > worthPeers*least, reach > farPeers, "%v of %d bytes by %v", kind, bytes, chosen)
			if few > 1.01*least && reach <= farPeers {
				gave++
			}
		}
	}
	require.Positive(t, gave, "somewhere the quickest is given up")
}

// A thousand ranks of which one has died are connected with few others, and take less than twice as long: in a column
// one rank of a host then has the data of two.
func TestManyRanksConnectFew(t *testing.T) {
	wire := Wire{Network: "ib", Mbps: 3_200_000, Cards: 8}
	for _, kind := range []call.Kind{call.AllReduce, call.AllGather} {
		whole, one := Blocks(1000, 8).Over(wire), Blocks(999, 8).Over(wire)
		for _, bytes := range []int{64, 64 << 10} {
			a, why := Threshold(kind, whole, bytes, call.Auto)
			b, _ := Threshold(kind, one, bytes, call.Auto)
			require.Contains(t, why, fromSim)
			require.LessOrEqual(t, one.costs.reaches(Key{Kind: kind, Algo: b}.Schedule(one)), farPeers, "%v of %d bytes by %v",
				kind, bytes, b)
			require.LessOrEqual(t, one.costs.time(kind, b, bytes, math.Inf(1)), 2*whole.costs.time(kind, a, bytes, math.Inf(1)),
				"%v of %d bytes by %v, %v", kind, bytes, a, b)
		}
	}
	require.Equal(t, 992,
		(&layout{topo: Blocks(1000, 8)}).reaches(Key{Kind: call.AllReduce, Algo: call.TwoShot}.Schedule(Blocks(1000, 8))))
}
