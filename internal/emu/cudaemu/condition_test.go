package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// countdown lowers a word by 1 and sets a condition to what is left.
const countdown = `.version 7.0
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry countdown(.param .u64 p, .param .u64 handle) {
	.reg .u64 %rd<3>;
	.reg .u32 %r<2>;
	ld.param.u64 %rd1, [p];
	ld.param.u64 %rd2, [handle];
	ld.global.u32 %r1, [%rd1];
	sub.u32 %r1, %r1, 1;
	st.global.u32 [%rd1], %r1;
	{
	.param .b64 param0;
	st.param.b64 [param0], %rd2;
	.param .b32 param1;
	st.param.b32 [param1], %r1;
	call.uni cudaGraphSetConditional, (param0, param1);
	}
	ret;
}`

type countdownArgs struct {
	p      uintptr
	handle cuda.Condition
}

// TestWhile repeats a body, with a conditional node of its own, as often as its kernels say.
func TestWhile(t *testing.T) {
	for seed := range uint64(5) {
		e := start(t, cudaemu.Config{Seed: seed, Lazy: true})
		s, p := e.stream(cuda.StreamNonBlocking), e.alloc(64, true)
		f := e.kernelOf(countdown, "countdown")
		g := must.Get(e.GraphCreate())
		add := func(g cuda.Graph, how cuda.ConditionType, initial uint32) (cuda.Condition, cuda.GraphNode, cuda.Graph) {
			v := must.Get(e.GraphConditionalHandleCreate(g, e.ctx[0], initial, cuda.ConditionAssignDefault))
			n, body, err := e.GraphAddConditionalNode(g, nil, v, how, e.ctx[0])
			e.ok(err)
			return v, n, body
		}
		within := func(g cuda.Graph, after []cuda.GraphNode, f func()) {
			e.ok(e.StreamBeginCaptureToGraph(s, g, after, cuda.CaptureRelaxed))
			f()
			same := must.Get(e.StreamEndCapture(s))
			require.Equal(t, g, same)
		}
		loop, node, body := add(g, cuda.ConditionWhile, 1)
		odd, inner, then := add(body, cuda.ConditionIf, 0)
		within(then, nil, func() { e.ok(e.MemsetD32Async(p+8, 7, 1, s)) })
		within(body, []cuda.GraphNode{inner}, func() {
			e.ok(e.LaunchKernel(f, &cuda.Launch{Stream: s}, cuda.ArgsOf(&countdownArgs{p, loop})))
			e.ok(e.LaunchKernel(f, &cuda.Launch{Stream: s}, cuda.ArgsOf(&countdownArgs{p + 4, odd})))
		})
		within(g, []cuda.GraphNode{node}, func() { e.ok(e.MemcpyAsync(p+12, p, 4, s)) })
		e.is(e.GraphDestroy(body), cuda.ErrInvalidValue)
		x := must.Get(e.GraphInstantiate(g, 0))
		e.ok(e.GraphDestroy(g))
		e.is(e.GraphDestroy(body), cuda.ErrInvalidValue)
		for range 2 {
			e.ok(e.MemsetD32Async(p, 5, 2, s))
			e.ok(e.MemsetD32Async(p+8, 0, 2, s))
			e.ok(e.GraphLaunch(x, s))
			e.ok(e.StreamSynchronize(s))
			require.Equal(t, [4]uint32{0, 0, 7, 0}, [4]uint32{e.word(p), e.word(p + 4), e.word(p + 8), e.word(p + 12)})
		}
		e.ok(e.GraphExecDestroy(x))
		e.clean()
	}
}

// A kernel that sets a number which is no condition is reported.
func TestNoCondition(t *testing.T) {
	e := start(t, cudaemu.Config{})
	p := e.alloc(64, true)
	launchOf(e, countdown, "countdown", 1, 1, 0, &countdownArgs{p, 12345})
	e.is(e.CtxSynchronize(), cuda.ErrLaunchFailed)
	require.Equal(t, 1, e.kinds()[weakmem.BadInstruction])
}

func TestConditionErrors(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2})
	g := must.Get(e.GraphCreate())
	e.is(must.Err(e.GraphConditionalHandleCreate(g, e.ctx[0], 0, 2)), cuda.ErrInvalidValue)
	v := must.Get(e.GraphConditionalHandleCreate(g, e.ctx[0], 0, 0))
	e.is(must.Err(e.GraphInstantiate(g, 0)), cuda.ErrInvalidValue) // a handle without a node
	_, _, err := e.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, e.ctx[1])
	e.is(err, cuda.ErrInvalidValue)
	_, _, err = e.GraphAddConditionalNode(g, nil, v, 2, e.ctx[0])
	e.is(err, cuda.ErrInvalidValue)
	_, _, err = e.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, e.ctx[0])
	e.ok(err)
	_, _, err = e.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, e.ctx[0])
	e.is(err, cuda.ErrInvalidValue) // it has its node
	e.ok(e.GraphDestroy(g))
	old := start(t, cudaemu.Config{DriverVersion: 12020})
	g, err = old.GraphCreate()
	old.ok(err)
	old.is(must.Err(old.GraphConditionalHandleCreate(g, old.ctx[0], 0, 0)), cuda.ErrNotFound)
	old.ok(old.GraphDestroy(g))
}

// An executable graph stays as its graph was, whatever becomes of the graph.
func TestInstantiateCopies(t *testing.T) {
	e := start(t, cudaemu.Config{Lazy: true})
	s, p, ev := e.stream(cuda.StreamNonBlocking), e.alloc(64, true), e.event(cuda.EventDisableTiming)
	e.ok(e.StreamBeginCapture(s, cuda.CaptureRelaxed))
	e.ok(e.MemsetD32Async(p, 1, 1, s))
	i := must.Get(e.StreamGetCaptureInfo(s))
	record := must.Get(e.GraphAddEventRecordNode(i.Graph, i.Dependencies, ev))
	x := must.Get(e.GraphInstantiate(i.Graph, 0))
	e.ok(e.GraphRemoveDependencies(i.Graph, i.Dependencies, []cuda.GraphNode{record}))
	g := must.Get(e.StreamEndCapture(s))
	e.ok(e.GraphDestroy(g))
	e.ok(e.GraphLaunch(x, s))
	e.ok(e.EventSynchronize(ev)) // comes after the set
	e.ok(e.MemsetD32Async(p, 2, 1, e.stream(cuda.StreamNonBlocking)))
	e.ok(e.CtxSynchronize())
	require.EqualValues(t, 2, e.word(p))
	e.ok(e.GraphExecDestroy(x))
	e.clean()
}

// A graph must not be launched when an event that it names was destroyed.
func TestGraphOfDestroyedEvent(t *testing.T) {
	e := start(t, cudaemu.Config{})
	s := e.stream(cuda.StreamNonBlocking)
	ev := must.Get(e.EventCreate(cuda.EventDisableTiming))
	inner := e.captured(s, func() { e.ok(e.EventRecordWithFlags(ev, s, cuda.EventRecordExternal)) })
	x := e.graph(s, func() { e.child(s, inner) })
	e.ok(e.GraphLaunch(x, s))
	e.ok(e.EventDestroy(ev))
	again := must.Get(e.EventCreate(cuda.EventDisableTiming))
	require.Equal(t, ev, again)
	err := e.GraphLaunch(x, s)
	e.is(err, cuda.ErrInvalidHandle)
	require.Contains(t, err.Error(), "destroyed")
	e.ok(e.EventDestroy(again))
	e.ok(e.GraphExecDestroy(x))
	e.ok(e.GraphDestroy(inner))
}
