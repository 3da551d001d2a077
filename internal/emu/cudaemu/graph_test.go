package cudaemu_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// graph is what f puts on s, ready to be launched.
func (e *env) graph(s cuda.Stream, f func()) cuda.GraphExec {
	e.Helper()
	g := e.captured(s, f)
	x := must.Get(e.GraphInstantiate(g, 0))
	e.ok(e.GraphDestroy(g))
	return x
}

func (e *env) captured(s cuda.Stream, f func()) cuda.Graph {
	e.Helper()
	e.ok(e.StreamBeginCapture(s, cuda.CaptureGlobal))
	f()
	g := must.Get(e.StreamEndCapture(s))
	return g
}

// child makes a graph a node of the one that the stream captures.
func (e *env) child(s cuda.Stream, inner cuda.Graph) {
	e.Helper()
	info := must.Get(e.StreamGetCaptureInfo(s))
	n := must.Get(e.GraphAddChildGraphNode(info.Graph, info.Dependencies, inner))
	e.ok(e.StreamUpdateCaptureDependencies(s, []cuda.GraphNode{n}, 1))
}

// TestDestroyRunning destroys an executable graph while it runs: the launch ends
// first, and the objects that the graph holds go with it.
func TestDestroyRunning(t *testing.T) {
	e := start(t, cudaemu.Config{})
	s, p, g := e.stream(cuda.StreamNonBlocking), e.alloc(64, true), e.gate()
	var gone atomic.Bool
	o := must.Get(e.UserObjectCreate(func() { gone.Store(true) }, 1))
	x := e.graph(s, func() {
		i := must.Get(e.StreamGetCaptureInfo(s))
		e.ok(e.GraphRetainUserObject(i.Graph, o, 1, true))
		e.is(e.GraphDestroy(i.Graph), cuda.ErrInvalidValue) // being captured
		e.ok(e.StreamWaitValue32(s, address(g), 1, cuda.WaitEQ))
		e.ok(e.MemsetD32Async(p, 4, 1, s))
	})
	for range 3 {
		e.ok(e.GraphLaunch(x, s))
	}
	e.ok(e.GraphExecDestroy(x))
	e.is(e.GraphLaunch(x, s), cuda.ErrInvalidValue)
	time.Sleep(2 * time.Millisecond)
	require.False(t, gone.Load())
	g.Store(1)
	e.ok(e.StreamSynchronize(s))
	require.Eventually(t, gone.Load, 20*time.Second, time.Millisecond)
	require.Equal(t, uint32(4), e.word(p))
}

// TestUpdateRunning updates an executable graph while it runs: that launch goes on as it
// was, and the objects that it needs live until it ends.
func TestUpdateRunning(t *testing.T) {
	e := start(t, cudaemu.Config{})
	s, p, g := e.stream(cuda.StreamNonBlocking), e.alloc(64, true), e.gate()
	var gone atomic.Bool
	o := must.Get(e.UserObjectCreate(func() { gone.Store(true) }, 1))
	write := func(v uint32) {
		e.ok(e.StreamWaitValue32(s, address(g), 1, cuda.WaitEQ))
		e.ok(e.MemsetD32Async(p, v, 1, s))
	}
	x := e.graph(s, func() {
		i := must.Get(e.StreamGetCaptureInfo(s))
		e.ok(e.GraphRetainUserObject(i.Graph, o, 1, true))
		write(1)
	})
	e.ok(e.StreamBeginCapture(s, cuda.CaptureRelaxed))
	write(2)
	next := must.Get(e.StreamEndCapture(s))
	e.ok(e.GraphLaunch(x, s))
	must.Get(e.GraphExecUpdate(x, next))
	e.ok(e.GraphDestroy(next))
	e.ok(e.MemcpyAsync(p+4, p, 4, s))
	e.ok(e.GraphLaunch(x, s))
	require.False(t, gone.Load())
	g.Store(1)
	e.ok(e.StreamSynchronize(s))
	require.Equal(t, [2]uint32{2, 1}, [2]uint32{e.word(p), e.word(p + 4)})
	require.Eventually(t, gone.Load, 20*time.Second, time.Millisecond)
	e.ok(e.GraphExecDestroy(x))
}

func TestUserObjectErrors(t *testing.T) {
	e := start(t, cudaemu.Config{})
	e.is(must.Err(e.UserObjectCreate(nil, 1)), cuda.ErrInvalidValue)
	e.is(must.Err(e.UserObjectCreate(func() {}, 0)), cuda.ErrInvalidValue)
	o := must.Get(e.UserObjectCreate(func() {}, 2))
	g := must.Get(e.GraphCreate())
	e.ok(e.GraphRetainUserObject(g, o, 1, true))
	e.is(e.UserObjectRelease(o, 2), cuda.ErrInvalidValue) // one is the graph's now
	e.is(e.GraphRetainUserObject(g, o, 2, true), cuda.ErrInvalidValue)
	e.is(e.UserObjectRetain(o, -1), cuda.ErrInvalidValue)
	e.ok(e.UserObjectRelease(o, 1))
	e.ok(e.GraphDestroy(g))
	e.is(e.UserObjectRetain(o, 1), cuda.ErrInvalidValue)
	e.is(e.GraphDestroy(g), cuda.ErrInvalidValue)
	e.is(must.Err(e.GraphInstantiate(g, 0)), cuda.ErrInvalidValue)
	e.is(must.Err(e.GraphGetNodes(g)), cuda.ErrInvalidValue)
	e.is(e.GraphExecDestroy(1), cuda.ErrInvalidValue)
}
