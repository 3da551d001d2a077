package gpu

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
)

// TestDeviceInConditionalBody captures a collective into the body of a conditional node,
// where CUDA allows no nodes for events: that ends with an error, at the latest when the
// graph is made executable, and leaves the communicator as it was.
func TestDeviceInConditionalBody(t *testing.T) {
	const n, count = 2, 100
	list := gputest.GPUs(t, n)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	var buffers []mem.Region
	for r, d := range list {
		buffers = append(buffers, commtest.Alloc(t, d, commtest.Floats(make([]float32, count))))
		s, driver := commtest.Stream(t, d), d.Driver()
		if v, err := driver.DriverGetVersion(); err != nil || v < 12040 {
			t.Skip("needs CUDA 12.4")
		}
		refused := d.With(func() error {
			ctx, err := driver.CtxGetCurrent()
			require.NoError(t, err)
			g, err := driver.GraphCreate()
			require.NoError(t, err)
			defer func() { require.NoError(t, driver.GraphDestroy(g)) }()
			v, err := driver.GraphConditionalHandleCreate(g, ctx, 1, cuda.ConditionAssignDefault)
			require.NoError(t, err)
			_, body, err := driver.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, ctx)
			require.NoError(t, err)
			require.NoError(t, driver.StreamBeginCaptureToGraph(s, body, nil, cuda.CaptureRelaxed))
			called := comms[r].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: buffers[r], Out: buffers[r], Count: count,
				Type: ringo.Float32, Stream: s})
			if _, err := driver.StreamEndCapture(s); err != nil || called != nil {
				return errors.Join(called, err)
			}
			x, err := driver.GraphInstantiate(g, 0)
			if err == nil {
				require.NoError(t, driver.GraphExecDestroy(x))
			}
			return err
		})
		require.Error(t, refused)
		t.Log(refused)
	}
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		return c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: buffers[c.Rank()], Out: buffers[c.Rank()], Count: count,
			Type: ringo.Float32})
	}))
}

// TestDeviceGraphInGraph launches a graph with a collective into other captures, twice, and
// destroys it: what it needs lives as long as the outer graph.
func TestDeviceGraphInGraph(t *testing.T) {
	const n, count = 2, 100
	list := gputest.GPUs(t, n)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	ones := make([]float32, count)
	for i := range ones {
		ones[i] = 1
	}
	var buffers []mem.Region
	outer := make([]cuda.GraphExec, n)
	streams := commtest.Streams(t, list)
	for r, d := range list {
		buffers = append(buffers, commtest.Alloc(t, d, commtest.Floats(ones)))
		s := streams[r]
		driver := d.Driver()
		require.NoError(t, d.With(func() error {
			require.NoError(t, driver.StreamBeginCapture(s, cuda.CaptureRelaxed))
			require.NoError(t, comms[r].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: buffers[r], Out: buffers[r], Count: count,
				Type: ringo.Float32, Stream: s}))
			inner, err := driver.StreamEndCapture(s)
			require.NoError(t, err)
			g, err := driver.GraphCreate()
			require.NoError(t, err)
			var last []cuda.GraphNode
			for range 2 {
				node, err := driver.GraphAddChildGraphNode(g, last, inner)
				require.NoError(t, err)
				last = []cuda.GraphNode{node}
			}
			outer[r], err = driver.GraphInstantiate(g, 0)
			return errors.Join(err, driver.GraphDestroy(g), driver.GraphDestroy(inner))
		}))
	}
	for range 2 {
		for r, d := range list {
			require.NoError(t, d.With(func() error { return d.Driver().GraphLaunch(outer[r], streams[r]) }))
		}
	}
	for i := range ones {
		ones[i] = n * n * n * n
	}
	for r, d := range list {
		require.NoError(t, comms[r].Synchronize(streams[r]))
		require.Equal(t, commtest.Floats(ones), commtest.Read(t, d, buffers[r]))
		require.NoError(t, d.With(func() error { return d.Driver().GraphExecDestroy(outer[r]) }))
	}
}
