package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// uneven is an all-to-all-v of rank r that sends i+k+1 bytes to rank i, counted from out.
func uneven(r, n, k int, in, out mem.Region, s gpu.Stream) *ringo.Call {
	c := &ringo.Call{Kind: ringo.KindAlltoAllv, In: in, Out: out, Type: ringo.Uint8, Stream: s}
	for i := range n {
		c.InCounts, c.OutCounts = append(c.InCounts, i+k+1), append(c.OutCounts, r+k+1)
	}
	return c
}

// A call that waits for room ends with a sentence after Config.Timeout or an Abort, and a Close with calls in the ring
// ends too. For the time-out the stream is held, as the watcher gives up on kernels that run at the same time.
func TestDeviceWorkFIFOFull(t *testing.T) {
	tier.Long(t)
	const n = 3
	for _, abort := range []bool{false, true} {
		t.Run(fmt.Sprint("abort ", abort), func(t *testing.T) {
			var emu []gputest.Option
			if !abort && !gputest.OnGPU() {
				emu = append(emu, gputest.Emu(cudaemu.Config{Devices: n, Stall: -1, Plain: !tier.Full()})) // for the holder
			}
			list := gputest.GPUs(t, n, emu...)
			cfg := ringo.Config{WorkFIFOBytes: 1, WorkArgsBytes: 1, Algo: "steps", Timeout: 300 * time.Millisecond}
			if abort {
				cfg.Timeout = time.Minute
			}
			comms := commtest.OnDevices(t, list, cfg)
			in, out := commtest.Alloc(t, list[0], make([]byte, 100)), commtest.Alloc(t, list[0], make([]byte, 100))
			s, err := commtest.Stream(t, list[0]), error(nil)
			if abort {
				go func() {
					waitForRoom()
					comms[0].Abort(errors.New("enough"))
				}()
			} else {
				h := newHolder(t, list[0])
				defer h.letGo()
				h.hold(list[0], s, 1)
			}
			for i := 0; i < 20 && err == nil; i++ { // ranks 1 and 2 call nothing
				err = comms[0].Do(uneven(0, n, 1, in, out, s))
			}
			require.ErrorContains(t, err, "work fifo full: no room for ")
			require.ErrorContains(t, err, "produced ")
			require.ErrorContains(t, err, "the oldest call that has not ended is AlltoAllv #1")
			if abort {
				require.ErrorIs(t, err, ringo.ErrAborted)
			} else {
				require.ErrorIs(t, err, ringo.ErrTimeout)
				require.ErrorContains(t, err, "none of its kernels runs")
			}
		})
	}
}

// waitForRoom ends when a goroutine of this process has been seen to wait for room in a ring ten times in a row, or
// after 30 s.
func waitForRoom() {
	stacks := make([]byte, 1<<20)
	seen := 0
	for end := time.Now().Add(30 * time.Second); seen < 10 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if seen++; !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("fifo.(*Space).Reserve")) {
			seen = 0
		}
	}
}

// The sends and receives of a group may be on different streams, captured too: the group
// comes after all earlier work of these streams, and before all later work (B13).
func TestDeviceGroupOfStreams(t *testing.T) {
	const n, room, rounds = 2, 2000, 6
	list := gputest.GPUs(t, n)
	comms := commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
	commtest.Run(t, comms, func(c *commtest.Rank) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r, d, driver := c.Rank(), c.Device(), c.Device().Driver()
		x, y := commtest.Alloc(c, d, make([]byte, room)), commtest.Alloc(c, d, make([]byte, room))
		z := commtest.Alloc(c, d, make([]byte, rounds*room))
		a, b := commtest.Stream(c, d), commtest.Stream(c, d)
		group := func() error {
			g := ringo.NewGroup()
			g.Add(c.Comm, &ringo.Call{Kind: ringo.KindSend, Peer: 1 - r, In: x, Count: room, Type: ringo.Uint8, Stream: a})
			g.Add(c.Comm, &ringo.Call{Kind: ringo.KindRecv, Peer: 1 - r, Out: y, Count: room, Type: ringo.Uint8, Stream: b})
			return g.Run()
		}
		ev, err := d.NewEvent()
		require.NoError(c, err)
		graph, err := d.Capture(a,
			func() error { return errors.Join(cuda.After(driver, b, a, ev), group(), cuda.After(driver, a, b, ev)) })
		require.NoError(c, errors.Join(err, d.DestroyEvent(ev)))
		var want []byte
		for k := range rounds {
			want = append(want, bytes.Repeat([]byte{byte(10*k + 1 - r + 1)}, room)...)
			require.NoError(c, d.Set(x.Ptr(), byte(10*k+r+1), room, a))
			s := b // the stream of the receive
			if k%2 == 0 {
				require.NoError(c, group())
			} else {
				s = a
				require.NoError(c, graph.Launch(a))
			}
			require.NoError(c, d.With(func() error { return driver.MemcpyAsync(z.Ptr()+uintptr(k*room), y.Ptr(), room, s) }))
			if k%2 == 0 { // the graph does not wait for the copy on the other stream
				require.NoError(c, errors.Join(c.Synchronize(a), c.Synchronize(b)))
			}
		}
		require.NoError(c, errors.Join(c.Synchronize(a), c.Synchronize(b), graph.Close()))
		require.Equal(c, want, commtest.Read(c, d, z))
	})
	d, s, x := list[0], commtest.Stream(t, list[0]), commtest.Alloc(t, list[0], make([]byte, 2))
	require.NoError(t, d.With(func() error { return d.Driver().StreamBeginCapture(s, cuda.CaptureRelaxed) }))
	g := ringo.NewGroup()
	g.Add(comms[0], &ringo.Call{Kind: ringo.KindSend, Peer: 1, In: x.Slice(0, 1), Count: 1, Type: ringo.Uint8, Stream: s})
	g.Add(comms[0], &ringo.Call{Kind: ringo.KindRecv, Peer: 1, Out: x.Slice(1, 1), Count: 1, Type: ringo.Uint8})
	require.ErrorIs(t, g.Run(), ringo.ErrInvalid, "one stream is captured")
	require.NoError(t, d.With(func() error {
		graph, err := d.Driver().StreamEndCapture(s)
		return errors.Join(err, d.Driver().GraphDestroy(graph))
	}))
}
