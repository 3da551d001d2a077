package cudatest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// captured is what f queues, as a graph.
func (e *env) captured(s cuda.Stream, f func()) cuda.Graph {
	e.Helper()
	e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureThreadLocal))
	f()
	g := must.Get(e.d.StreamEndCapture(s))
	return g
}

func testReplay(e *env) {
	s := e.stream()
	inc := e.kernel("increment")
	p, q := e.alloc(64), e.alloc(64)
	e.put(p, 100)
	e.put(q, 0)
	var calls atomic.Int32
	args := struct{ counter uintptr }{p}
	g := e.captured(s, func() {
		for range 3 {
			e.noErr(e.d.LaunchKernel(inc, &cuda.Launch{Stream: s}, cuda.ArgsOf(&args)))
		}
		e.noErr(e.d.MemcpyAsync(q, p, 4, s))
		e.noErr(e.d.MemsetD8Async(q+4, 1, 4, s))
		e.noErr(e.d.LaunchHostFunc(s, func() { calls.Add(1) }))
	})
	nodes := must.Get(e.d.GraphGetNodes(g))
	require.Len(e, nodes, 6)
	require.Equal(e, []uint32{100}, e.words(p, 1), "nothing ran yet")

	x := must.Get(e.d.GraphInstantiate(g, 0))
	e.noErr(e.d.GraphDestroy(g)) // an executable graph lives on its own
	e.noErr(e.d.GraphUpload(x, s))
	for range 5 {
		e.noErr(e.d.GraphLaunch(x, s))
	}
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{115}, e.words(p, 1))
	require.Equal(e, []uint32{115, 0x01010101}, e.words(q, 2))
	require.EqualValues(e, 5, calls.Load())
	e.noErr(e.d.GraphExecDestroy(x))

	g = must.Get(e.d.GraphCreate())
	nodes = must.Get(e.d.GraphGetNodes(g))
	require.Empty(e, nodes)
	e.noErr(e.d.GraphDestroy(g))
}

// testOneAtATime launches an executable graph on two streams: it never runs twice
// at once, so that no increment is lost.
func testOneAtATime(e *env) {
	a, b := e.stream(), e.stream()
	inc := e.kernel("increment")
	p := e.alloc(64)
	e.put(p, 0)
	args := struct{ counter uintptr }{p}
	g := e.captured(a, func() {
		for range 4 {
			e.noErr(e.d.LaunchKernel(inc, &cuda.Launch{Stream: a}, cuda.ArgsOf(&args)))
		}
	})
	x := must.Get(e.d.GraphInstantiate(g, 0))
	for range 10 {
		e.noErr(e.d.GraphLaunch(x, a))
		e.noErr(e.d.GraphLaunch(x, b))
	}
	e.noErr(e.d.CtxSynchronize())
	require.Equal(e, []uint32{80}, e.words(p, 1))
	e.noErr(e.d.GraphExecDestroy(x))
	e.noErr(e.d.GraphDestroy(g))
}

// testExternalEvents has a graph record an event for work outside of the graph, and wait for one.
func testExternalEvents(e *env) {
	const external = 1 // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL
	s, other := e.stream(), e.stream()
	ready, done := e.event(cuda.EventDisableTiming), e.event(cuda.EventDisableTiming)
	gate := e.gate()
	p := e.alloc(64)
	e.put(p, 0)
	g := e.captured(s, func() {
		e.noErr(e.d.StreamWaitEvent(s, ready, external))
		e.noErr(e.d.MemsetD8Async(p, 1, 4, s))
		e.noErr(e.d.EventRecordWithFlags(done, s, external))
	})
	nodes := must.Get(e.d.GraphGetNodes(g))
	require.Len(e, nodes, 3)
	x := must.Get(e.d.GraphInstantiate(g, 0))

	e.noErr(e.d.StreamWaitValue32(other, gate.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.EventRecord(ready, other))
	e.noErr(e.d.GraphLaunch(x, s))
	time.Sleep(2 * time.Millisecond)
	is := must.Get(e.d.EventQuery(done))
	require.False(e, is, "the graph waits for the other stream")
	gate.set(1)
	e.noErr(e.d.EventSynchronize(done))
	require.Equal(e, []uint32{0x01010101}, e.words(p, 1))
	e.noErr(e.d.StreamSynchronize(s))
	e.noErr(e.d.GraphExecDestroy(x))
	e.noErr(e.d.GraphDestroy(g))
}

// testGraphsInTurn has two graphs follow each other on whatever streams they are launched:
// each waits for an event, and records it with a node that moves to what comes last.
func testGraphsInTurn(e *env) {
	inc, turn := e.kernel("increment"), e.event(cuda.EventDisableTiming)
	p := e.alloc(64)
	e.put(p, 0)
	args := struct{ counter uintptr }{p}
	streams := []cuda.Stream{e.stream(), e.stream()}
	var graphs []cuda.GraphExec
	for _, s := range streams {
		g := e.captured(s, func() {
			e.noErr(e.d.StreamWaitEvent(s, turn, cuda.EventWaitExternal))
			var record cuda.GraphNode
			var last []cuda.GraphNode
			for range 3 {
				e.noErr(e.d.LaunchKernel(inc, &cuda.Launch{Stream: s}, cuda.ArgsOf(&args)))
				info := must.Get(e.d.StreamGetCaptureInfo(s))
				require.Len(e, info.Dependencies, 1)
				if record == 0 {
					record = must.Get(e.d.GraphAddEventRecordNode(info.Graph, info.Dependencies, turn))
				} else {
					e.noErr(e.d.GraphRemoveDependencies(info.Graph, last, []cuda.GraphNode{record}))
					e.noErr(e.d.GraphAddDependencies(info.Graph, info.Dependencies, []cuda.GraphNode{record}))
				}
				last = info.Dependencies
			}
		})
		nodes := must.Get(e.d.GraphGetNodes(g))
		require.Len(e, nodes, 5)
		x := must.Get(e.d.GraphInstantiate(g, 0))
		e.noErr(e.d.GraphDestroy(g))
		graphs = append(graphs, x)
	}
	for range 10 {
		for i, s := range streams {
			e.noErr(e.d.GraphLaunch(graphs[i], s))
		}
	}
	e.noErr(e.d.EventSynchronize(turn))
	require.Equal(e, []uint32{60}, e.words(p, 1))
	for i, s := range streams {
		e.noErr(e.d.StreamSynchronize(s))
		e.noErr(e.d.GraphExecDestroy(graphs[i]))
	}
}

func testCaptureInfo(e *env) {
	s := e.stream()
	p := e.alloc(64)
	status := must.Get(e.d.StreamIsCapturing(s))
	require.Equal(e, cuda.CaptureNone, status)
	info := must.Get(e.d.StreamGetCaptureInfo(s))
	require.Equal(e, cuda.CaptureInfo{}, info)

	var first, second cuda.CaptureInfo
	g := e.captured(s, func() {
		status := must.Get(e.d.StreamIsCapturing(s))
		require.Equal(e, cuda.CaptureActive, status)
		info := must.Get(e.d.StreamGetCaptureInfo(s))
		require.Empty(e, info.Dependencies, "nothing was queued")
		e.noErr(e.d.MemsetD8Async(p, 1, 4, s))
		first = must.Get(e.d.StreamGetCaptureInfo(s))
		require.Equal(e, cuda.CaptureActive, first.Status)
		require.Len(e, first.Dependencies, 1)
		e.noErr(e.d.MemsetD8Async(p+4, 1, 4, s))
		second = must.Get(e.d.StreamGetCaptureInfo(s))
		require.Equal(e, first.ID, second.ID)
		require.Equal(e, first.Graph, second.Graph)
		require.NotEqual(e, first.Dependencies, second.Dependencies)

		const add, replace = 0, 1
		e.noErr(e.d.StreamUpdateCaptureDependencies(s, first.Dependencies, add))
		info = must.Get(e.d.StreamGetCaptureInfo(s))
		require.ElementsMatch(e, append(first.Dependencies, second.Dependencies...), info.Dependencies)
		e.noErr(e.d.StreamUpdateCaptureDependencies(s, second.Dependencies, replace))
		info = must.Get(e.d.StreamGetCaptureInfo(s))
		require.Equal(e, second.Dependencies, info.Dependencies)
	})
	require.Equal(e, first.Graph, g)
	nodes := must.Get(e.d.GraphGetNodes(g))
	require.ElementsMatch(e, append(first.Dependencies, second.Dependencies...), nodes)
	e.noErr(e.d.GraphDestroy(g))

	g = e.captured(s, func() {
		info := must.Get(e.d.StreamGetCaptureInfo(s))
		require.NotEqual(e, first.ID, info.ID, "each capture has a number of its own")
	})
	e.noErr(e.d.GraphDestroy(g))
}

func testForkJoin(e *env) {
	a, b := e.stream(), e.stream()
	fork, join := e.event(cuda.EventDisableTiming), e.event(cuda.EventDisableTiming)
	p := e.alloc(64)
	e.put(p, 0, 0)
	g := e.captured(a, func() {
		e.noErr(e.d.MemsetD8Async(p, 1, 4, a))
		e.noErr(e.d.EventRecord(fork, a))
		e.noErr(e.d.StreamWaitEvent(b, fork, 0))
		status := must.Get(e.d.StreamIsCapturing(b))
		require.Equal(e, cuda.CaptureActive, status, "b joined the capture")
		e.noErr(e.d.MemcpyAsync(p+4, p, 4, b))
		e.noErr(e.d.EventRecord(join, b))
		e.noErr(e.d.StreamWaitEvent(a, join, 0))
	})
	status := must.Get(e.d.StreamIsCapturing(b))
	require.Equal(e, cuda.CaptureNone, status)
	x := must.Get(e.d.GraphInstantiate(g, 0))
	e.noErr(e.d.GraphLaunch(x, b))
	e.noErr(e.d.StreamSynchronize(b))
	require.Equal(e, repeat(0x01010101, 2), e.words(p, 2))
	e.noErr(e.d.GraphExecDestroy(x))
	e.noErr(e.d.GraphDestroy(g))

	// Without the join the capture cannot end.
	e.noErr(e.d.StreamBeginCapture(a, cuda.CaptureThreadLocal))
	e.noErr(e.d.EventRecord(fork, a))
	e.noErr(e.d.StreamWaitEvent(b, fork, 0))
	e.noErr(e.d.MemsetD8Async(p, 1, 4, b))
	e.is(must.Err(e.d.StreamEndCapture(a)), cuda.ErrStreamCaptureUnjoined)
	status = must.Get(e.d.StreamIsCapturing(a))
	require.Equal(e, cuda.CaptureNone, status)

	// Events outside of a capture do not go into it.
	e.noErr(e.d.EventRecord(fork, b))
	e.noErr(e.d.StreamBeginCapture(a, cuda.CaptureThreadLocal))
	e.is(e.d.StreamWaitEvent(a, fork, 0), cuda.ErrStreamCaptureIsolation)
	e.is(must.Err(e.d.StreamEndCapture(a)), cuda.ErrStreamCaptureInvalidated)
}

// testForbidden makes calls in a capture that would wait for captured work, which nobody does.
func testForbidden(e *env) {
	s := e.stream()
	p := e.alloc(64)
	ev := e.event(cuda.EventDisableTiming)

	_, err := e.d.StreamEndCapture(s)
	e.is(err, cuda.ErrIllegalState, cuda.ErrInvalidValue, cuda.ErrStreamCaptureUnmatched)

	e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureThreadLocal))
	e.is(e.d.StreamBeginCapture(s, cuda.CaptureThreadLocal), cuda.ErrIllegalState, cuda.ErrInvalidValue)
	if g, err := e.d.StreamEndCapture(s); err == nil { // CUDA does not say whether that spoils the capture
		e.noErr(e.d.GraphDestroy(g))
	}

	for name, f := range map[string]func() error{
		"synchronize": func() error { return e.d.StreamSynchronize(s) },
		"query":       func() error { return must.Err(e.d.StreamQuery(s)) },
		"event of it": func() error {
			e.noErr(e.d.EventRecord(ev, s))
			return must.Err(e.d.EventQuery(ev))
		},
	} {
		e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureThreadLocal))
		e.noErr(e.d.MemsetD8Async(p, 1, 4, s))
		err := f()
		require.Error(e, err, name)
		e.is(err, cuda.ErrStreamCaptureUnsupported, cuda.ErrCapturedEvent)
		_, err = e.d.StreamEndCapture(s)
		require.Error(e, err, name)
		e.is(err, cuda.ErrStreamCaptureInvalidated)
	}

	// Allocating is refused while a capture forbids it, and allowed with the
	// thread's mode relaxed.
	e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureGlobal))
	before := must.Get(e.d.ThreadExchangeStreamCaptureMode(cuda.CaptureRelaxed))
	require.Equal(e, cuda.CaptureGlobal, before)
	q := must.Get(e.d.MemAlloc(64))
	e.noErr(e.d.MemFree(q))
	relaxed := must.Get(e.d.ThreadExchangeStreamCaptureMode(before))
	require.Equal(e, cuda.CaptureRelaxed, relaxed)
	g := must.Get(e.d.StreamEndCapture(s))
	e.noErr(e.d.GraphDestroy(g))

	e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureGlobal))
	e.is(must.Err(e.d.MemAlloc(64)), cuda.ErrStreamCaptureUnsupported)
	if g, err := e.d.StreamEndCapture(s); err == nil {
		e.noErr(e.d.GraphDestroy(g))
	} else {
		e.is(err, cuda.ErrStreamCaptureInvalidated)
	}
	e.noErr(e.d.CtxSynchronize())
}

// testUserObjects counts references down to zero. The driver destroys at its leisure.
func testUserObjects(e *env) {
	var gone atomic.Bool
	isGone := func() bool { return gone.Load() }
	create := func(references int) cuda.UserObject {
		gone.Store(false)
		o := must.Get(e.d.UserObjectCreate(func() { gone.Store(true) }, references))
		return o
	}

	o := create(2)
	e.noErr(e.d.UserObjectRetain(o, 1))
	e.noErr(e.d.UserObjectRelease(o, 2))
	time.Sleep(2 * time.Millisecond)
	require.False(e, gone.Load())
	e.noErr(e.d.UserObjectRelease(o, 1))
	require.Eventually(e, isGone, 10*time.Second, time.Millisecond)

	// A graph keeps the object, then the executable graph made of it does.
	o = create(1)
	s := e.stream()
	p := e.alloc(64)
	g := e.captured(s, func() {
		info := must.Get(e.d.StreamGetCaptureInfo(s))
		e.noErr(e.d.GraphRetainUserObject(info.Graph, o, 1, true))
		e.noErr(e.d.MemsetD8Async(p, 1, 4, s))
	})
	x := must.Get(e.d.GraphInstantiate(g, 0))
	e.noErr(e.d.GraphDestroy(g))
	e.noErr(e.d.GraphLaunch(x, s))
	e.noErr(e.d.StreamSynchronize(s))
	time.Sleep(2 * time.Millisecond)
	require.False(e, gone.Load())
	e.noErr(e.d.GraphExecDestroy(x))
	require.Eventually(e, isGone, 10*time.Second, time.Millisecond)

	// Without move the caller keeps its reference.
	o = create(1)
	g = must.Get(e.d.GraphCreate())
	e.noErr(e.d.GraphRetainUserObject(g, o, 1, false))
	e.noErr(e.d.GraphDestroy(g))
	time.Sleep(2 * time.Millisecond)
	require.False(e, gone.Load())
	e.noErr(e.d.UserObjectRelease(o, 1))
	require.Eventually(e, isGone, 10*time.Second, time.Millisecond)
}
