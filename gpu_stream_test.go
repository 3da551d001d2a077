package ringo

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
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

// Captures of every mode, the first of them with the first calls of all, become
// graphs that mix with calls that are not captured, on the same streams and others.
func TestDeviceCaptures(t *testing.T) {
	list := devices(t, 2)
	for name, mode := range map[string]cuda.CaptureMode{"global": cuda.CaptureGlobal, "thread": cuda.CaptureThreadLocal, "relaxed": cuda.CaptureRelaxed} {
		for _, algo := range []string{"", "ring"} {
			t.Run(name+"/"+algo, func(t *testing.T) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				comms := onDevices(t, list, Config{Algo: algo, Timeout: 20 * time.Second})
				lanes := lanesOf(t, comms, (*gpu.Device).NewStream)
				others := lanesOf(t, comms, (*gpu.Device).NewStream)
				graphs := make([]cuda.GraphExec, len(lanes))
				counts := make([]int, len(lanes))
				for i := range counts {
					counts[i] = laneCount / len(lanes)
				}
				for i := range lanes {
					l := &lanes[i]
					driver := l.d.Driver()
					require.NoError(t, l.d.With(func() error { return driver.StreamBeginCapture(l.stream, mode) }))
					require.NoError(t, l.link(1))
					// beside the capture, not part of it
					require.NoError(t, others[i].link(5))
					// in place: In is copied to memory that is allocated first
					require.NoError(t, l.c.Do(&Call{Kind: KindAlltoAllv, In: l.y, Out: l.y, InCounts: counts, OutCounts: counts, Type: Uint8, Stream: l.stream}))
					require.NoError(t, l.d.With(func() error {
						g, err := driver.StreamEndCapture(l.stream)
						require.NoError(t, err)
						graphs[i], err = driver.GraphInstantiate(g, 0)
						require.NoError(t, err)
						return driver.GraphDestroy(g)
					}))
				}
				for i := range lanes {
					require.NoError(t, others[i].kept(10))
				}
				for range 3 {
					for i := range lanes {
						l := &lanes[i]
						require.NoError(t, l.link(3))
						require.NoError(t, l.d.With(func() error { return l.d.Driver().GraphLaunch(graphs[i], l.stream) }))
					}
					for i := range lanes {
						require.NoError(t, lanes[i].kept(2))
					}
				}
				for i := range lanes {
					l := &lanes[i]
					require.NoError(t, l.d.With(func() error { return l.d.Driver().GraphExecDestroy(graphs[i]) }))
				}
				destroy(t, lanes)
				destroy(t, others)
			})
		}
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

// Several communicators on the same GPUs: used in turn, at once on two streams,
// and in different orders by different ranks.
func TestDeviceCommunicators(t *testing.T) {
	for _, algo := range []string{"", "ring"} {
		t.Run(algo, func(t *testing.T) {
			list := devices(t, 3)
			sets := make([][]lane, 3)
			for k := range sets {
				sets[k] = lanesOf(t, onDevices(t, list, Config{Algo: algo, Timeout: 20 * time.Second}), (*gpu.Device).NewStream)
			}
			for v := byte(1); v < 4; v++ { // in turn
				for k := range sets {
					for i := range sets[k] {
						require.NoError(t, sets[k][i].link(v+byte(k)))
					}
				}
			}
			for k := range sets {
				for i := range sets[k] {
					require.NoError(t, sets[k][i].kept(3*(3+byte(k))))
				}
			}
			var wg sync.WaitGroup
			errs := make([]error, len(sets))
			for k := range sets { // at once
				wg.Go(func() {
					for v := byte(1); v < 8; v++ {
						for i := range sets[k] {
							if err := sets[k][i].link(v); err != nil {
								errs[k] = err
								return
							}
						}
					}
				})
			}
			wg.Wait()
			noErrors(t, errs)
			for k := range sets {
				for i := range sets[k] {
					require.NoError(t, sets[k][i].kept(21))
				}
			}
			for v := byte(1); v < 4; v++ { // in other orders
				for i := range list {
					for k := range sets {
						require.NoError(t, sets[(i+k)%len(sets)][i].link(v))
					}
				}
			}
			for k := range sets {
				for i := range sets[k] {
					require.NoError(t, sets[k][i].kept(9))
				}
				destroy(t, sets[k])
			}
		})
	}
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

// One thread queues calls that each have a kernel to load, which a driver does when
// those before have ended.
func TestDeviceGroupLoads(t *testing.T) {
	comms := onDevices(t, devices(t, 2), Config{Timeout: 10 * time.Second})
	lanes := lanesOf(t, comms, (*gpu.Device).NewStream)
	defer destroy(t, lanes)
	g := NewGroup()
	for i := range lanes {
		for _, op := range []RedOp{Sum, Prod, Max} {
			call := lanes[i].reduce()
			call.Op = op
			g.Add(comms[i], call)
		}
	}
	require.NoError(t, g.Run())
	for i := range lanes {
		require.NoError(t, comms[i].Synchronize(lanes[i].stream))
	}
}
