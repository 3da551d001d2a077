package gpu

import (
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
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// TestDeviceFirstInCapture has the first operation on a communicator's GPUs be in
// a capture, in each mode: its memory and kernels are allocated and loaded quietly.
func TestDeviceFirstInCapture(t *testing.T) {
	tier.Long(t)
	const n, count = 2, 100
	modes := []string{cuda.CaptureGlobal: "global", cuda.CaptureThreadLocal: "thread-local",
		cuda.CaptureRelaxed: "relaxed"}
	for i, test := range []struct {
		name string
		cfg  ringo.Config
		call ringo.Call
	}{
		{"all-to-all in place", ringo.Config{Algo: "steps"}, ringo.Call{Kind: ringo.KindAlltoAll}},
		{"all-to-all in place, direct", ringo.Config{}, ringo.Call{Kind: ringo.KindAlltoAll}},
		{"scaled", ringo.Config{}, ringo.Call{Kind: ringo.KindAllReduce, Op: ringo.PreMulSum(2)}},
		{"in order of rank", ringo.Config{Algo: "steps", Deterministic: "rank order"}, ringo.Call{Kind: ringo.KindAllReduce}},
	} {
		for mode, name := range modes {
			if !tier.Full() && mode != i%len(modes) {
				continue
			}
			t.Run(test.name+"/"+name, func(t *testing.T) {
				list := gputest.GPUs(t, n, gputest.Unchecked(n))
				comms := commtest.OnDevices(t, list, test.cfg)
				test.call.Count, test.call.Type = count, ringo.Float32
				calls, want := make([]ringo.Call, n), make([][]byte, n)
				for r := range calls {
					in, _ := test.call.Shape(r, n)
					x := make([]float32, in)
					for i := range x {
						x[i] = float32(1000*r + i)
					}
					calls[r], want[r] = test.call, commtest.Floats(x)
					calls[r].In = commtest.Alloc(t, list[r], want[r])
					calls[r].Out = calls[r].In
				}
				commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
					host := test.call
					host.In = mem.Host(want[c.Rank()])
					host.Out = host.In
					return c.Do(&host)
				}))
				for r, d := range list { // one goroutine for all: nothing here waits
					s, err := d.NewStream()
					require.NoError(t, err)
					calls[r].Stream = s
					require.NoError(t, launchCaptured(d, cuda.CaptureMode(mode), s, func() error { return comms[r].Do(&calls[r]) }))
				}
				for r, d := range list {
					require.NoError(t, comms[r].Synchronize(calls[r].Stream))
					got := make([]byte, len(want[r]))
					require.NoError(t, d.Read(got, calls[r].Out))
					require.Equal(t, want[r], got)
					require.NoError(t, d.DestroyStream(calls[r].Stream))
				}
			})
		}
	}
}

// launchCaptured captures what f queues on a stream and launches it there.
func launchCaptured(d *gpu.Device, mode cuda.CaptureMode, s gpu.Stream, f func() error) error {
	driver := d.Driver()
	return d.With(func() error {
		if err := driver.StreamBeginCapture(s, mode); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
		g, err := driver.StreamEndCapture(s)
		if err != nil {
			return err
		}
		defer driver.GraphDestroy(g)
		x, err := driver.GraphInstantiate(g, 0)
		if err != nil {
			return err
		}
		defer driver.GraphExecDestroy(x) // when its launch has ended
		return driver.GraphLaunch(x, s)
	})
}

// Captures of every mode, the first of them with the first calls of all, become
// graphs that mix with calls that are not captured, on the same streams and others.
func TestDeviceCaptures(t *testing.T) {
	tier.Long(t)
	list := gputest.GPUs(t, 2)
	for name, mode := range map[string]cuda.CaptureMode{"global": cuda.CaptureGlobal, "thread": cuda.CaptureThreadLocal,
		"relaxed": cuda.CaptureRelaxed} {
		for i, algo := range []string{"", "ring"} {
			if !tier.Full() && (int(mode)+i)%2 > 0 {
				continue
			}
			t.Run(name+"/"+algo, func(t *testing.T) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				comms := commtest.OnDevices(t, list, ringo.Config{Algo: algo, Timeout: 20 * time.Second})
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
					require.NoError(t, l.c.Do(&ringo.Call{Kind: ringo.KindAlltoAllv, In: l.y, Out: l.y, InCounts: counts,
						OutCounts: counts, Type: ringo.Uint8, Stream: l.stream}))
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

// A communicator is opened and closed while a stream of its GPUs is captured by another thread,
// whose capture stays whole.
func TestDeviceOpenBesideCapture(t *testing.T) {
	list := gputest.GPUs(t, 2)
	for name, mode := range map[string]cuda.CaptureMode{"global": cuda.CaptureGlobal, "thread": cuda.CaptureThreadLocal,
		"relaxed": cuda.CaptureRelaxed} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			d := list[0]
			x := commtest.Alloc(t, d, make([]byte, 64))
			s, err := d.NewStream()
			require.NoError(t, err)
			require.NoError(t, d.With(func() error { return d.Driver().StreamBeginCapture(s, mode) }))
			require.NoError(t, d.Set(x.Ptr(), 1, 64, s))
			done := make(chan error)
			go func() {
				comms, err := ringo.OpenLocal(2, ringo.Config{Devices: list, Timeout: 20 * time.Second})
				for _, c := range comms {
					err = errors.Join(err, c.Close())
				}
				done <- err
			}()
			require.NoError(t, <-done)
			require.NoError(t, d.With(func() error {
				g, err := d.Driver().StreamEndCapture(s)
				return errors.Join(err, d.Driver().GraphDestroy(g))
			}))
			require.NoError(t, d.DestroyStream(s))
		})
	}
}
