package ringo

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// A lane is a rank with a stream and the memory of a chain of work on it.
type lane struct {
	c      *Comm
	d      *gpu.Device
	stream gpu.Stream
	x, y   mem.Region
}

const laneCount = 3000 // bytes

// lanesOf have streams that create makes.
func lanesOf(t *testing.T, comms []*Comm, create func(d *gpu.Device) (gpu.Stream, error)) []lane {
	t.Helper()
	var all []lane
	for _, c := range comms {
		d := c.Device()
		l := lane{c: c, d: d, x: alloc(t, d, make([]byte, laneCount)), y: alloc(t, d, make([]byte, laneCount))}
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

func (l *lane) reduce() *Call {
	return &Call{Kind: KindAllReduce, In: l.x, Out: l.x, Count: laneCount, Type: Uint8, Stream: l.stream}
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
	list := devices(t, 3)
	for _, algo := range []string{"", "ring"} {
		comms := onDevices(t, list, Config{Algo: algo, Timeout: 20 * time.Second})
		for name, kind := range everyStream {
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
				g := NewGroup()
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
				noErrors(t, each(comms, func(c *Comm) error {
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

// What is started, and not done, is queued by another thread.
func TestDeviceStarted(t *testing.T) {
	comms := onDevices(t, devices(t, 2), Config{})
	lanes := lanesOf(t, comms, everyStream["per thread"].make)
	require.ErrorIs(t, comms[0].Start(lanes[0].reduce()).Wait(), ErrInvalid)
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
	comms := onDevices(t, devices(t, 2), Config{Timeout: 20 * time.Second})
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
	list := devices(t, 2)
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
			var comms []*Comm
			var lanes []lane
			same("open", func() { comms = onDevices(t, list, Config{Timeout: 20 * time.Second}) })
			same("streams", func() { lanes = lanesOf(t, comms, (*gpu.Device).NewStream) })
			for k := KindBarrier; k < KindSend; k++ {
				for i := range lanes {
					call := lanes[i].reduce()
					if call.Kind, call.Out, call.Count = k, lanes[i].y, 100; k == KindBarrier {
						call.In, call.Out, call.Count = call.In.Slice(0, 0), call.Out.Slice(0, 0), 0
					}
					same(k.String(), func() { require.NoError(t, comms[i].Do(call)) })
				}
			}
			same("in place", func() {
				counts := []int{50, 50}
				for i := range lanes {
					require.NoError(t, comms[i].Do(&Call{Kind: KindAlltoAllv, In: lanes[i].x, Out: lanes[i].x, InCounts: counts, OutCounts: counts, Type: Int8, Stream: lanes[i].stream}))
				}
			})
			same("group", func() {
				g := NewGroup()
				for i := range lanes {
					send := &Call{Kind: KindSend, In: lanes[i].x, Out: mem.Device(i, 0, 0), Count: 10, Type: Int8, Peer: 1 - i, Stream: lanes[i].stream}
					recv := &Call{Kind: KindRecv, In: mem.Device(i, 0, 0), Out: lanes[i].y, Count: 10, Type: Int8, Peer: 1 - i, Stream: lanes[i].stream}
					g.Add(comms[i], send)
					g.Add(comms[i], recv)
				}
				require.NoError(t, g.Run())
			})
			same("a bad call", func() {
				require.Error(t, comms[0].Do(&Call{Kind: KindBroadcast, In: lanes[1].x, Out: lanes[1].x, Count: 1, Type: Int8}))
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
