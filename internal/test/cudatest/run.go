// Package cudatest says how a cuda.Driver behaves, as tests. The real driver and
// the emulated one have to pass the same; where only one of them can do
// something, or they may differ, a comment says so.
package cudatest

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Run runs all tests on the drivers that open gives, in subtests of t. open may
// give the same driver each time; it is called once in each process. Tests that
// take two processes run the test that called Run again, alone, in a child; so
// Run must be called at the top of a test function, once.
func Run(t *testing.T, open func(t testing.TB) cuda.Driver) {
	d := open(t)
	if role := childRole(); role != "" {
		runChild(t, d, role)
		return
	}
	// The context is retained all the time, so that it is not made anew for each test.
	require.NoError(t, must.Err(d.DevicePrimaryCtxRetain(0)))
	t.Cleanup(func() { require.NoError(t, d.DevicePrimaryCtxRelease(0)) })

	for _, test := range []struct {
		name string
		f    func(e *env)
	}{
		{"devices", testDevices},
		{"probes", testProbes},
		{"contexts/current", testCurrent},
		{"contexts/threads at once", testThreadsAtOnce},
		{"contexts/thread without one", testNoContext},
		{"contexts/with", testWith},
		{"contexts/peers", testPeers},
		{"memory/device", testDeviceMemory},
		{"memory/host", testHostMemory},
		{"memory/registered", testRegistered},
		{"memory/attributes", testPointerAttributes},
		{"memory/copies and sets", testCopies},
		{"memory/bad", testBadMemory},
		{"memory/virtual", testVirtualMemory},
		{"memory/dma-buf", testDMABuf},
		{"memory/growing", testGrowing},
		{"streams/properties", testStreamProperties},
		{"streams/ids", testStreamIDs},
		{"streams/wait and write values", testStreamValues},
		{"streams/host functions", testHostFunctions},
		{"streams/events", testEvents},
		{"streams/between", testStreamsBetween},
		{"streams/legacy", testLegacyStream},
		{"modules/load", testModules},
		{"modules/refused", testRefusedModules},
		{"launches/threads", testThreads},
		{"launches/vectors", testVectors},
		{"launches/parameters", testParameters},
		{"launches/shared memory", testSharedMemory},
		{"launches/cooperative", testCooperative},
		{"launches/bad", testBadLaunches},
		{"capture/replay", testReplay},
		{"capture/one at a time", testOneAtATime},
		{"capture/external events", testExternalEvents},
		{"capture/info", testCaptureInfo},
		{"capture/graphs in turn", testGraphsInTurn},
		{"capture/fork and join", testForkJoin},
		{"graphs/update", testGraphUpdate},
		{"graphs/children", testChildGraphs},
		{"graphs/conditional", testConditionalGraphs},
		{"graphs/events at launch", testEventsAtLaunch},
		{"capture/forbidden", testForbidden},
		{"capture/user objects", testUserObjects},
		{"peers/copies in graphs", testPeerCopies},
		{"peers/virtual memory", testPeerVirtual},
		{"peers/virtual memory without access", testNoAccess},
		{"peers/wait and write values", testPeerValues},
		{"processes/ipc memory", testIPCMemory},
		{"processes/ipc memory within", testIPCWithin},
		{"processes/ipc wait and write values", testIPCValues},
		{"processes/ipc event", testIPCEvent},
		{"processes/file descriptor", testImport},
		{"processes/file descriptor of a peer", testPeerImport},
		{"faults/illegal address", testIllegalAddress},
		{"faults/misaligned address", testMisalignedAddress},
		{"faults/trap", testTrap},
	} {
		t.Run(test.name, func(t *testing.T) { with(t, d, test.f) })
	}
}

// An env is a test with the context of device 0 current on its thread.
type env struct {
	*testing.T
	d   cuda.Driver
	dev cuda.Device
	ctx cuda.Context

	dead bool // a fault of a kernel ended the context
}

// with runs f with the context of device 0 on its thread, which has none before
// and after.
func with(t *testing.T, d cuda.Driver, f func(*env)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dev, err := d.DeviceGet(0)
	require.NoError(t, err)
	ctx, err := d.DevicePrimaryCtxRetain(dev)
	require.NoError(t, err)
	e := &env{T: t, d: d, dev: dev, ctx: ctx}
	e.Cleanup(func() { // the last one, when all that the test made is gone
		if !e.dead {
			e.noErr(d.DevicePrimaryCtxRelease(dev))
		}
	})
	e.noErr(d.CtxPushCurrent(ctx))
	defer func() {
		if c, err := d.CtxPopCurrent(); !e.dead {
			e.noErr(err)
			require.Equal(t, ctx, c, "the test changed the current context")
		}
	}()
	defer func() { e.caught(recover()) }()
	f(e)
}

// caught fails the test because of a panic of must.Get.
func (e *env) caught(p any) {
	switch p := p.(type) {
	case nil:
	case must.Failure:
		e.Fatal(p)
	default:
		panic(p)
	}
}

// noErr fails the test on an error.
func (e *env) noErr(err error) {
	e.Helper()
	require.NoError(e.T, err)
}

// is fails the test unless err is one of the results, typed and named.
func (e *env) is(err error, results ...cuda.Result) {
	e.Helper()
	var got *cuda.Error
	require.ErrorAs(e.T, err, &got)
	require.Contains(e.T, results, got.Result, "%v", err)
	require.True(e.T, strings.HasPrefix(got.Call, "cu"), "%v", err)
	require.Contains(e.T, err.Error(), got.Result.Error())
}

// alloc is device memory that is freed when the test ends.
func (e *env) alloc(n int) uintptr {
	e.Helper()
	p := must.Get(e.d.MemAlloc(n))
	e.after(func() error { return e.d.MemFree(p) })
	return p
}

// host is pinned memory of the host that is freed when the test ends.
func (e *env) host(n int) uintptr {
	e.Helper()
	p := must.Get(e.d.MemHostAlloc(n, cuda.HostAllocMapped|cuda.HostAllocPortable))
	e.after(func() error { return e.d.MemFreeHost(p) })
	return p
}

// stream is a stream that is destroyed when the test ends.
func (e *env) stream() cuda.Stream {
	e.Helper()
	s := must.Get(e.d.StreamCreate(cuda.StreamNonBlocking, 0))
	e.after(func() error { return e.d.StreamDestroy(s) })
	return s
}

func (e *env) event(flags cuda.EventFlags) cuda.Event {
	e.Helper()
	ev := must.Get(e.d.EventCreate(flags))
	e.after(func() error { return e.d.EventDestroy(ev) })
	return ev
}

// module is the module of all test kernels.
func (e *env) module() cuda.Module {
	e.Helper()
	m := must.Get(e.d.ModuleLoadData([]byte(kernels)))
	e.after(func() error { return e.d.ModuleUnload(m) })
	return m
}

func (e *env) kernel(name string) cuda.Function {
	e.Helper()
	return must.Get(e.d.ModuleGetFunction(e.module(), name))
}

// after runs f when the test ends, on any thread.
func (e *env) after(f func() error) {
	e.Cleanup(func() {
		require.NoError(e.T, cuda.With(e.d, e.ctx, f))
	})
}

// words are n 32-bit words of device memory.
func (e *env) words(p uintptr, n int) []uint32 {
	e.Helper()
	b := make([]byte, 4*n)
	e.noErr(e.d.MemcpyDtoH(b, p))
	w := make([]uint32, n)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// put writes words to device memory, for work on any stream.
func (e *env) put(p uintptr, w ...uint32) {
	e.Helper()
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	e.noErr(cuda.Write(e.d, p, b))
}

// repeat is n times v.
func repeat(v uint32, n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = v
	}
	return w
}

// onThread runs f on another OS thread, which ends after it. Panics of f go on here.
func onThread(f func()) {
	done := make(chan any)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer func() { done <- recover() }()
		f()
	}()
	if p := <-done; p != nil {
		panic(p)
	}
}
