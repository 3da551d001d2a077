package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
)

// TestDeviceSuspend: a communicator gives its scratch and its queues back, and goes on after Resume, with
// graphs from before too.
func TestDeviceSuspend(t *testing.T) {
	const n, count = 2, 3000
	list := gputest.GPUs(t, n)
	comms := commtest.OnDevices(t, list, ringo.Config{Algo: "ring"})
	var in, out []mem.Region
	streams, graphs := commtest.Streams(t, list), make([]*gpu.Graph, n)
	contribution := make([]float32, count)
	for i := range contribution {
		contribution[i] = float32(i)
	}
	for _, d := range list {
		in, out = append(in, commtest.Alloc(t, d, commtest.Floats(contribution))),
			append(out, commtest.Alloc(t, d, commtest.Floats(contribution)))
	}
	call := func(r int) *ringo.Call {
		return &ringo.Call{Kind: ringo.KindAllReduce, In: in[r], Out: out[r], Count: count, Type: ringo.Float32,
			Stream: streams[r]}
	}
	halves := []int{count / 2, count / 2}
	inPlace := func(r int) *ringo.Call {
		return &ringo.Call{Kind: ringo.KindAlltoAllv, In: out[r], Out: out[r], InCounts: halves, OutCounts: halves,
			Type: ringo.Float32, Stream: streams[r]}
	}
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Do(call(c.Rank())) }))
	// needs scratch
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Do(inPlace(c.Rank())) }))
	for r, d := range list {
		var err error
		graphs[r], err = d.Capture(streams[r], func() error { return comms[r].Do(call(r)) })
		require.NoError(t, err)
		require.NoError(t, comms[r].Synchronize(streams[r]))
	}
	used := func() (all []int) {
		f, err := footprintOf(list)
		require.NoError(t, err)
		return f.memory
	}
	slack := 0.0
	if gputest.OnGPU() { // a driver may take a few pages for itself meanwhile
		slack = 4 << 20
	}
	for range 2 {
		before := used()
		var fixed, mapped [n]int
		for r, c := range comms {
			fixed[r], mapped[r] = c.Footprint().Bytes()
			require.Greater(t, fixed[r], 1<<20)
			require.Greater(t, mapped[r], 2<<20, "queues and scratch")
		}
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Footprint().Suspend() }))
		for r, now := range used() {
			require.InDelta(t, before[r]-mapped[r], now, slack)
			f, m := comms[r].Footprint().Bytes()
			require.Equal(t, []int{fixed[r], mapped[r]}, []int{f, m}, "what Resume takes again is said")
			require.ErrorContains(t, comms[r].Do(call(r)), "suspended: call Resume")
			_, err := comms[r].Register(in[r])
			require.ErrorContains(t, err, "suspended: call Resume")
			require.ErrorContains(t, comms[r].Footprint().Suspend(), "suspended")
		}
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Footprint().Resume() }))
		require.InDeltaSlice(t, before, used(), slack)
		require.ErrorContains(t, comms[0].Footprint().Resume(), "not suspended")
		for r, d := range list {
			require.NoError(t, d.Write(out[r], make([]byte, out[r].Len())))
			require.NoError(t, graphs[r].Launch(streams[r]))
		}
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Do(inPlace(c.Rank())) }))
		want := make([]float32, count)
		for r, d := range list {
			for i := range want { // both have the same sums, so each gets its own share from both
				want[i] = n * contribution[r*count/n+i%(count/n)]
			}
			require.NoError(t, comms[r].Synchronize(streams[r]))
			require.Equal(t, commtest.Floats(want), commtest.Read(t, d, out[r]))
		}
	}
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Footprint().Suspend() }))
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return c.Close() })) // suspended or not
	for _, g := range graphs {
		require.NoError(t, g.Close())
	}
}

// TestSuspendWithoutGPU: there is nothing to give back.
func TestSuspendWithoutGPU(t *testing.T) {
	comms, err := ringo.OpenLocal(1, ringo.Config{})
	require.NoError(t, err)
	f := comms[0].Footprint()
	fixed, mapped := f.Bytes()
	require.Zero(t, fixed+mapped)
	require.NoError(t, f.Suspend())
	require.NoError(t, ringo.Barrier(comms[0]))
	require.NoError(t, f.Resume())
	require.NoError(t, comms[0].Close())
}
