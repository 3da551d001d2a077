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
			want := 1
			switch {
			case a < call.Hier:
			case kind == call.AllReduce:
				want = 3
			case kind == call.AllGather:
				want = 2
			}
			require.Equal(t, want, key.Phases(topo), "%v %v", kind, a)
			for k := range want {
				if want == 1 {
					continue
				}
				key.Phase = uint8(k + 1)
				s := key.Schedule(topo)
				for r := range sched.Rank(8) {
					written := map[sched.Ref]bool{}
					for i := range s.Len(r) {
						step := s.At(r, i)
						require.True(t, step.Src.Buf != sched.Tmp || written[step.Src], "%v %v part %d reads scratch of another", kind, a, k)
						written[step.Dst] = true
					}
				}
			}
		}
	}
	require.Equal(t, 1, Key{Kind: call.AllReduce, Algo: call.Ring}.Phases(Blocks(8, 0)))
}

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
	for _, ranks := range []int{16, 512} { // sizes without end
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
