package gpu

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/trace"
)

// On GPUs an Observer hears of a call's end when the GPU has carried the call out, with times of the GPU's clock.
func TestDeviceObserver(t *testing.T) {
	list := gputest.GPUs(t, 2)
	w := commtest.NewWitness(t)
	w.Begins = make(chan int, 64)
	comms := commtest.OnDevices(t, list, ringo.Config{Observer: w})
	const count = 300
	memory := func(r int) ringo.Region { return commtest.Alloc(t, list[r], make([]byte, 4*count)) }
	synchronize := func() {
		for _, c := range comms {
			require.NoError(t, c.Synchronize(0))
		}
	}
	for range 2 {
		for r, c := range comms {
			require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: memory(r), Out: memory(r), Count: count,
				Type: ringo.Float32, Op: ringo.Sum}))
		}
	}
	require.Len(t, w.Begins, 4, "all have begun")
	synchronize()
	calls := w.Trace().Calls
	require.Len(t, calls, 4)
	for i, c := range calls {
		require.Equal(t, []any{"AllReduce", true, i / 2, uint32(i%2 + 1), 4 * count},
			[]any{c.Kind, c.GPU, c.Rank, c.Number, c.Bytes})
		require.NotZero(t, c.Queued)
		require.LessOrEqual(t, c.Queued, c.Issued)
		require.Less(t, c.Start, c.End, "the GPU took some time")
		require.LessOrEqual(t, c.End, trace.Now())
		if i%2 == 1 {
			require.GreaterOrEqual(t, c.Start, calls[i-1].End)
		}
	}
	require.Equal(t, 2, w.Trace().Arrivals(calls[0].Comm).Calls)

	w.Forget()
	var g ringo.Group
	for r, c := range comms {
		for range 2 { // they share a kernel
			g.Add(c, &ringo.Call{Kind: ringo.KindAllReduce, In: memory(r), Out: memory(r), Count: 4, Type: ringo.Float32,
				Op: ringo.Sum})
		}
		g.Add(c, &ringo.Call{Kind: ringo.KindSend, In: memory(r), Count: count, Type: ringo.Float32, Peer: 1 - r})
		g.Add(c, &ringo.Call{Kind: ringo.KindRecv, Out: memory(r), Count: count, Type: ringo.Float32, Peer: 1 - r})
	}
	require.NoError(t, g.Run())
	synchronize()
	seen := map[string]int{}
	for _, c := range w.Trace().Calls {
		seen[c.Kind]++
		require.Less(t, c.Start, c.End)
	}
	require.Equal(t, map[string]int{"AllReduce": 4, "Send": 2, "Recv": 2}, seen)
}

// Of a captured call an Observer only hears that it was queued.
func TestDeviceObserverOfCapture(t *testing.T) {
	list := gputest.GPUs(t, 1)
	w := commtest.NewWitness(t)
	c := commtest.OnDevices(t, list, ringo.Config{Observer: w})[0]
	s, err := list[0].NewStream()
	require.NoError(t, err)
	x := commtest.Alloc(t, list[0], make([]byte, 64))
	graph, err := list[0].Capture(s, func() error {
		return c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 16, Type: ringo.Float32,
			Op: ringo.PreMulSum(2), Stream: s})
	})
	require.NoError(t, err)
	calls := w.Trace().Calls
	require.Len(t, calls, 1)
	require.Equal(t, []int64{calls[0].Queued, calls[0].Issued}, []int64{calls[0].Start, calls[0].End})
	require.NoError(t, graph.Close())
	require.NoError(t, list[0].DestroyStream(s))
}

// Calls that end with their communicator have its error.
func TestDeviceObserverHearsOfFailures(t *testing.T) {
	list := gputest.GPUs(t, 2)
	w := commtest.NewWitness(t)
	comms := commtest.OnDevices(t, list, ringo.Config{Observer: w})
	x := commtest.Alloc(t, list[0], make([]byte, 64))
	require.NoError(t, comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 16, Type: ringo.Float32,
		Op: ringo.Sum}))
	comms[0].Abort(errors.New("enough"))
	require.ErrorContains(t, comms[0].Synchronize(0), "enough")
	require.Len(t, w.Failed, 1)
	require.ErrorContains(t, w.Failed[0], "enough")
}
