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

// workFIFOs are shapes of the memory for tables, with the one first that makes most use of it.
var workFIFOs = []struct {
	name string
	cfg  ringo.Config
}{
	{"all in a ring", ringo.Config{WorkFIFOBytes: 1, WorkArgsBytes: 1}},
	{"smallest ring", ringo.Config{WorkFIFOBytes: 1}},
	{"default", ringo.Config{}},
}

// uneven is an all-to-all-v of rank r that sends i+k+1 bytes to rank i, counted from out.
func uneven(r, n, k int, in, out mem.Region, s gpu.Stream) *ringo.Call {
	c := &ringo.Call{Kind: ringo.KindAlltoAllv, In: in, Out: out, Type: ringo.Uint8, Stream: s}
	for i := range n {
		c.InCounts, c.OutCounts = append(c.InCounts, i+k+1), append(c.OutCounts, r+k+1)
	}
	return c
}

// Calls with tables mix with graphs that have such calls, which run late, often or never,
// on several streams, however small the ring for tables is (B14).
func TestDeviceWorkFIFO(t *testing.T) {
	tier.Long(t)
	const n, room = 3, 400
	for _, shape := range tier.Some(3, workFIFOs) {
		t.Run(shape.name, func(t *testing.T) {
			cfg := shape.cfg
			list := gputest.GPUs(t, n)
			cfg.Timeout, cfg.Algo = 20*time.Second, "steps"
			comms := commtest.OnDevices(t, list, cfg)
			type buffers struct{ in, out [4]mem.Region }
			all := make([]buffers, n)
			for r := range all {
				for k := range all[r].in {
					all[r].in[k] = commtest.Alloc(t, list[r], bytes.Repeat([]byte{byte(16*k + r + 1)}, room))
					all[r].out[k] = commtest.Alloc(t, list[r], make([]byte, room))
				}
			}
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) (err error) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				r, d := c.Rank(), c.Device()
				b := &all[r]
				var streams [2]gpu.Stream
				for i := range streams {
					if streams[i], err = d.NewStream(); err != nil {
						return err
					}
					defer d.DestroyStream(streams[i])
				}
				var graphs [2]*gpu.Graph
				for i := range graphs {
					graphs[i], err = d.Capture(streams[i],
						func() error { return c.Do(uneven(r, n, 10*i, b.in[i], b.out[i], streams[i])) })
					if err != nil {
						return err
					}
					defer graphs[i].Close()
				}
				for k := range 12 {
					at := 2 + k%2
					if err := c.Do(uneven(r, n, 30+k, b.in[at], b.out[at], streams[at-2])); err != nil {
						return err
					}
					if k > 8 { // a graph runs late; in the first half of the test none does
						if err := graphs[k%2].Launch(streams[1-k%2]); err != nil {
							return err
						}
					}
					exchange := ringo.NewGroup()
					for i := range 40 { // of one stream
						other := (r + 1 + i%(n-1)) % n
						exchange.Add(c, &ringo.Call{Kind: ringo.KindSend, Peer: other, In: b.in[3].Slice(i, 1), Count: 1,
							Type: ringo.Uint8, Stream: streams[0]})
						exchange.Add(c, &ringo.Call{Kind: ringo.KindRecv, Peer: (r - 1 - i%(n-1) + 2*n) % n,
							Out: b.out[3].Slice(room-1-i, 1), Count: 1, Type: ringo.Uint8, Stream: streams[0]})
					}
					if err := exchange.Run(); err != nil {
						return err
					}
				}
				return errors.Join(c.Synchronize(streams[0]), c.Synchronize(streams[1]))
			}))
			for r := range n {
				for k, plus := range []int{0, 10, 40, 41} {
					var want []byte
					for from := range n {
						want = append(want, bytes.Repeat([]byte{byte(16*k + from + 1)}, r+plus+1)...)
					}
					got := make([]byte, room)
					require.NoError(t, list[r].Read(got, all[r].out[k]))
					require.Equal(t, want, got[:len(want)], "rank %d, buffer %d", r, k)
				}
				got := make([]byte, room)
				require.NoError(t, list[r].Read(got, all[r].out[3]))
				for i := range 40 {
					require.EqualValues(t, 48+(r-1-i%(n-1)+2*n)%n+1, got[room-1-i])
				}
			}
		})
	}
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
			s, err := list[0].NewStream()
			require.NoError(t, err)
			defer list[0].DestroyStream(s)
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
	x, y, z := make([]mem.Region, n), make([]mem.Region, n), make([]mem.Region, n)
	for r, d := range list {
		x[r], y[r], z[r] = commtest.Alloc(t, d, make([]byte, room)), commtest.Alloc(t, d, make([]byte, room)),
			commtest.Alloc(t, d, make([]byte, rounds*room))
	}
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r, d := c.Rank(), c.Device()
		a, err := d.NewStream()
		if err != nil {
			return err
		}
		b, err := d.NewStream()
		if err != nil {
			return err
		}
		group := func() error {
			g := ringo.NewGroup()
			g.Add(c, &ringo.Call{Kind: ringo.KindSend, Peer: 1 - r, In: x[r], Count: room, Type: ringo.Uint8, Stream: a})
			g.Add(c, &ringo.Call{Kind: ringo.KindRecv, Peer: 1 - r, Out: y[r], Count: room, Type: ringo.Uint8, Stream: b})
			return g.Run()
		}
		ev, err := d.NewEvent()
		if err != nil {
			return err
		}
		driver := d.Driver()
		graph, err := d.Capture(a,
			func() error { return errors.Join(cuda.After(driver, b, a, ev), group(), cuda.After(driver, a, b, ev)) })
		if err = errors.Join(err, d.DestroyEvent(ev)); err != nil {
			return err
		}
		for k := range rounds {
			if err := d.Set(x[r].Ptr(), byte(10*k+r+1), room, a); err != nil {
				return err
			}
			s := b // the stream of the receive
			if k%2 == 0 {
				err = group()
			} else {
				s, err = a, graph.Launch(a)
			}
			if err != nil {
				return err
			}
			err = d.With(func() error { return driver.MemcpyAsync(z[r].Ptr()+uintptr(k*room), y[r].Ptr(), room, s) })
			if err != nil {
				return err
			}
			if k%2 == 0 { // the graph does not wait for the copy on the other stream
				if err := errors.Join(c.Synchronize(a), c.Synchronize(b)); err != nil {
					return err
				}
			}
		}
		return errors.Join(c.Synchronize(a), c.Synchronize(b), graph.Close(), d.DestroyStream(a), d.DestroyStream(b))
	}))
	for r, d := range list {
		got, want := make([]byte, rounds*room), []byte(nil)
		require.NoError(t, d.Read(got, z[r]))
		for k := range rounds {
			want = append(want, bytes.Repeat([]byte{byte(10*k + 1 - r + 1)}, room)...)
		}
		require.Equal(t, want, got)
	}
	s, err := list[0].NewStream()
	require.NoError(t, err)
	defer list[0].DestroyStream(s)
	require.NoError(t, list[0].With(func() error { return list[0].Driver().StreamBeginCapture(s, cuda.CaptureRelaxed) }))
	g := ringo.NewGroup()
	g.Add(comms[0], &ringo.Call{Kind: ringo.KindSend, Peer: 1, In: x[0], Count: 1, Type: ringo.Uint8, Stream: s})
	g.Add(comms[0], &ringo.Call{Kind: ringo.KindRecv, Peer: 1, Out: y[0], Count: 1, Type: ringo.Uint8})
	require.ErrorIs(t, g.Run(), ringo.ErrInvalid, "one stream is captured")
	require.NoError(t, list[0].With(func() error {
		graph, err := list[0].Driver().StreamEndCapture(s)
		if err != nil {
			return err
		}
		return list[0].Driver().GraphDestroy(graph)
	}))
}

// One thread may drive all GPUs, with a group that is longer than the ring (B13): while one
// rank waits for room the others come.
func TestDeviceLongGroupOfAll(t *testing.T) {
	const n, messages = 2, 150
	list := gputest.GPUs(t, n)
	comms := commtest.OnDevices(t, list, ringo.Config{WorkFIFOBytes: 1, WorkArgsBytes: 1, Timeout: 10 * time.Second})
	lanes := lanesOf(t, comms, (*gpu.Device).NewStream)
	defer destroy(t, lanes)
	g := ringo.NewGroup()
	for r := range lanes {
		l := &lanes[r]
		require.NoError(t, l.fill(byte(r+1)))
		for i := range messages {
			g.Add(l.c, &ringo.Call{Kind: ringo.KindSend, Peer: 1 - r, In: l.x.Slice(i, 20), Count: 20, Type: ringo.Uint8,
				Stream: l.stream})
			g.Add(l.c, &ringo.Call{Kind: ringo.KindRecv, Peer: 1 - r, Out: l.y.Slice(20*i, 20), Count: 20, Type: ringo.Uint8,
				Stream: l.stream})
		}
	}
	require.NoError(t, g.Run())
	for r := range lanes {
		require.NoError(t, lanes[r].kept(byte(2-r)))
	}
}

// Close waits for calls whose tables are in the ring. A graph whose table is its own does no
// harm after Close.
func TestDeviceWorkFIFOClose(t *testing.T) {
	tier.Long(t)
	const n, room = 3, 400
	calls := tier.Count(9, 30)
	if tier.Race {
		calls = 9
	}
	for _, shape := range tier.Some(3, workFIFOs) {
		t.Run(shape.name, func(t *testing.T) {
			cfg := shape.cfg
			list := gputest.GPUs(t, n)
			cfg.Timeout, cfg.Algo = 20*time.Second, "steps"
			comms := commtest.OnDevices(t, list, cfg)
			in, out := make([]mem.Region, n), make([]mem.Region, n)
			for r, d := range list {
				in[r], out[r] = commtest.Alloc(t, d, bytes.Repeat([]byte{byte(r + 1)}, room)),
					commtest.Alloc(t, d, make([]byte, room))
			}
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				r, d := c.Rank(), c.Device()
				s, err := d.NewStream()
				if err != nil {
					return err
				}
				defer d.DestroyStream(s)
				x, err := d.Capture(s, func() error { return c.Do(uneven(r, n, 90, in[r], out[r], s)) })
				if err != nil {
					return err
				}
				defer x.Close()
				for k := range calls {
					if err := c.Do(uneven(r, n, k, in[r], out[r], s)); err != nil {
						return err
					}
				}
				if err := c.Close(); err != nil {
					return err
				}
				return errors.Join(x.Launch(s), d.Synchronize(s))
			}))
			for r, d := range list {
				var want []byte
				for from := range n {
					want = append(want, bytes.Repeat([]byte{byte(from + 1)}, r+calls)...)
				}
				got := make([]byte, room)
				require.NoError(t, d.Read(got, out[r]))
				require.Equal(t, want, got[:len(want)], "rank %d", r)
			}
		})
	}
}
