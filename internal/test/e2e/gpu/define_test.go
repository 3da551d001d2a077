package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/sched"
)

// star is for 3 ranks, so that tests of all algorithms on 2 have those of Ringo alone.
func init() {
	err := ringo.Define(ringo.Definition{Name: "star", Kind: ringo.KindAllReduce,
		Ranks:    func(n int) bool { return n == 3 },
		Schedule: func(n int, _ sched.Rank) sched.Schedule { return commtest.Star{N: n} }})
	if err != nil {
		panic(err)
	}
}

// A defined schedule carries calls out, out of place and in place, on GPUs.
func TestDefinedOnGPUs(t *testing.T) {
	list := gputest.GPUs(t, 3)
	by := new(commtest.Algos)
	comms := commtest.OnDevices(t, list, ringo.Config{Algo: "star", Observer: by})
	room := commtest.Arenas(t, comms, 64<<10)
	for _, count := range []int{1, 3000} {
		commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: ringo.KindAllReduce, Count: count, Type: ringo.Float32,
			Op: ringo.Sum}, false, 0)
		commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: ringo.KindAllReduce, Count: count, Type: ringo.Float32,
			Op: ringo.Sum}, true, 0)
	}
	require.Equal(t, "star", by.Last(0))
}
