package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

func TestPort(t *testing.T) {
	var p port
	for _, tc := range []struct {
		name             string
		ready, dur, want float64
	}{
		{"at once", 10, 5, 10},
		{"after the first", 11, 5, 15},
		{"late, in the pause", 2, 5, 2},
		{"in what is left of it", 2, 3, 7},
		{"no room in it any more", 2, 3, 20},
		{"after a new pause", 30, 1, 30},
		{"nothing takes no time", 0, 0, 23},
	} {
		require.Equal(t, tc.want, p.serve(tc.ready, tc.dur), tc.name)
	}
}

func TestTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var h requests
		var want []request
		for i := range n {
			want = append(want, request{float64(rng.IntN(20)), int32(i)})
			h.push(want[i])
		}
		slices.SortFunc(want, func(a, b request) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for _, turn := range want {
			require.Equal(t, turn, h.pop())
		}
		require.Empty(t, h)
	}
}

func TestQueues(t *testing.T) {
	var q queues
	q.reset(1)
	for src := range int32(100) { // beyond the first table
		for dst := range int32(20) {
			require.Equal(t, src*20+dst, q.find(src, dst))
		}
	}
	require.Equal(t, int32(45), q.find(2, 5))

	const depth = 5 // the ring grows 1, 2, 4, 8
	for i := range uint32(40) {
		q.put(45, arrival{float64(i), float64(i)}, depth)
		for j := range min(i+1, depth) {
			require.Equal(t, float64(i-j), q.arrival(45, i-j).first)
		}
	}
	require.Equal(t, uint32(7), q.list[45].mask)
}

// memory is what a run holds for ranks and their queues.
func (w *world) memory() int {
	return cap(w.ranks)*int(unsafe.Sizeof(rank{})) + cap(w.ready.ranks)*4 +
		cap(w.list)*int(unsafe.Sizeof(queue{})) + cap(w.arrivals)*int(unsafe.Sizeof(arrival{})) + cap(w.table)*4 +
		cap(w.requests)*int(unsafe.Sizeof(request{})) +
		(cap(w.buses)+cap(w.cardsIn)+cap(w.cardsOut))*int(unsafe.Sizeof(port{}))
}

func TestMemoryOfARankIsConstant(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sched func(n int) sched.Schedule
		model Model
		bytes int64
		most  int // bytes a rank
	}{
		{"ring", func(n int) sched.Schedule { return ring.Broadcast{N: n} }, NVLink, 1 << 20, 200},
		{"tree", func(n int) sched.Schedule { return tree.AllReduce{N: n} }, InfiniBandNDR, 8, 450},
		{"tree, shared cards", func(n int) sched.Schedule { return tree.AllReduce{N: n} }, Ethernet25G, 8, 450},
		{"tree, many rounds", func(n int) sched.Schedule { return tree.AllReduce{N: n} }, InfiniBandNDR, 4 << 20, 600},
	} {
		for _, n := range []int{1000, 10_000} {
			worlds = sync.Pool{New: worlds.New} // no memory of earlier runs
			w, err := begin(tc.sched(n), tc.model, tc.bytes, func(int64) int { return math.MaxInt32 }, nil)
			require.NoError(t, err)
			require.NoError(t, w.run())
			require.Less(t, w.memory()/n, tc.most, "%s of %d", tc.name, n)
			t.Logf("%s of %d: %d bytes a rank", tc.name, n, w.memory()/n)
		}
	}
}
