package gpucomm

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// Operations that are captured on two streams in turn make a graph without branches: each
// depends on the one before and on nothing older.
func TestForkMakesNoBranches(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := open(t, gputest.GPUs(t, 2), nil)[0] // its capture is thrown away
	d := g.Device.Driver()
	x := memories(t, []*gpu.Device{g.Device}, 64)[0]
	var s [2]gpu.Stream
	for i := range s {
		var err error
		s[i], err = g.Device.NewStream()
		require.NoError(t, err)
		defer g.Device.DestroyStream(s[i])
	}
	fork, err := g.Device.NewEvent()
	require.NoError(t, err)
	defer g.Device.DestroyEvent(fork)
	require.NoError(t, g.Device.With(func() error {
		require.NoError(t, d.StreamBeginCapture(s[0], cuda.CaptureRelaxed))
		require.NoError(t, cuda.After(d, s[1], s[0], fork))
		for i := range 6 {
			require.NoError(t, g.do(&call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 16, Type: kernels.Float32,
				Stream: s[i/2%2]}))
			last := s[i/2%2]
			var before, now cuda.CaptureInfo
			g.Life.Turn.Lock(context.Background())
			e, err := g.admission.admitStream(s[1], cuda.Sight{})
			require.NoError(t, err)
			require.NoError(t, g.order.begin(&e))
			before, err = d.StreamGetCaptureInfo(last)
			require.NoError(t, err)
			now, err = d.StreamGetCaptureInfo(s[1])
			require.NoError(t, err)
			require.NoError(t, g.order.end(&e))
			g.Life.Turn.Unlock()
			require.Equal(t, before.Dependencies, now.Dependencies)
		}
		require.NoError(t, cuda.After(d, s[0], s[1], fork))
		graph, err := d.StreamEndCapture(s[0])
		require.NoError(t, err)
		return d.GraphDestroy(graph)
	}))
}

// What a graph holds is given back when the graph is gone.
func TestHeld(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := open(t, gputest.GPUs(t, 2), nil)[0] // its graph never runs
	x := memories(t, []*gpu.Device{g.Device}, 64)[0]
	s, err := g.Device.NewStream()
	require.NoError(t, err)
	defer g.Device.DestroyStream(s)
	graph, err := g.Device.Capture(s, func() error {
		return g.do(&call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 16, Type: kernels.Float32, Stream: s})
	})
	require.NoError(t, err)
	require.Equal(t, 1, int(g.estate.graphs.Load()))
	require.NoError(t, graph.Close())
	require.Eventually(t, func() bool { return int(g.estate.graphs.Load()) == 0 }, 10*time.Second, time.Millisecond)
}
