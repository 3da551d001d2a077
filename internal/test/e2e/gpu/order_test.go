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
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

// everyWay are ways to carry out an all-reduce of uint8 on GPU memory.
func everyWay() []way {
	return []way{
		{name: "direct"},
		{name: "notes", cfg: ringo.Config{Algo: "ring"}},
		{name: "slots", cfg: ringo.Config{Algo: "ring", SlotBytes: 1024}, count: 20000},
		{name: "rank order", cfg: ringo.Config{Algo: "steps", Deterministic: "rank order"}},
		{name: "window", cfg: ringo.Config{Algo: "window"}, registered: true},
		{name: "copies", cfg: ringo.Config{Algo: "copies"}, registered: true},
		{name: "host memory", cfg: commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1")},
		{name: "bridge", cfg: commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1", "RINGO_SHM_DISABLE=1")},
	}
}

type way struct {
	name       string
	cfg        ringo.Config
	count      int // of bytes; laneCount if zero
	registered bool
}

// doublers opens a communicator of two ranks. Each has memory that an all-reduce doubles.
func (w way) doublers(t *testing.T) []*doubler {
	return w.on(t, gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{FreshAddresses: true})))
}

func (w way) on(t *testing.T, list []*gpu.Device) []*doubler {
	w.cfg.Timeout = 20 * time.Second
	comms := commtest.OnDevices(t, list, w.cfg)
	if w.count == 0 {
		w.count = laneCount
	}
	all := make([]*doubler, len(list))
	for i, c := range comms {
		alloc := commtest.Alloc
		if w.cfg.Algo == "copies" {
			alloc = commtest.AllocMapped
		}
		all[i] = &doubler{T: t, c: c, d: list[i], x: alloc(t, list[i], make([]byte, w.count))}
	}
	if w.registered {
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
			_, err := c.Register(all[c.Rank()].x)
			return err
		}))
	}
	return all
}

// A doubler is a rank, and memory that it doubles by an all-reduce of two ranks.
type doubler struct {
	*testing.T
	c *ringo.Comm
	d *gpu.Device
	x ringo.Region
}

func (l *doubler) call(s gpu.Stream) *ringo.Call {
	return &ringo.Call{Kind: ringo.KindAllReduce, In: l.x, Out: l.x, Count: l.x.Len(), Type: ringo.Uint8, Stream: s}
}

func (l *doubler) double(s gpu.Stream) { require.NoError(l, l.c.Do(l.call(s))) }

func (l *doubler) stream() gpu.Stream { return commtest.Stream(l, l.d) }

// begin begins a capture, end makes a graph of it.
func (l *doubler) begin(s gpu.Stream) {
	require.NoError(l, l.d.With(func() error { return l.d.Driver().StreamBeginCapture(s, cuda.CaptureRelaxed) }))
}

func (l *doubler) end(s gpu.Stream) (x cuda.GraphExec) {
	require.NoError(l, l.d.With(func() error {
		g, err := l.d.Driver().StreamEndCapture(s)
		require.NoError(l, err)
		x, err = l.d.Driver().GraphInstantiate(g, 0)
		require.NoError(l, err)
		return l.d.Driver().GraphDestroy(g)
	}))
	return x
}

func (l *doubler) graph(s gpu.Stream, f func()) cuda.GraphExec {
	l.begin(s)
	f()
	return l.end(s)
}

func (l *doubler) launch(x cuda.GraphExec, s gpu.Stream) {
	require.NoError(l, l.d.With(func() error { return l.d.Driver().GraphLaunch(x, s) }))
}

func (l *doubler) destroy(graphs ...cuda.GraphExec) {
	for _, x := range graphs {
		require.NoError(l, l.d.With(func() error { return l.d.Driver().GraphExecDestroy(x) }))
	}
}

func (l *doubler) set(v byte) {
	require.NoError(l, l.d.Write(l.x, bytes.Repeat([]byte{v}, l.x.Len())))
}

// has checks that the memory holds v everywhere when all work of the communicator is done.
func (l *doubler) has(v byte, s gpu.Stream) {
	l.Helper()
	require.NoError(l, l.c.Synchronize(s))
	require.Equal(l, bytes.Repeat([]byte{v}, l.x.Len()), commtest.Read(l, l.d, l.x), "rank %d", l.c.Rank())
}

// Streams with the same handle are told apart: the per-thread streams.
func TestOrderOfThreads(t *testing.T) {
	all := way{}.doublers(t)
	for _, l := range all {
		l.set(1)
		for range 4 {
			onThread(func() { l.double(gpu.PerThread) })
		}
		l.double(0)
	}
	for _, l := range all {
		l.has(32, 0)
	}
}

// onThread runs f on another OS thread, which ends after it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f()
	}()
	<-done
}

// A call that is started while its stream is captured is part of the graph, after the calls
// started before.
func TestStartInCapture(t *testing.T) {
	all := way{}.doublers(t)
	streams, graphs := make([]gpu.Stream, len(all)), make([]cuda.GraphExec, len(all))
	slow := ringo.UserOp("slow", func(ringo.DataType, []byte, []byte) { time.Sleep(20 * time.Millisecond) })
	commtest.NoErrors(t, commtest.Each([]*ringo.Comm{all[0].c, all[1].c}, func(c *ringo.Comm) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		i, l := c.Rank(), all[c.Rank()]
		s, other := l.stream(), l.stream()
		streams[i] = s
		l.set(1)
		l.begin(s)
		first := c.Start(ringo.AllReduceOf(make([]byte, 2), slow)) // nothing else can be carried out yet
		before, captured := c.Start(l.call(other)), []*ringo.Pending{c.Start(l.call(s)), c.Start(l.call(s))}
		graphs[i] = l.end(s)
		return errors.Join(first.Wait(), before.Wait(), captured[0].Wait(), captured[1].Wait())
	}))
	for i, l := range all {
		l.launch(graphs[i], streams[i])
		l.launch(graphs[i], streams[i])
	}
	for i, l := range all {
		l.has(32, streams[i])
		l.destroy(graphs[i])
	}
}
