package gpu

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
)

// A ringOfSignals is ranks that put data into the next one's window, eager and by graphs.
type ringOfSignals struct {
	comms   []*ringo.Comm
	streams []cuda.Stream
	mine    []mem.Region // what a rank puts
	whole   []mem.Region // its part of the window
	windows []*ringo.Window
}

const signalBytes = 1000

func newRingOfSignals(t *testing.T, n int, cfg ringo.Config) *ringOfSignals {
	list := gputest.GPUs(t, n)
	x := &ringOfSignals{comms: commtest.OnDevices(t, list, cfg), windows: make([]*ringo.Window, n)}
	for _, d := range list {
		x.streams = append(x.streams, commtest.Stream(t, d))
		x.mine = append(x.mine, commtest.Alloc(t, d, make([]byte, signalBytes)))
		x.whole = append(x.whole, commtest.AllocMapped(t, d, make([]byte, 4096)))
	}
	commtest.NoErrors(t, commtest.Each(x.comms, func(c *ringo.Comm) (err error) {
		x.windows[c.Rank()], err = c.Register(x.whole[c.Rank()])
		return err
	}))
	for _, w := range x.windows {
		require.Empty(t, w.Reason())
	}
	return x
}

// round has a rank put to the next one, wait for the one before, and tell it that its memory is free again.
func (x *ringOfSignals) round(t *testing.T, r int) {
	n, s := len(x.comms), x.streams[r]
	next, before := (r+1)%n, (r+n-1)%n
	require.NoError(t, x.windows[r].Put(x.mine[r], next, 17, s))
	require.NoError(t, x.windows[r].Wait([]ringo.Arrival{{Peer: before, Count: 1}}, s))
	// the data go on from here
	require.NoError(t, x.comms[r].Device().Driver().MemcpyAsync(x.mine[r].Ptr(), x.whole[r].Ptr()+17, signalBytes, s))
	require.NoError(t, x.windows[r].Signal(before, s))
	require.NoError(t, x.windows[r].Wait([]ringo.Arrival{{Peer: next, Count: 1}}, s))
}

// TestDeviceSignals has data go round, in launches and replays of one graph a rank.
func TestDeviceSignals(t *testing.T) {
	const n = 3
	x := newRingOfSignals(t, n, ringo.Config{})
	graphs := make([]*gpu.Graph, n)
	for r, c := range x.comms {
		d := c.Device()
		data := make([]byte, signalBytes)
		for i := range data {
			data[i] = byte(10*r + i)
		}
		require.NoError(t, d.Write(x.mine[r], data))
		var err error
		graphs[r], err = d.Capture(x.streams[r], func() error {
			x.round(t, r)
			return nil
		})
		require.NoError(t, err)
	}
	rounds := 0
	for _, eager := range []bool{true, false, false, true, false} {
		rounds++
		for r, c := range x.comms { // one thread for all: nothing waits
			require.NoError(t, c.Device().With(func() error {
				if !eager {
					return graphs[r].Launch(x.streams[r])
				}
				x.round(t, r)
				return nil
			}))
		}
	}
	for r, c := range x.comms {
		require.NoError(t, c.Synchronize(x.streams[r]))
		got := make([]byte, signalBytes)
		require.NoError(t, c.Device().Read(got, x.mine[r]))
		for i, b := range got {
			require.Equal(t, byte(10*((r+n*rounds-rounds)%n)+i), b, "rank %d, byte %d", r, i)
		}
		require.NoError(t, graphs[r].Close())
	}
	self, s := x.windows[1], x.streams[1] // several signals, the rank's own too
	for range 2 {
		require.NoError(t, self.Signal(1, s))
		require.NoError(t, x.windows[0].Signal(1, x.streams[0]))
	}
	require.NoError(t, self.Wait([]ringo.Arrival{{Peer: 1, Count: 1}, {Peer: 0, Count: 2}, {Peer: 1, Count: 1}}, s))
	require.NoError(t, x.comms[1].Synchronize(s))
	for _, wrong := range []error{
		self.Put(x.mine[1], 3, 0, s), self.Put(x.mine[1], 0, 4000, s), self.Put(x.mine[0], 0, 0, s),
		self.Put(mem.Of(make([]byte, 4)), 0, 0, s),
		self.Wait([]ringo.Arrival{{Peer: 0, Count: -1}}, s), self.Wait([]ringo.Arrival{{Peer: -1, Count: 1}}, s),
		self.Wait(slices.Repeat([]ringo.Arrival{{Peer: 1, Count: 1 << 24}}, 256), s), self.Signal(-1, s),
	} {
		require.ErrorIs(t, wrong, ringo.ErrInvalid)
	}
	commtest.NoErrors(t, commtest.Each(x.comms, func(c *ringo.Comm) error { return x.windows[c.Rank()].Close() }))
	require.ErrorIs(t, self.Signal(0, s), ringo.ErrClosed)
}

// TestDeviceSignalNeverComes: a wait ends with its communicator, or at the deadline, and the error names the peer.
func TestDeviceSignalNeverComes(t *testing.T) {
	x := newRingOfSignals(t, 2, ringo.Config{})
	require.NoError(t, x.windows[0].Wait([]ringo.Arrival{{Peer: 1, Count: 1}}, x.streams[0]))
	x.comms[1].Abort(nil)
	require.ErrorContains(t, x.comms[0].Synchronize(x.streams[0]), "rank 1")

	x = newRingOfSignals(t, 2, ringo.Config{Timeout: 300 * time.Millisecond})
	require.NoError(t, x.windows[0].Wait([]ringo.Arrival{{Peer: 1, Count: 1}}, x.streams[0]))
	err := x.comms[0].Synchronize(x.streams[0])
	require.ErrorIs(t, err, ringo.ErrTimeout)
	require.ErrorContains(t, err, "Signal: rank 0")
	require.ErrorContains(t, err, "rank 1")
}

// TestSignalsNeedWindows: ranks that do not reach each other's memory have no signals, and the error says why.
func TestSignalsNeedWindows(t *testing.T) {
	list := gputest.GPUs(t, 1)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	w, err := comms[0].Register(commtest.Alloc(t, list[0], make([]byte, 64)))
	require.NoError(t, err)
	require.ErrorIs(t, w.Signal(0, 0), ringo.ErrUnsupported)
	require.NoError(t, w.Close())
}
