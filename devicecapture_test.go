package ringo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// TestDeviceFirstInCapture has the first operation of a communicator be one that
// needs scratch memory, in a capture of each mode.
func TestDeviceFirstInCapture(t *testing.T) {
	const count = 100 // elements for each peer
	for mode, name := range []string{cuda.CaptureGlobal: "global", cuda.CaptureThreadLocal: "thread-local", cuda.CaptureRelaxed: "relaxed"} {
		for _, algo := range []string{"", "steps"} {
			t.Run(fmt.Sprintf("%s %s", name, algo), func(t *testing.T) {
				list := devices(t, 2)
				comms := onDevices(t, list, Config{Algo: algo})
				var streams []gpu.Stream
				var graphs []cuda.GraphExec
				var all []Region
				for r, c := range comms {
					d := list[r]
					s, err := d.NewStream()
					require.NoError(t, err)
					x := make([]float32, 2*count)
					for i := range x {
						x[i] = float32(1000*r + i)
					}
					all = append(all, alloc(t, d, floats(x)))
					require.NoError(t, d.With(func() error {
						driver := d.Driver()
						require.NoError(t, driver.StreamBeginCapture(s, cuda.CaptureMode(mode)))
						require.NoError(t, c.Do(&Call{Kind: KindAlltoAll, In: all[r], Out: all[r], Count: count, Type: Float32, Stream: s}))
						g, err := driver.StreamEndCapture(s)
						require.NoError(t, err)
						x, err := driver.GraphInstantiate(g, 0)
						require.NoError(t, err)
						streams, graphs = append(streams, s), append(graphs, x)
						return driver.GraphDestroy(g)
					}))
				}
				for range 3 { // there, back and there again
					for r, d := range list {
						require.NoError(t, d.With(func() error { return d.Driver().GraphLaunch(graphs[r], streams[r]) }))
					}
				}
				for r, d := range list {
					require.NoError(t, comms[r].Synchronize(streams[r]))
					want, got := make([]float32, 2*count), make([]byte, 8*count)
					for i := range want {
						want[i] = float32(1000*(i/count) + r*count + i%count)
					}
					require.NoError(t, d.Read(got, all[r]))
					require.Equal(t, floats(want), got)
					require.NoError(t, d.With(func() error { return d.Driver().GraphExecDestroy(graphs[r]) }))
					require.NoError(t, d.DestroyStream(streams[r]))
				}
			})
		}
	}
}
