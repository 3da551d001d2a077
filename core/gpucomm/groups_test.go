package gpucomm

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Calls that go together are refused together: none of them is queued, and the communicator goes on.
func TestGroupsRefused(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	list := gputest.GPUs(t, 2)
	comms := open(t, list, nil)
	memory := memories(t, list, 256)
	g, x, far := comms[0], memory[0], memory[1]
	turn := func(f func() error) error {
		g.Life.Turn.Lock(context.Background())
		defer g.Life.Turn.Unlock()
		return f()
	}
	reduce := func(at mem.Region, s gpu.Stream) *call.Call {
		return &call.Call{Kind: call.AllReduce, In: at, Out: at, Count: 4, Type: kernels.Float32, Stream: s}
	}
	send := func(at mem.Region, s gpu.Stream) *call.Call {
		return &call.Call{Kind: call.Send, In: at, Count: 4, Type: kernels.Float32, Peer: 1, Stream: s}
	}
	gone, err := g.Device.NewStream()
	require.NoError(t, err)
	captured, err := g.Device.NewStream()
	require.NoError(t, err)
	defer g.Device.DestroyStream(captured)
	require.NoError(t, g.Device.DestroyStream(gone)) // now, for its handle comes again
	nothing := mem.Device(0, 0x100000, 16)
	type maker = func(mem.Region, gpu.Stream) *call.Call
	refused := map[string]func(maker) *call.Call{
		"memory of device 1, but the rank's GPU is device 0": func(c maker) *call.Call { return c(far, 0) },
		"In: ":     func(c maker) *call.Call { return c(nothing, 0) },
		"align it": func(c maker) *call.Call { return c(x.Slice(2, 16), 0) },
		"stream ":  func(c maker) *call.Call { return c(x, gone) },
	}
	if gputest.OnGPU() {
		delete(refused, "stream ") // NVIDIA's driver follows the handle of a stream that is gone
	}
	for says, bad := range refused {
		for _, err := range []error{
			turn(func() error { return g.Batch([]*call.Call{reduce(x, 0), bad(reduce)}) }),
			turn(func() error { return g.Exchange([]*call.Call{send(x, 0), bad(send)}) }),
		} {
			require.ErrorIs(t, err, call.ErrInvalid)
			require.ErrorContains(t, err, says)
			require.NoError(t, g.Life.Err())
		}
	}
	d := g.Device.Driver()
	require.NoError(t, g.Device.With(func() error { return d.StreamBeginCapture(captured, cuda.CaptureRelaxed) }))
	require.ErrorContains(t, turn(func() error { return g.Exchange([]*call.Call{send(x, 0), send(x, captured)}) }),
		"which are not in the same capture")
	require.NoError(t, g.Device.With(func() error {
		graph, err := d.StreamEndCapture(captured)
		return errors.Join(err, d.GraphDestroy(graph))
	}))
	require.NoError(t, g.Life.Err())
	started, _ := g.engine.Control().Progress()
	require.Zero(t, started)

	// Good ones work, on streams of their own.
	each(t, comms, func(g *Comm) error {
		r := g.Life.Rank
		if err := g.Device.Write(memory[r].Slice(0, 8),
			[]byte{byte(r + 1), 0, 0, 0, byte(10 * (r + 1)), 0, 0, 0}); err != nil {
			return err
		}
		s, err := g.Device.NewStream()
		if err != nil {
			return err
		}
		word := func(kind call.Kind, at int, s gpu.Stream) *call.Call {
			c := &call.Call{Kind: kind, Count: 1, Type: kernels.Int32, Peer: 1 - r, Stream: s}
			c.In, c.Out = memory[r].Slice(at, 4), memory[r].Slice(at, 4)
			return c
		}
		g.Life.Turn.Lock(context.Background())
		err = errors.Join(
			g.Exchange([]*call.Call{word(call.Send, 0, 0), word(call.Recv, 64, s)}),
			g.Batch([]*call.Call{word(call.AllReduce, 0, s), word(call.AllReduce, 4, s), word(call.AllReduce, 64, 0)}))
		g.Life.Turn.Unlock()
		return errors.Join(err, g.Device.Synchronize(0), g.Device.Synchronize(s), g.Device.DestroyStream(s))
	})
	for r, d := range list {
		got := make([]byte, 68)
		require.NoError(t, d.Read(got[:8], memory[r].Slice(0, 8)))
		require.NoError(t, d.Read(got[64:], memory[r].Slice(64, 4)))
		word := func(at int) uint32 { return binary.LittleEndian.Uint32(got[at:]) }
		require.Equal(t, []uint32{3, 30, 3}, []uint32{word(0), word(4), word(64)})
	}

	// A communicator that has failed takes no group.
	g.Life.FailIn("Test", errors.New("the roof is down"))
	require.ErrorContains(t, turn(func() error { return g.Batch([]*call.Call{reduce(x, 0), reduce(x, 0)}) }),
		"the roof is down")
	require.ErrorContains(t, turn(func() error { return g.Exchange([]*call.Call{send(x, 0), send(x, 0)}) }),
		"the roof is down")
}

// Puts, signals and waits with bad arguments are refused, and the communicator goes on.
func TestSignalsRefused(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := open(t, list, nil)
	memory := memories(t, list, 256)
	w := register(t, comms, memory, 0, 128)
	put := func(local mem.Region, peer, offset int) error { return w[0].Put(local, peer, offset, 0) }
	for says, err := range map[string]error{
		"peer 2 of 2 ranks": put(memory[0].Slice(0, 4), 2,
			0),
		"peer -1 of 2 ranks": w[0].Signal(-1, 0),
		"host memory: put memory of the rank's GPU": put(mem.Host(make([]byte, 4)),
			0, 0),
		"memory of device 1, but the rank's GPU is device 0": put(memory[1].Slice(0, 4), 0,
			0),
		"4 bytes at 125 of window #1 of 128 bytes": put(memory[0].Slice(0, 4), 0,
			125),
		"4 bytes at -1 of window #1 of 128 bytes": put(memory[0].Slice(0, 4), 0,
			-1),
		"wait for 1 signals of rank 2, after 0 others: a wait is for 16777216 at most": w[0].Wait([]Arrival{{2, 1}},
			0),
		"wait for -1 signals of rank 0, after 3 others: a wait is for 16777216 at most": w[0].Wait([]Arrival{{1, 3},
			{0, -1}}, 0),
		"wait for 16777216 signals of rank 0, after 1 others: a wait is for 16777216 at most": w[0].Wait([]Arrival{{1, 1},
			{0, 1 << 24}}, 0),
		"local memory: ": put(mem.Device(0, 0x100000, 4), 0, 0),
	} {
		require.ErrorIs(t, err, call.ErrInvalid, says)
		require.ErrorContains(t, err, says)
		require.NoError(t, comms[0].Life.Err())
	}
	require.NoError(t, put(memory[0].Slice(200, 4), 0, 124), "to its end")
	require.NoError(t, w[0].Signal(0, 0))
	require.NoError(t, w[0].Wait([]Arrival{{0, 1}, {0, 1}}, 0))
	require.NoError(t, list[0].Synchronize(0))
	closeAll(t, comms, w)
	err := w[0].Signal(1, 0)
	require.ErrorIs(t, err, call.ErrClosed)
	require.ErrorContains(t, err, "window #1")
}
