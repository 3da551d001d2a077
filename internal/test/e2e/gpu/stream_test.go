package gpu

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
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

// lanesOf makes a lane for each rank, with a stream from create.
func lanesOf(t *testing.T, comms []*ringo.Comm, create func(d *gpu.Device) (gpu.Stream, error)) []lane {
	t.Helper()
	var all []lane
	for _, c := range comms {
		d := c.Device()
		l := lane{c: c, d: d, x: commtest.Alloc(t, d, make([]byte, laneCount)),
			y: commtest.Alloc(t, d, make([]byte, laneCount))}
		require.NoError(t, d.With(func() (err error) {
			l.stream, err = create(d)
			return err
		}))
		all = append(all, l)
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

func (l *lane) link(v byte) error {
	if err := l.fill(v); err != nil {
		return err
	}
	if err := l.c.Do(l.reduce()); err != nil {
		return err
	}
	return l.keep()
}

// kept checks what the chain has left.
func (l *lane) kept(v byte) error {
	if err := l.c.Synchronize(l.stream); err != nil {
		return err
	}
	got := make([]byte, laneCount)
	if err := l.d.Read(got, l.y); err != nil {
		return err
	}
	if !bytes.Equal(got, bytes.Repeat([]byte{v}, laneCount)) {
		return fmt.Errorf("rank %d: %d, want %d", l.c.Rank(), got[0], v)
	}
	return nil
}

// everyStream makes each kind of stream there is; those with end are destroyed.
var everyStream = map[string]struct {
	make func(d *gpu.Device) (gpu.Stream, error)
	end  bool
}{
	"null":         {func(*gpu.Device) (gpu.Stream, error) { return 0, nil }, false},
	"legacy":       {func(*gpu.Device) (gpu.Stream, error) { return gpu.Legacy, nil }, false},
	"per thread":   {func(*gpu.Device) (gpu.Stream, error) { return gpu.PerThread, nil }, false},
	"blocking":     {func(d *gpu.Device) (gpu.Stream, error) { return d.Driver().StreamCreate(0, 0) }, true},
	"non-blocking": {func(d *gpu.Device) (gpu.Stream, error) { return d.NewStream() }, true},
}

// destroy ends the lanes' streams.
func destroy(t *testing.T, lanes []lane) {
	t.Helper()
	for _, l := range lanes {
		require.NoError(t, l.d.DestroyStream(l.stream))
	}
}

// Results are ordered on every kind of stream, without the host waiting; one
// thread drives all GPUs, call by call and in groups, or each has its own.
func TestDeviceStreams(t *testing.T) {
	tier.Long(t)
	list := gputest.GPUs(t, 3)
	for _, algo := range []string{"", "ring"} {
		comms := commtest.OnDevices(t, list, ringo.Config{Algo: algo, Timeout: 20 * time.Second})
		for name, kind := range everyStream {
			if algo != "" && !kind.end && !tier.Full() {
				continue
			}
			t.Run(algo+"/"+name, func(t *testing.T) {
				runtime.LockOSThread() // which may have a stream of its own
				defer runtime.UnlockOSThread()
				lanes := lanesOf(t, comms, kind.make)
				for v := byte(1); v < 6; v++ {
					for i := range lanes {
						require.NoError(t, lanes[i].link(v))
					}
				}
				for i := range lanes {
					require.NoError(t, lanes[i].kept(15))
				}
				g := ringo.NewGroup()
				for v := byte(1); v < 4; v++ {
					for i := range lanes {
						require.NoError(t, lanes[i].fill(v))
						g.Add(lanes[i].c, lanes[i].reduce())
					}
					require.NoError(t, g.Run())
					for i := range lanes {
						require.NoError(t, lanes[i].keep())
					}
				}
				for i := range lanes {
					require.NoError(t, lanes[i].kept(9))
				}
				commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					l := lanes[c.Rank()]
					for v := byte(1); v < 6; v++ {
						if err := l.link(v); err != nil {
							return err
						}
					}
					return l.kept(15)
				}))
				if kind.end {
					destroy(t, lanes)
				}
			})
		}
	}
}

// A started call is queued by another thread, so it cannot be on the per-thread stream.
func TestDeviceStarted(t *testing.T) {
	comms := commtest.OnDevices(t, gputest.GPUs(t, 2), ringo.Config{})
	lanes := lanesOf(t, comms, everyStream["per thread"].make)
	require.ErrorIs(t, comms[0].Start(lanes[0].reduce()).Wait(), ringo.ErrInvalid)
	for i := range lanes {
		lanes[i].stream = 0
		require.NoError(t, lanes[i].fill(7))
		require.NoError(t, comms[i].Start(lanes[i].reduce()).Wait())
		require.NoError(t, lanes[i].keep())
	}
	for i := range lanes {
		require.NoError(t, lanes[i].kept(14))
	}
}

// A communicator's calls happen in order on whichever streams they are.
func TestDeviceAcrossStreams(t *testing.T) {
	comms := commtest.OnDevices(t, gputest.GPUs(t, 2), ringo.Config{Timeout: 20 * time.Second})
	a := lanesOf(t, comms, (*gpu.Device).NewStream)
	b := lanesOf(t, comms, (*gpu.Device).NewStream)
	for i := range a {
		b[i].x = a[i].x
		require.NoError(t, a[i].fill(1))
		for range 3 {
			require.NoError(t, comms[i].Do(a[i].reduce()))
			require.NoError(t, comms[i].Do(b[i].reduce()))
		}
		require.NoError(t, b[i].keep())
	}
	for i := range b {
		require.NoError(t, b[i].kept(64))
	}
	destroy(t, a)
	destroy(t, b)
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
			same("streams", func() { lanes = lanesOf(t, comms, (*gpu.Device).NewStream) })
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
					send := &ringo.Call{Kind: ringo.KindSend, In: lanes[i].x, Out: mem.Device(i, 0, 0), Count: 10, Type: ringo.Int8,
						Peer: 1 - i, Stream: lanes[i].stream}
					recv := &ringo.Call{Kind: ringo.KindRecv, In: mem.Device(i, 0, 0), Out: lanes[i].y, Count: 10, Type: ringo.Int8,
						Peer: 1 - i, Stream: lanes[i].stream}
					g.Add(comms[i], send)
					g.Add(comms[i], recv)
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
			same("destroy", func() { destroy(t, lanes) })
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
