package cudatest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// since skips the test on older drivers.
func (e *env) since(version int) {
	e.Helper()
	if v, err := e.d.DriverGetVersion(); err != nil || v < version {
		e.Skipf("needs CUDA %d.%d", version/1000, version%1000/10)
	}
}

// counter is a word that kernels increment.
func (e *env) counter() (p uintptr, increment func(cuda.Stream)) {
	e.Helper()
	p = e.alloc(64)
	e.put(p, 0, 0)
	inc := e.kernel("increment")
	return p, e.incrementer(inc, p)
}

func (e *env) incrementer(inc cuda.Function, p uintptr) func(cuda.Stream) {
	args := struct{ counter uintptr }{p}
	return func(s cuda.Stream) {
		e.Helper()
		e.noErr(e.d.LaunchKernel(inc, &cuda.Launch{Stream: s}, cuda.ArgsOf(&args)))
	}
}

// fork queues a on s and b on other, side by side.
func (e *env) fork(s, other cuda.Stream, a, b func(cuda.Stream)) {
	out, back := e.event(cuda.EventDisableTiming), e.event(cuda.EventDisableTiming)
	e.noErr(e.d.EventRecord(out, s))
	e.noErr(e.d.StreamWaitEvent(other, out, 0))
	a(s)
	b(other)
	e.noErr(e.d.EventRecord(back, other))
	e.noErr(e.d.StreamWaitEvent(s, back, 0))
}

// testGraphUpdate has an executable graph do what another graph does.
func testGraphUpdate(e *env) {
	e.since(12000)
	s, other := e.stream(), e.stream()
	p, incP := e.counter()
	q, incQ := e.counter()
	inc := e.kernel("increment")
	besideP, besideQ := e.incrementer(inc, p+4), e.incrementer(inc, q+4)
	first := e.captured(s, func() { e.fork(s, other, incP, besideP); incP(s) })
	x := must.Get(e.d.GraphInstantiate(first, 0))
	e.noErr(e.d.GraphDestroy(first))
	launch := func() {
		e.noErr(e.d.GraphLaunch(x, s))
		e.noErr(e.d.StreamSynchronize(s))
	}
	launch()
	require.Equal(e, []uint32{2, 1}, e.words(p, 2))

	var gone atomic.Int32
	o := must.Get(e.d.UserObjectCreate(func() { gone.Add(1) }, 1))
	next := e.captured(s, func() { e.fork(s, other, incQ, besideQ); incQ(s) })
	e.noErr(e.d.GraphRetainUserObject(next, o, 1, true))
	u := must.Get(e.d.GraphExecUpdate(x, next))
	require.Equal(e, cuda.GraphUpdate{}, u)
	e.noErr(e.d.GraphDestroy(next))
	launch()
	require.Equal(e, []uint32{2, 1}, e.words(p, 2))
	require.Equal(e, []uint32{2, 1}, e.words(q, 2))

	for _, c := range []struct {
		name string
		f    func()
		want cuda.UpdateResult
		node bool
	}{
		{"more nodes", func() { e.fork(s, other, incQ, besideQ); incQ(s); incQ(s) }, cuda.UpdateTopologyChanged, false},
		{"other edges", func() { incQ(s); incQ(s); incQ(s) }, cuda.UpdateTopologyChanged, true},
		{"another type", func() {
			e.fork(s, other, incQ, besideQ)
			e.noErr(e.d.MemsetD32Async(q, 1, 1, s))
		}, cuda.UpdateNodeTypeChanged, true},
	} {
		g := e.captured(s, c.f)
		u, err := e.d.GraphExecUpdate(x, g)
		e.is(err, cuda.ErrGraphExecUpdateFailure)
		require.Equal(e, c.want, u.Result, c.name)
		require.Equal(e, c.node, u.Node != 0, c.name)
		e.noErr(e.d.GraphDestroy(g))
	}
	launch() // as it was
	require.Equal(e, []uint32{4, 2}, e.words(q, 2))
	require.Zero(e, gone.Load(), "the executable graph holds what the other held")

	last := e.captured(s, func() { e.fork(s, other, incP, besideP); incP(s) })
	must.Get(e.d.GraphExecUpdate(x, last))
	e.noErr(e.d.GraphDestroy(last))
	require.Eventually(e, func() bool { return gone.Load() == 1 }, 10*time.Second, time.Millisecond)
	e.noErr(e.d.GraphExecDestroy(x))
}

// testChildGraphs makes graphs nodes of other graphs, and copies of them.
func testChildGraphs(e *env) {
	s := e.stream()
	p, inc := e.counter()
	var gone atomic.Int32
	o := must.Get(e.d.UserObjectCreate(func() { gone.Add(1) }, 1))
	child := e.captured(s, func() { inc(s); inc(s) })
	e.noErr(e.d.GraphRetainUserObject(child, o, 1, true))
	g := must.Get(e.d.GraphCreate())
	var after []cuda.GraphNode
	for range 3 {
		n := must.Get(e.d.GraphAddChildGraphNode(g, after, child))
		after = []cuda.GraphNode{n}
	}
	e.noErr(e.d.GraphDestroy(child))
	clone := must.Get(e.d.GraphClone(g))
	e.noErr(e.d.GraphDestroy(g))
	nodes := must.Get(e.d.GraphGetNodes(clone))
	require.Len(e, nodes, 3)
	x := must.Get(e.d.GraphInstantiate(clone, 0))

	outer := e.captured(s, func() {
		inc(s)
		info := must.Get(e.d.StreamGetCaptureInfo(s))
		n := must.Get(e.d.GraphAddChildGraphNode(info.Graph, info.Dependencies, clone))
		e.noErr(e.d.StreamUpdateCaptureDependencies(s, []cuda.GraphNode{n}, 1))
		inc(s)
	})
	e.noErr(e.d.GraphDestroy(clone))
	nodes = must.Get(e.d.GraphGetNodes(outer))
	require.Len(e, nodes, 3)
	y := must.Get(e.d.GraphInstantiate(outer, 0))
	e.noErr(e.d.GraphDestroy(outer))
	e.noErr(e.d.GraphLaunch(x, s))
	e.noErr(e.d.GraphLaunch(y, s))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{6 + 8}, e.words(p, 1))
	e.noErr(e.d.GraphExecDestroy(x))
	require.Zero(e, gone.Load(), "the outer graph holds it")
	e.noErr(e.d.GraphExecDestroy(y))
	require.Eventually(e, func() bool { return gone.Load() == 1 }, 10*time.Second, time.Millisecond)
}

// conditional is a graph with an IF node, whose value is set by each launch.
func (e *env) conditional(initial uint32, body func(cuda.Stream)) cuda.Graph {
	e.Helper()
	s := e.stream()
	g := must.Get(e.d.GraphCreate())
	v := must.Get(e.d.GraphConditionalHandleCreate(g, e.ctx, initial, cuda.ConditionAssignDefault))
	_, b, err := e.d.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, e.ctx)
	e.noErr(err)
	e.noErr(e.d.StreamBeginCaptureToGraph(s, b, nil, cuda.CaptureThreadLocal))
	body(s)
	same := must.Get(e.d.StreamEndCapture(s))
	require.Equal(e, b, same)
	return g
}

func testConditionalGraphs(e *env) {
	e.since(12040)
	p, inc := e.counter()
	s := e.stream()
	for initial := range uint32(2) {
		e.put(p, 0)
		g := e.conditional(initial, func(s cuda.Stream) { inc(s); inc(s) })
		x := must.Get(e.d.GraphInstantiate(g, 0))
		for range 3 {
			e.noErr(e.d.GraphLaunch(x, s))
		}
		e.noErr(e.d.StreamSynchronize(s))
		require.Equal(e, []uint32{6 * initial}, e.words(p, 1))

		require.Error(e, must.Err(e.d.GraphInstantiate(g, 0)), "one at a time")
		require.Error(e, must.Err(e.d.GraphClone(g)))
		outer := must.Get(e.d.GraphCreate())
		require.Error(e, must.Err(e.d.GraphAddChildGraphNode(outer, nil, g)))
		e.noErr(e.d.GraphDestroy(outer))
		e.noErr(e.d.GraphExecDestroy(x))
		e.noErr(e.d.GraphDestroy(g))
	}

	// Nodes that a body must not have: the call that makes the node fails, or the end of the capture.
	ev := e.event(cuda.EventDisableTiming)
	for name, f := range map[string]func(s cuda.Stream) error{
		"record":        func(s cuda.Stream) error { return e.d.EventRecordWithFlags(ev, s, cuda.EventRecordExternal) },
		"wait":          func(s cuda.Stream) error { return e.d.StreamWaitEvent(s, ev, cuda.EventWaitExternal) },
		"host function": func(s cuda.Stream) error { return e.d.LaunchHostFunc(s, func() {}) },
	} {
		g := must.Get(e.d.GraphCreate())
		v := must.Get(e.d.GraphConditionalHandleCreate(g, e.ctx, 0, cuda.ConditionAssignDefault))
		_, b, err := e.d.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, e.ctx)
		e.noErr(err)
		e.noErr(e.d.StreamBeginCaptureToGraph(s, b, nil, cuda.CaptureThreadLocal))
		inc(s)
		refused := f(s)
		if _, err := e.d.StreamEndCapture(s); refused == nil {
			refused = err
		}
		if refused == nil {
			_, refused = e.d.GraphInstantiate(g, 0)
		}
		require.Error(e, refused, name)
		e.Log(name, refused)
		e.noErr(e.d.GraphDestroy(g))
	}
}

// testEventsAtLaunch: the nodes of events take their state when the graph is launched.
func testEventsAtLaunch(e *env) {
	s, other := e.stream(), e.stream()
	ready, done := e.event(cuda.EventDisableTiming), e.event(cuda.EventDisableTiming)
	begin, late := e.gate(), e.gate()
	p, inc := e.counter()
	x := e.graph(s, func() {
		e.noErr(e.d.StreamWaitEvent(s, ready, cuda.EventWaitExternal))
		inc(s)
		e.noErr(e.d.EventRecordWithFlags(done, s, cuda.EventRecordExternal))
		e.noErr(e.d.EventRecordWithFlags(ready, s, cuda.EventRecordExternal)) // the graph's wait is for one before
	})

	// A wait node is for the last record before the launch, though it begins after another.
	e.noErr(e.d.StreamWaitValue32(s, begin.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.EventRecord(ready, other))
	e.noErr(e.d.StreamWaitEvent(other, done, 0)) // before the launch: for nothing
	e.noErr(e.d.GraphLaunch(x, s))
	e.noErr(e.d.StreamSynchronize(other))
	e.noErr(e.d.StreamWaitValue32(other, late.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.EventRecord(ready, other))

	// After the launch of a record node, new waits are for this launch.
	is := must.Get(e.d.EventQuery(done))
	require.False(e, is)
	waiter := e.stream()
	e.noErr(e.d.StreamWaitEvent(waiter, done, 0))
	e.noErr(e.d.MemcpyAsync(p+4, p, 4, waiter))
	begin.set(1)
	e.noErr(e.d.StreamSynchronize(waiter)) // and not for the late record
	require.Equal(e, []uint32{1, 1}, e.words(p, 2))
	late.set(1)
	e.noErr(e.d.CtxSynchronize())
	e.noErr(e.d.GraphLaunch(x, s))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{2}, e.words(p, 1))
}
