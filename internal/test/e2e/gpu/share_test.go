package gpu

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// A holder keeps streams and parts of GPUs busy until it is told to let go.
type holder struct {
	t    *testing.T
	flag uintptr // pinned host memory
}

// holdText is a kernel that runs until the word at p is not 0.
const holdText = `.version 7.0
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 p) {
	.reg .b64 %rd<2>;
	.reg .b32 %r<2>;
	.reg .pred %p<2>;
	ld.param.u64 %rd1, [p];
again:
	ld.volatile.global.u32 %r1, [%rd1];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra again;
	ret;
}
`

func newHolder(t *testing.T, d *gpu.Device) *holder {
	h := &holder{t: t}
	require.NoError(t, d.With(func() (err error) {
		h.flag, err = d.Driver().MemHostAlloc(64, cuda.HostAllocPortable)
		return err
	}))
	h.word().Store(0)
	t.Cleanup(func() { require.NoError(t, d.With(func() error { return d.Driver().MemFreeHost(h.flag) })) })
	return h
}

func (h *holder) word() *atomic.Uint32 {
	return (*atomic.Uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&h.flag)))
}

func (h *holder) letGo() { h.word().Store(1) }

// hold queues blocks of a warp on a stream, which run until letGo.
func (h *holder) hold(d *gpu.Device, s gpu.Stream, blocks int) {
	h.t.Helper()
	require.NoError(h.t, d.With(func() error {
		m, err := d.Driver().ModuleLoadData([]byte(holdText))
		if err != nil {
			return err
		}
		h.t.Cleanup(func() {
			h.letGo() // unloading waits for the blocks
			require.NoError(h.t, d.With(func() error { return d.Driver().ModuleUnload(m) }))
		})
		f, err := d.Driver().ModuleGetFunction(m, "hold")
		if err != nil {
			return err
		}
		l := cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: 32}, Stream: s}
		return d.Driver().LaunchKernel(f, &l, cuda.ArgsOf(&struct{ p uintptr }{h.flag}))
	}))
}

// A crowd is communicators of the same GPUs, each with a stream of its own on each of them.
type crowd struct {
	t     *testing.T
	list  []*gpu.Device
	bytes int      // of memory of each rank
	comms [][]lane // by communicator, by rank
}

// crowdBytes is enough for all blocks of an emulated GPU: 16 lanes of two chunks.
const crowdBytes = 16 * 2 * 8 << 10

func newCrowd(t *testing.T, list []*gpu.Device, n, bytes int, cfg ringo.Config) *crowd {
	w := &crowd{t: t, list: list, bytes: bytes}
	for range n {
		var c []lane
		for _, m := range commtest.OnDevices(t, list, cfg) {
			d := m.Device()
			c = append(c, lane{c: m, d: d, stream: commtest.Stream(t, d), x: commtest.Alloc(t, d, make([]byte, bytes))})
		}
		w.comms = append(w.comms, c)
	}
	for i := range w.comms { // allocates and loads all before anything is held
		w.call(i, 0)
		w.call(i, 1)
	}
	w.finish()
	return w
}

// call has a rank take part in an all-reduce of a communicator.
func (w *crowd) call(i, r int) {
	w.t.Helper()
	require.NoError(w.t, w.try(i, r))
}

// try is call, and returns the call's error.
func (w *crowd) try(i, r int) error {
	l := w.comms[i][r]
	require.NoError(w.t, l.d.Set(l.x.Ptr(), byte(r+1), w.bytes, l.stream))
	return l.c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: l.x, Out: l.x, Count: w.bytes / 4,
		Type: ringo.Int32, Stream: l.stream})
}

// finish waits for all and looks at the results.
func (w *crowd) finish() {
	w.t.Helper()
	want := bytes.Repeat([]byte{3}, w.bytes)
	for i, c := range w.comms {
		for r, l := range c {
			require.NoError(w.t, l.c.Synchronize(l.stream), "communicator %d, rank %d", i, r)
			require.Equal(w.t, want, commtest.Read(w.t, l.d, l.x), "communicator %d, rank %d", i, r)
		}
	}
}

// As many communicators as are promised finish in whatever order each rank calls them, each on
// a stream of its own, beside a kernel that has what is left of the GPU.
func TestSideBySide(t *testing.T) {
	tier.Long(t)
	for _, algo := range tier.Some(3, []string{"ring", "steps", "twoshot"}) {
		t.Run(algo, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Unchecked(2))
			w := newCrowd(t, list, choice.Communicators, crowdBytes,
				ringo.Config{Algo: algo, Timeout: tier.Soon(30 * time.Second)})
			h := newHolder(t, list[0])
			defer h.letGo()
			for _, d := range list {
				h.hold(d, commtest.Stream(t, d), processors(t, d))
			}
			for r := range list {
				for i := range w.comms {
					w.call((i+r*len(w.comms)/2)%len(w.comms), r)
				}
			}
			w.finish()
		})
	}
}

func processors(t *testing.T, d *gpu.Device) int {
	n, err := d.Driver().DeviceGetAttribute(cuda.AttrMultiprocessorCount, d.Handle())
	require.NoError(t, err)
	return n
}

// crossed calls two communicators in the same order on both ranks, whose GPUs reach them in
// opposite orders: on each GPU the stream of one communicator waits for a while. A call may find its communicator at
// the deadline already.
func crossed(t *testing.T, cfg ringo.Config) (*crowd, error) {
	var emu []gputest.Option
	if !gputest.OnGPU() {
		emu = append(emu, gputest.Emu(cudaemu.Config{Devices: 2, Stall: -1, Plain: true}))
	}
	list := gputest.GPUs(t, 2, emu...)
	w := newCrowd(t, list, 2, crowdBytes, cfg)
	h := newHolder(t, list[0])
	for r, d := range list {
		h.hold(d, w.comms[r][r].stream, 1)
	}
	var errs []error
	for i := range w.comms {
		for r := range list {
			errs = append(errs, w.try(i, r))
		}
	}
	time.AfterFunc(100*time.Millisecond, h.letGo)
	return w, errors.Join(errs...)
}

// Communicators with more blocks than fit may wait for each other; then both fail at the
// deadline. With shares that fit, or in the order of their calls, they finish.
func TestTooManyBlocks(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("needs a GPU with room for one of them")
	}
	large := ringo.Config{Algo: "ring", MaxBlocks: 128, Timeout: tier.Soon(3 * time.Second)}
	t.Run("beyond", func(t *testing.T) {
		tier.Heavy(t) // waits for 3 s
		w, err := crossed(t, large)
		if err != nil {
			require.ErrorIs(t, err, ringo.ErrTimeout)
		}
		ended := 0 // where one communicator ends, the other may finish
		for _, c := range w.comms {
			for _, l := range c {
				if err := l.c.Synchronize(l.stream); err != nil {
					require.Regexp(t, "i/o timeout|timed out", err.Error(), "its own, or what the other rank has said of its")
					ended++
				}
			}
		}
		require.GreaterOrEqual(t, ended, 2, "both ranks of a communicator")
	})
	t.Run("shares", func(t *testing.T) {
		cfg := large
		cfg.MaxBlocks, cfg.Timeout = 0, 30*time.Second
		w, err := crossed(t, cfg)
		require.NoError(t, err)
		w.finish()
	})
	t.Run("order", func(t *testing.T) {
		cfg := large
		cfg.LaunchOrder, cfg.Timeout = true, 30*time.Second
		w, err := crossed(t, cfg)
		require.NoError(t, err)
		w.finish()
	})
}

// With LaunchOrder operations of two communicators follow each other in the order of their calls,
// between graphs and eager calls and within a graph: each reads on its own stream the data that
// the other has written on another.
func TestLaunchOrder(t *testing.T) {
	list := gputest.GPUs(t, 2)
	w := newCrowd(t, list, 2, crowdBytes, ringo.Config{Algo: "ring", LaunchOrder: true,
		Timeout: tier.Soon(30 * time.Second)})
	const count = 3000
	want := uint32(0x03030303)
	step := func(r, i int) error { // doubles what the other communicator has left
		to, from := w.comms[i][r], w.comms[1-i][r]
		return to.c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: from.x, Out: to.x, Count: count, Type: ringo.Int32,
			Stream: to.stream})
	}
	both := func(i int) {
		want *= 2
		for r := range list {
			require.NoError(t, step(r, i))
		}
	}
	both(1)
	both(0)
	var graphs []*gpu.Graph
	for r, d := range list {
		driver, a, b := d.Driver(), w.comms[0][r].stream, w.comms[1][r].stream
		var fork gpu.Event
		require.NoError(t, d.With(func() (err error) {
			fork, err = driver.EventCreate(0)
			return err
		}))
		defer d.DestroyEvent(fork)
		g, err := d.Capture(a, func() error {
			if err := errors.Join(driver.EventRecord(fork, a), driver.StreamWaitEvent(b, fork, 0), step(r, 0), step(r, 1),
				step(r, 0), step(r, 1)); err != nil {
				return err
			}
			return errors.Join(driver.EventRecord(fork, b), driver.StreamWaitEvent(a, fork, 0))
		})
		require.NoError(t, err)
		defer g.Close()
		graphs = append(graphs, g)
	}
	for range 2 {
		both(1)
		for r, d := range list { // on a stream that no communicator has
			require.NoError(t, graphs[r].Launch(commtest.Stream(t, d)))
		}
		want *= 16
		both(0)
	}
	for r, d := range list {
		l := w.comms[0][r]
		require.NoError(t, l.c.Synchronize(l.stream))
		require.Equal(t, mem.Of(slices.Repeat([]uint32{want}, count)).Bytes(), commtest.Read(t, d, l.x.Slice(0, 4*count)))
	}
}
