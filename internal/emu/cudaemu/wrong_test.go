package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Arguments of live handles that are out of their range.
func TestWrongArguments(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 3, Peers: func(a, b int) bool { return a != 2 && b != 2 }})
	s, ev, p := e.stream(cuda.StreamNonBlocking), e.event(0), e.alloc(64, true)
	f := e.kernel("store")
	e.use(2)
	far, other := e.alloc(64, true), e.event(0)
	e.ok(e.EventRecord(other, 0))
	e.ok(e.CtxSynchronize())
	e.use(0)
	e.ok(e.EventRecord(ev, s))
	e.ok(e.StreamSynchronize(s))
	g := must.Get(e.GraphCreate())
	n := must.Get(e.GraphAddEventRecordNode(g, nil, ev))
	says := func(err error, r cuda.Result, text string) {
		t.Helper()
		e.is(err, r)
		require.ErrorContains(t, err, text)
	}
	second := func(_ any, err error) error { return err }
	says(second(e.GraphAddChildGraphNode(g, nil, g)), cuda.ErrInvalidValue, "the graph is to be its own child")
	says(second(e.GraphAddChildGraphNode(g, nil, 99)), cuda.ErrInvalidValue, "0x63 is no graph")
	says(second(e.GraphAddChildGraphNode(g, []cuda.GraphNode{99}, g)), cuda.ErrInvalidValue, "")
	says(second(e.GraphInstantiate(g, 16)), cuda.ErrInvalidValue, "flags 0x10")
	says(second(e.GraphAddEventRecordNode(g, nil, 99)), cuda.ErrInvalidHandle, "0x63 is no event")
	says(second(e.GraphAddEventRecordNode(g, []cuda.GraphNode{99}, ev)), cuda.ErrInvalidValue, "")
	says(e.GraphAddDependencies(g, []cuda.GraphNode{n}, []cuda.GraphNode{n}), cuda.ErrInvalidValue,
		"an edge of a node to itself")
	says(e.GraphAddDependencies(g, []cuda.GraphNode{n}, []cuda.GraphNode{99}), cuda.ErrInvalidValue, "")
	says(second(e.GraphConditionalHandleCreate(g, 99, 0, 0)), cuda.ErrInvalidContext, "")
	says(e.EventRecordWithFlags(ev, s, 2), cuda.ErrInvalidValue, "flags 0x2")
	says(e.EventRecord(ev, 99), cuda.ErrInvalidHandle, "0x63 is no stream")
	says(e.StreamWaitEvent(s, ev, 2), cuda.ErrInvalidValue, "flags 0x2")
	says(second(e.EventElapsedTime(ev, other)), cuda.ErrInvalidHandle, "events of different devices")
	says(second(e.EventElapsedTime(ev, 99)), cuda.ErrInvalidHandle, "0x63 is no event")
	says(e.StreamBeginCapture(s, 3), cuda.ErrInvalidValue, "mode 3")
	says(e.StreamBeginCaptureToGraph(s, 99, nil, cuda.CaptureRelaxed), cuda.ErrInvalidValue, "0x63 is no graph")
	says(second(e.DeviceGetP2PAttribute(99, 0, 1)), cuda.ErrInvalidValue, "attribute 99 is not emulated")
	says(second(e.DeviceGetP2PAttribute(cuda.P2PAccessSupported, 0, 9)), cuda.ErrInvalidDevice, "device 9 of 3")
	says(second(e.DeviceCanAccessPeer(0, 9)), cuda.ErrInvalidDevice, "device 9 of 3")
	says(second(e.FuncGetAttribute(99, f)), cuda.ErrInvalidValue, "attribute 99 is not emulated")
	says(e.FuncSetAttribute(f, cuda.FuncRegisters, 1), cuda.ErrInvalidValue, "cannot be set")
	says(e.FuncSetAttribute(f, cuda.FuncMaxDynamicShared, -1), cuda.ErrInvalidValue,
		"-1 bytes of dynamic shared memory, at most ")
	says(second(e.OccupancyMaxActiveBlocksPerMultiprocessor(f, 0, 0)), cuda.ErrInvalidValue, "0 threads, 0 bytes")
	says(second(e.OccupancyMaxActiveBlocksPerMultiprocessor(f, 1, -1)), cuda.ErrInvalidValue, "1 threads, -1 bytes")
	says(e.MemcpyAsync(p, 0x99, 4, s), cuda.ErrInvalidValue, "0x99 is not memory that the driver knows")
	says(e.MemcpyAsync(0x99, p, 4, s), cuda.ErrInvalidValue, "0x99 is not memory that the driver knows")
	says(e.StreamWriteValue32(s, far, 1, 0), cuda.ErrInvalidValue,
		"is memory of a device to which the stream's has no access: enable peer access")
	says(e.StreamWaitValue32(s, p, 1, 4), cuda.ErrInvalidValue, "")
	says(e.MemcpyPeerAsync(p, e.ctx[1], p, e.ctx[0], 4, s), cuda.ErrInvalidValue,
		"is memory of device 0, its context that of")
	says(e.LaunchHostFunc(s, nil), cuda.ErrInvalidValue, "no function")
	says(e.EventRecord(cuda.Event(s), s), cuda.ErrInvalidHandle, "is no event")
	says(e.EventRecord(other, s), cuda.ErrInvalidHandle, "event of device 2, stream of device 0")

	e.ok(e.StreamBeginCapture(s, cuda.CaptureRelaxed))
	says(e.StreamUpdateCaptureDependencies(s, nil, 2), cuda.ErrInvalidValue, "flags 0x2")
	says(e.StreamUpdateCaptureDependencies(s, []cuda.GraphNode{n}, 1), cuda.ErrInvalidValue, "")
	c := must.Get(e.StreamEndCapture(s))
	e.ok(e.GraphDestroy(c))

	// The body of a conditional node is of one context.
	v := must.Get(e.GraphConditionalHandleCreate(g, e.ctx[0], 1, cuda.ConditionAssignDefault))
	_, body, err := e.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, e.ctx[0])
	e.ok(err)
	says(second(e.GraphAddEventRecordNode(body, []cuda.GraphNode{99}, ev)), cuda.ErrInvalidValue, "")
	e.use(1)
	away := e.stream(cuda.StreamNonBlocking)
	q := e.alloc(64, true)
	e.ok(e.StreamBeginCaptureToGraph(away, body, nil, cuda.CaptureRelaxed))
	e.ok(e.MemsetD8Async(q, 1, 4, away))
	must.Get(e.StreamEndCapture(away))
	e.use(0)
	says(second(e.GraphInstantiate(g, 0)), cuda.ErrNotSupported,
		"the body of a conditional node has a node of another context")
	e.ok(e.GraphDestroy(g))

	for a, want := range map[cuda.FunctionAttribute]int{cuda.FuncBinaryVersion: 90, cuda.FuncPTXVersion: 70,
		cuda.FuncMaxThreadsPerBlock: 1024, cuda.FuncSharedBytes: 0, cuda.FuncMaxDynamicShared: 48 << 10} {
		got := must.Get(e.FuncGetAttribute(a, f))
		require.Equal(t, want, got, "attribute %d", a)
	}
	for i, want := range [][2]int{{0, 8}, {8, 4}} {
		offset, size, err := e.FuncGetParamInfo(f, i)
		e.ok(err)
		require.Equal(t, want, [2]int{offset, size})
	}
	for _, i := range []int{-1, 2} {
		_, _, err = e.FuncGetParamInfo(f, i)
		says(err, cuda.ErrInvalidValue, "kernel store has 2 parameters")
	}
	_, _, err = e.FuncGetParamInfo(99, 0)
	says(err, cuda.ErrInvalidHandle, "0x63 is no function")
}

// Unreleased names the objects that are left.
func TestUnreleased(t *testing.T) {
	m := must.Get(cudaemu.New(cudaemu.Config{}))
	require.Empty(t, m.Unreleased())
	require.True(t, m.Idle())
	ctx := must.Get(m.DevicePrimaryCtxRetain(0))
	require.NoError(t, cuda.With(m, ctx, func() error {
		must.Get(m.EventCreate(0))
		must.Get(m.GraphCreate())
		return must.Err(m.GraphCreate())
	}))
	list := m.Unreleased()
	require.Contains(t, list, "2 × graph")
	err := m.Close()
	for _, s := range list {
		require.ErrorContains(t, err, s)
	}
}

// Unreleased has neither what a library holds nor numbers of what the program's line is known of.
func TestUnreleasedOf(t *testing.T) {
	var by cudaemu.Caller
	m := must.Get(cudaemu.New(cudaemu.Config{Caller: func(int) cudaemu.Caller { return by }}))
	ctx := must.Get(m.DevicePrimaryCtxRetain(0))
	for _, by = range []cudaemu.Caller{{Library: true}, {For: func() string { return "run.cu:7" }}} {
		require.NoError(t, cuda.With(m, ctx, func() error {
			for range 2 {
				must.Get(m.MemAlloc(100))
			}
			must.Get(m.StreamCreate(0, 0))
			must.Get(m.MemHostAlloc(8, 0))
			must.Get(m.EventCreate(0))
			must.Get(m.MemAddressReserve(2<<20, 0))
			must.Get(m.MemCreate(2<<20, cuda.AllocationProp{}))
			return must.Err(m.GraphCreate())
		}))
	}
	require.Equal(t, []string{"device 0: primary context: retained 1 times more than released",
		"device 0: 2 × 100 bytes of MemAlloc (run.cu:7)", "device 0: 1 × 8 bytes of MemHostAlloc (run.cu:7)",
		"device 0: 1 × event (run.cu:7)", "device 0: 1 × stream (run.cu:7)",
		"1 × allocation of cuMemCreate (run.cu:7)", "1 × graph (run.cu:7)", "1 × reserved address range (run.cu:7)"},
		m.Unreleased())
	require.Error(t, m.Close())
}

// Memory that a library alone still holds is no leak of the program that has made it.
func TestUnreleasedLent(t *testing.T) {
	const size = 2 << 20
	program, library := cudaemu.Caller{For: func() string { return "run.cu:7" }}, cudaemu.Caller{Library: true}
	by := program
	m := must.Get(cudaemu.New(cudaemu.Config{Caller: func(int) cudaemu.Caller { return by }}))
	h := must.Get(m.MemCreate(size, cuda.AllocationProp{}))
	at := must.Get(m.MemAddressReserve(size, 0))
	require.NoError(t, m.MemMap(at, size, h))
	by = library
	held := must.Get(m.MemRetainAllocationHandle(at))
	there := must.Get(m.MemAddressReserve(size, 0))
	require.NoError(t, m.MemMap(there, size, held))
	left := func(want ...string) { t.Helper(); require.ElementsMatch(t, want, m.Unreleased()) }
	by = program
	left("1 × allocation of cuMemCreate (run.cu:7)", "1 × reserved address range (run.cu:7)")
	require.NoError(t, m.MemUnmap(at, size))
	require.NoError(t, m.MemAddressFree(at, size))
	left("1 × allocation of cuMemCreate (run.cu:7)")
	require.NoError(t, m.MemRelease(h))
	left()
	by = library
	require.NoError(t, m.MemRelease(held))
	left()
	by = program
	again := must.Get(m.MemRetainAllocationHandle(there))
	left("1 × allocation of cuMemCreate (run.cu:7)")
	require.NoError(t, m.MemRelease(again))
	by = library
	require.NoError(t, m.MemUnmap(there, size))
	require.NoError(t, m.MemAddressFree(there, size))
	require.NoError(t, m.Close())
}

// Calls that allocate wait for the work of their context where the machine is told so, and only those.
func TestAllocsWait(t *testing.T) {
	e := start(t, cudaemu.Config{AllocsWait: true, Lazy: true})
	s, p := e.stream(cuda.StreamNonBlocking), e.alloc(64, true)
	host := must.Get(e.MemHostAlloc(64, 0))
	for name, call := range map[string]func() error{
		"MemAlloc":     func() error { q, err := e.MemAlloc(64); e.Cleanup(func() { e.MemFree(q) }); return err },
		"StreamCreate": func() error { q, err := e.StreamCreate(0, 0); e.Cleanup(func() { e.StreamDestroy(q) }); return err },
		"MemHostAlloc": func() error { q, err := e.MemHostAlloc(64, 0); e.Cleanup(func() { e.MemFreeHost(q) }); return err },
		"MemFreeHost":  func() error { return e.MemFreeHost(host) },
	} {
		for range 10 {
			e.ok(e.MemsetD8Async(p, 1, 64, s))
		}
		e.ok(call())
		done := must.Get(e.StreamQuery(s))
		require.True(t, done, name)
	}
}
