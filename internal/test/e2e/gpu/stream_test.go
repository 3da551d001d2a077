package gpu

import (
	"bytes"
	"errors"
	"runtime"
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

// A lane is a rank with a stream and the memory of a chain of work on it.
type lane struct {
	c      *ringo.Comm
	d      *gpu.Device
	stream gpu.Stream
	x, y   mem.Region
}

const laneCount = 3000 // bytes

// lanesOf makes a lane on a stream for each rank.
func lanesOf(t *testing.T, comms []*ringo.Comm, s gpu.Stream) (all []lane) {
	t.Helper()
	for _, c := range comms {
		d := c.Device()
		all = append(all, lane{c: c, d: d, stream: s, x: commtest.Alloc(t, d, make([]byte, laneCount)),
			y: commtest.Alloc(t, d, make([]byte, laneCount))})
	}
	return all
}

// fill, reduce and keep queue a link of the chain: memory is set, reduced, and
// copied elsewhere, each the input of the next.
func (l *lane) fill(v byte) error { return l.d.Set(l.x.Ptr(), v, laneCount, l.stream) }

func (l *lane) reduce() *ringo.Call {
	return &ringo.Call{Kind: ringo.KindAllReduce, In: l.x, Out: l.x, Count: laneCount, Type: ringo.Uint8, Stream: l.stream}
}

func (l *lane) keep() error {
	return l.d.With(func() error { return l.d.Driver().MemcpyAsync(l.y.Ptr(), l.x.Ptr(), laneCount, l.stream) })
}

// kept checks what the chain has left.
func (l *lane) kept(t commtest.TB, v byte) {
	t.Helper()
	require.NoError(t, l.c.Synchronize(l.stream))
	require.Equal(t, bytes.Repeat([]byte{v}, laneCount), commtest.Read(t, l.d, l.y))
}

// A started call is queued by another thread, so it cannot be on the per-thread stream.
func TestDeviceStarted(t *testing.T) {
	comms := commtest.OnDevices(t, gputest.GPUs(t, 2), ringo.Config{})
	lanes := lanesOf(t, comms, gpu.PerThread)
	require.ErrorIs(t, comms[0].Start(lanes[0].reduce()).Wait(), ringo.ErrInvalid)
	for i := range lanes {
		lanes[i].stream = 0
		require.NoError(t, lanes[i].fill(7))
		require.NoError(t, comms[i].Start(lanes[i].reduce()).Wait())
		require.NoError(t, lanes[i].keep())
	}
	for i := range lanes {
		lanes[i].kept(t, 14)
	}
}

// No call changes the thread's current context or its capture mode.
func TestDeviceCallersContext(t *testing.T) {
	list := gputest.GPUs(t, 2, gputest.Unchecked(2))
	driver := list[0].Driver()
	theirs, err := list[1].Context()
	require.NoError(t, err)
	for name, ctx := range map[string]cuda.Context{"none": 0, "another device's": theirs} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			require.NoError(t, driver.CtxSetCurrent(ctx))
			defer driver.CtxSetCurrent(0)
			before, err := driver.ThreadExchangeStreamCaptureMode(cuda.CaptureThreadLocal)
			require.NoError(t, err)
			same := func(what string, f func()) {
				t.Helper()
				f()
				got, err := driver.CtxGetCurrent()
				require.NoError(t, err, what)
				require.Equal(t, ctx, got, what)
				mode, err := driver.ThreadExchangeStreamCaptureMode(cuda.CaptureThreadLocal)
				require.NoError(t, err, what)
				require.Equal(t, cuda.CaptureThreadLocal, mode, what)
			}
			var comms []*ringo.Comm
			var lanes []lane
			same("open", func() { comms = commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second}) })
			lanes = lanesOf(t, comms, 0)
			same("streams", func() {
				for i, d := range list {
					lanes[i].stream, err = d.NewStream()
					require.NoError(t, err)
				}
			})
			for k := ringo.KindBarrier; k < ringo.KindSend; k++ {
				for i := range lanes {
					call := lanes[i].reduce()
					if call.Kind, call.Out, call.Count = k, lanes[i].y, 100; k == ringo.KindBarrier {
						call.In, call.Out, call.Count = call.In.Slice(0, 0), call.Out.Slice(0, 0), 0
					}
					same(k.String(), func() { require.NoError(t, comms[i].Do(call)) })
				}
			}
			same("in place", func() {
				counts := []int{50, 50}
				for i := range lanes {
					require.NoError(t, comms[i].Do(&ringo.Call{Kind: ringo.KindAlltoAllv, In: lanes[i].x, Out: lanes[i].x,
						InCounts: counts, OutCounts: counts, Type: ringo.Int8, Stream: lanes[i].stream}))
				}
			})
			same("group", func() {
				g := ringo.NewGroup()
				for i := range lanes {
					g.Add(comms[i], &ringo.Call{Kind: ringo.KindSend, In: lanes[i].x, Count: 10, Type: ringo.Int8, Peer: 1 - i,
						Stream: lanes[i].stream})
					g.Add(comms[i], &ringo.Call{Kind: ringo.KindRecv, Out: lanes[i].y, Count: 10, Type: ringo.Int8, Peer: 1 - i,
						Stream: lanes[i].stream})
				}
				require.NoError(t, g.Run())
			})
			same("a bad call", func() {
				require.Error(t, comms[0].Do(&ringo.Call{Kind: ringo.KindBroadcast, In: lanes[1].x, Out: lanes[1].x, Count: 1,
					Type: ringo.Int8}))
			})
			same("synchronize", func() {
				for i := range lanes {
					require.NoError(t, comms[i].Synchronize(lanes[i].stream))
				}
			})
			same("destroy", func() {
				for _, l := range lanes {
					require.NoError(t, l.d.DestroyStream(l.stream))
				}
			})
			same("abort", func() { comms[0].Abort(nil) })
			same("close", func() {
				for _, c := range comms {
					require.NoError(t, c.Close())
				}
			})
			_, err = driver.ThreadExchangeStreamCaptureMode(before)
			require.NoError(t, err)
		})
	}
}

// A group of a call on host memory and one on a GPU, of two communicators, queues the
// latter from the caller's own thread: the per-thread stream is in order with the rest of
// that thread's work.
func TestGroupOnThread(t *testing.T) {
	list := gputest.GPUs(t, 2)
	host, comms := commtest.Local(t, 2, ringo.Config{}),
		commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
	lanes := lanesOf(t, comms, gpu.PerThread)
	commtest.Run(t, comms, func(c *commtest.Rank) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		l, x := &lanes[c.Rank()], []int32{1, 2}
		for _, hostFirst := range []bool{true, false} {
			require.NoError(c, l.fill(7))
			g := ringo.NewGroup()
			if hostFirst {
				g.Add(host[c.Rank()], ringo.AllReduceOf(x, ringo.Sum))
			}
			g.Add(c.Comm, l.reduce())
			if !hostFirst {
				g.Add(host[c.Rank()], ringo.AllReduceOf(x, ringo.Sum))
			}
			require.NoError(c, errors.Join(g.Run(), l.keep()))
			l.kept(c, 14)
		}
		require.Equal(c, []int32{4, 8}, x)
	})
}
