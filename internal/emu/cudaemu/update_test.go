package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// An update may change some things of a graph, and says why it refuses others.
func TestUpdates(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2})
	s, p := e.stream(cuda.StreamNonBlocking), e.alloc(64, true)
	f := e.kernel("store")
	e.use(1)
	q := e.alloc(64, true)
	e.use(0)
	host := must.Get(e.MemHostAlloc(64, 0))
	defer e.MemFreeHost(host)
	event := e.event(cuda.EventDisableTiming)
	set := func(p uintptr) func() { return func() { e.ok(e.MemsetD8Async(p, 1, 4, s)) } }
	copies := func(dst, src uintptr) func() { return func() { e.ok(e.MemcpyAsync(dst, src, 4, s)) } }
	kernel := func(cooperative bool) func() {
		return func() {
			e.ok(e.LaunchKernel(f, &cuda.Launch{Stream: s, Cooperative: cooperative}, cuda.ArgsOf(&storeArgs{p, 5})))
		}
	}
	child := func(f func()) func() {
		inner := e.captured(s, f)
		t.Cleanup(func() { e.GraphDestroy(inner) })
		return func() { e.child(s, inner) }
	}
	record := func() { e.ok(e.EventRecordWithFlags(event, s, cuda.EventRecordExternal)) }
	wait := func() { e.ok(e.StreamWaitEvent(s, event, cuda.EventWaitExternal)) }
	value := func() { e.ok(e.StreamWriteValue32(s, p, 1, 0)) }
	call := func() { e.ok(e.LaunchHostFunc(s, func() {})) }
	both := func(f, g func()) func() { return func() { f(); g() } }
	condition := func(how cuda.ConditionType, ctx int, f func()) func() {
		return func() {
			info := must.Get(e.StreamGetCaptureInfo(s))
			v := must.Get(e.GraphConditionalHandleCreate(info.Graph, e.ctx[ctx], 1, cuda.ConditionAssignDefault))
			n, body, err := e.GraphAddConditionalNode(info.Graph, info.Dependencies, v, how, e.ctx[ctx])
			e.ok(err)
			e.ok(e.StreamUpdateCaptureDependencies(s, []cuda.GraphNode{n}, cuda.CaptureSetDependencies))
			other := e.stream(cuda.StreamNonBlocking)
			e.ok(e.StreamBeginCaptureToGraph(other, body, nil, cuda.CaptureRelaxed))
			s, other = other, s
			f()
			s, other = other, s
			must.Get(e.StreamEndCapture(other))
		}
	}
	for _, c := range []struct {
		name      string
		old, next func()
		want      cuda.UpdateResult
		says      string
	}{
		{"nothing", func() {}, func() {}, cuda.UpdateSuccess, ""},
		{"set elsewhere", set(p), set(p + 4), cuda.UpdateSuccess, ""},
		{"set on another device", set(p), set(q), cuda.UpdateParametersChanged, "a set of memory of another device, or kind"},
		{"copy elsewhere", copies(p, q), copies(p+4, q+8), cuda.UpdateSuccess, ""},
		{"copy to another device", copies(p, p), copies(q, p), cuda.UpdateParametersChanged,
			"a copy from or to memory of another device, or kind"},
		{"copy from the host", copies(p, p), copies(p, host), cuda.UpdateParametersChanged,
			"a copy from or to memory of another device, or kind"},
		{"kernel", kernel(false), kernel(false), cuda.UpdateSuccess, ""},
		{"cooperative kernel", kernel(false), kernel(true), cuda.UpdateAttributesChanged,
			"a kernel becomes cooperative, or is no longer"},
		{"another type", set(p), copies(p, p), cuda.UpdateNodeTypeChanged, "a set becomes a copy"},
		{"kernel, function", kernel(false), call, cuda.UpdateNodeTypeChanged, "a kernel becomes a host function"},
		{"record, wait", record, wait, cuda.UpdateNodeTypeChanged, "an event's record becomes an event's wait"},
		{"value, child", value, child(set(p)), cuda.UpdateNodeTypeChanged, "a stream memory operation becomes a child graph"},
		{"child, condition", child(set(p)), condition(cuda.ConditionIf, 0, set(p)), cuda.UpdateNodeTypeChanged,
			"a child graph becomes a condition"},
		{"more", set(p), both(set(p), set(p)), cuda.UpdateTopologyChanged, "another number of nodes"},
		{"child", child(set(p)), child(set(p + 8)), cuda.UpdateSuccess, ""},
		{"within a child", child(set(p)), child(copies(p, p)), cuda.UpdateNodeTypeChanged,
			"within a child graph: a set becomes a copy"},
		{"more in a child", child(set(p)), child(both(set(p), set(p))), cuda.UpdateTopologyChanged,
			"within a child graph: another number of nodes"},
		{"condition", condition(cuda.ConditionIf, 0, set(p)), condition(cuda.ConditionIf, 0, set(p+8)),
			cuda.UpdateSuccess, ""},
		{"another condition", condition(cuda.ConditionIf, 0, set(p)), condition(cuda.ConditionWhile, 0, set(p)),
			cuda.UpdateParametersChanged, "a condition of another type or context"},
		{"condition of another context", condition(cuda.ConditionIf, 0, func() {}), condition(cuda.ConditionIf, 1, func() {}),
			cuda.UpdateParametersChanged, "a condition of another type or context"},
		{"within a condition", condition(cuda.ConditionIf, 0, set(p)), condition(cuda.ConditionIf, 0, copies(p, p)),
			cuda.UpdateNodeTypeChanged, "within a condition: a set becomes a copy"},
	} {
		x := e.graph(s, c.old)
		g := e.captured(s, c.next)
		u, err := e.GraphExecUpdate(x, g)
		require.Equal(t, c.want, u.Result, c.name)
		if c.want == cuda.UpdateSuccess {
			require.NoError(t, err, c.name)
		} else {
			e.is(err, cuda.ErrGraphExecUpdateFailure)
			require.ErrorContains(t, err, "("+c.says+")", c.name)
		}
		e.ok(e.GraphDestroy(g))
		e.ok(e.MemsetD8(p, 0, 64))
		e.ok(e.CtxSynchronize())
		e.ok(e.GraphLaunch(x, s))
		e.ok(e.StreamSynchronize(s))
		if at, ok := map[string]uintptr{"set elsewhere": 4, "child": 8, "condition": 8, "set on another device": 0,
			"within a child": 0}[c.name]; ok {
			require.EqualValues(t, 0x01010101, e.word(p+at), c.name)
			require.Equal(t, at == 0, e.word(p) != 0, c.name)
		}
		e.ok(e.GraphExecDestroy(x))
	}
}
