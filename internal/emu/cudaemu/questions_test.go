package cudaemu_test

import (
	"runtime"
	"strings"
	"unsafe"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A question is calls of the driver whose answers are compared with a recording.
type question struct {
	name string
	ask  func(*inquiry)
}

// inCapture asks a question within a capture of a.s, and then what becomes of the capture.
func inCapture(name string, mode cuda.CaptureMode, f func(*inquiry) error) question {
	names := map[cuda.CaptureMode]string{cuda.CaptureGlobal: "global", cuda.CaptureThreadLocal: "thread-local",
		cuda.CaptureRelaxed: "relaxed"}
	return question{names[mode] + " capture, " + name, func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.s, mode))
		a.says(f(a))
		a.ends(a.s)
	}}
}

// questions must neither kill the context nor crash the process.
var questions = []question{
	inCapture("synchronize another stream", 0, func(a *inquiry) error { return a.StreamSynchronize(a.other) }),
	inCapture("query another stream", 0, func(a *inquiry) error { return must.Err(a.StreamQuery(a.other)) }),
	inCapture("query an event", 0, func(a *inquiry) error { return must.Err(a.EventQuery(a.ev)) }),
	inCapture("synchronize an event", 0, func(a *inquiry) error { return a.EventSynchronize(a.ev) }),
	inCapture("query an event", 2, func(a *inquiry) error { return must.Err(a.EventQuery(a.ev)) }),
	inCapture("query a recorded event", 0, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.other))
		return must.Err(a.EventQuery(a.ev))
	}),
	inCapture("synchronous copy", 0, func(a *inquiry) error { return a.MemcpyHtoD(a.p, make([]byte, 4)) }),
	inCapture("synchronous copy", 2, func(a *inquiry) error { return a.MemcpyHtoD(a.p, make([]byte, 4)) }),
	inCapture("copy between contexts", 2,
		func(a *inquiry) error { return a.MemcpyPeerAsync(a.p, a.ctx, a.p+4096, a.ctx, 64, a.s) }),
	inCapture("set", 0, func(a *inquiry) error { return a.MemsetD8(a.p, 1, 4) }),
	inCapture("set", 2, func(a *inquiry) error { return a.MemsetD8(a.p, 1, 4) }),
	inCapture("copy on the device", 0, func(a *inquiry) error { return a.MemcpyDtoD(a.p, a.p+64, 4) }),
	inCapture("asynchronous set on the legacy stream", 0, func(a *inquiry) error { return a.MemsetD8Async(a.p, 1, 4, 0) }),
	inCapture("create a stream", 0, func(a *inquiry) error {
		s, err := a.StreamCreate(1, 0)
		if err == nil {
			a.says(a.StreamDestroy(s))
		}
		return err
	}),
	inCapture("create an event", 0, func(a *inquiry) error {
		e, err := a.EventCreate(0)
		if err == nil {
			a.says(a.EventDestroy(e))
		}
		return err
	}),
	inCapture("create an interprocess event", 0, func(a *inquiry) error {
		e, err := a.EventCreate(cuda.EventInterprocess | cuda.EventDisableTiming)
		if err == nil {
			a.says(a.EventDestroy(e))
		}
		return err
	}),
	inCapture("allocate", 0, func(a *inquiry) error { return must.Err(a.MemAlloc(64)) }),
	inCapture("allocate", 2, func(a *inquiry) error {
		p, err := a.MemAlloc(64)
		if err == nil {
			a.says(a.MemFree(p))
		}
		return err
	}),
	inCapture("free", 0, func(a *inquiry) error { return a.MemFree(a.p) }),
	inCapture("allocate on the host", 0, func(a *inquiry) error { return must.Err(a.MemHostAlloc(64, 0)) }),
	inCapture("free on the host", 0, func(a *inquiry) error { return a.MemFreeHost(a.h) }),
	inCapture("register", 0, func(a *inquiry) error {
		b := make([]byte, 8192)
		return a.MemHostRegister(uintptr(unsafe.Pointer(&b[0])), 8192, 0)
	}),
	inCapture("load a module", 0, func(a *inquiry) error { return must.Err(a.ModuleLoadData([]byte(ptxText))) }),
	inCapture("make virtual memory", 0, func(a *inquiry) error {
		h, err := a.MemCreate(2<<20, cuda.AllocationProp{})
		if err == nil {
			a.says(a.MemRelease(h))
		}
		return err
	}),
	inCapture("IPC handle", 0, func(a *inquiry) error { return must.Err(a.IpcGetMemHandle(a.p)) }),
	inCapture("pointer attribute", 0, func(a *inquiry) error { return must.Err(a.PointerGetAttribute(2, a.p)) }),
	inCapture("free memory", 0, func(a *inquiry) error { _, _, err := a.MemGetInfo(); return err }),
	inCapture("synchronize the context", 0, func(a *inquiry) error { return a.CtxSynchronize() }),
	inCapture("synchronize the context", 2, func(a *inquiry) error { return a.CtxSynchronize() }),
	inCapture("synchronize the legacy stream", 0, func(a *inquiry) error { return a.StreamSynchronize(0) }),
	inCapture("synchronize the legacy stream", 2, func(a *inquiry) error { return a.StreamSynchronize(0) }),
	inCapture("begin again", 2, func(a *inquiry) error { return a.StreamBeginCapture(a.s, 2) }),
	inCapture("legacy stream begins", 2, func(a *inquiry) error { return a.StreamBeginCapture(0, 2) }),
	inCapture("stream per thread begins", 2, func(a *inquiry) error {
		err := a.StreamBeginCapture(cuda.StreamPerThread, 2)
		if err == nil {
			a.ends(cuda.StreamPerThread)
		}
		return err
	}),
	inCapture("end on a stream that joined", 2, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.s))
		a.says(a.StreamWaitEvent(a.other, a.ev, 0))
		return must.Err(a.StreamEndCapture(a.other))
	}),
	inCapture("end on another thread", 1, func(a *inquiry) error {
		result := make(chan error)
		go func() {
			result <- cuda.With(a.Driver, a.ctx, func() error { return must.Err(a.StreamEndCapture(a.s)) })
		}()
		return <-result
	}),
	inCapture("instantiate the graph", 2, func(a *inquiry) error {
		i, err := a.StreamGetCaptureInfo(a.s)
		a.says(err)
		x, err := a.GraphInstantiate(i.Graph, 0)
		if err == nil {
			a.GraphExecDestroy(x)
		}
		return err
	}),
	inCapture("query a captured event", 2, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.s))
		return must.Err(a.EventQuery(a.ev))
	}),
	inCapture("synchronize a captured event", 2, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.s))
		return a.EventSynchronize(a.ev)
	}),
	inCapture("synchronize a stream that joined", 2, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.s))
		a.says(a.StreamWaitEvent(a.other, a.ev, 0))
		return a.StreamSynchronize(a.other)
	}),
	inCapture("wait for an event from outside", 2, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.other))
		return a.StreamWaitEvent(a.s, a.ev, 0)
	}),
	inCapture("wait for an event never recorded", 2, func(a *inquiry) error { return a.StreamWaitEvent(a.s, a.ev, 0) }),
	inCapture("wait for an event of a capture that ended", 2, func(a *inquiry) error {
		a.says(a.StreamBeginCapture(a.other, 2))
		a.says(a.EventRecord(a.ev, a.other))
		a.ends(a.other)
		return a.StreamWaitEvent(a.s, a.ev, 0)
	}),
	inCapture("query an event of a capture that ended", 0, func(a *inquiry) error {
		a.says(a.StreamBeginCapture(a.other, 2))
		a.says(a.EventRecord(a.ev, a.other))
		a.ends(a.other)
		return must.Err(a.EventQuery(a.ev))
	}),
	inCapture("destroy a stream that joined", 2, func(a *inquiry) error { return a.destroyJoined(false) }),
	inCapture("destroy a stream that joined and was waited for", 2,
		func(a *inquiry) error { return a.destroyJoined(true) }),
	inCapture("unload a module", 0, func(a *inquiry) error {
		m, err := a.ModuleLoadData([]byte(ptxText))
		a.says(err)
		err = a.ModuleUnload(m)
		if err != nil {
			a.StreamEndCapture(a.s)
			a.ModuleUnload(m)
		}
		return err
	}),
	inCapture("allocate when invalid", 0, func(a *inquiry) error {
		a.says(must.Err(a.MemAlloc(64)))
		p, err := a.MemAlloc(64)
		if err == nil {
			a.MemFree(p)
		}
		return err
	}),
	inCapture("synchronize the context, thread relaxed", 0, func(a *inquiry) error {
		a.ThreadExchangeStreamCaptureMode(2)
		defer a.ThreadExchangeStreamCaptureMode(0)
		return a.CtxSynchronize()
	}),
	inCapture("legacy stream waits for a captured event", 2, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.s))
		return a.StreamWaitEvent(0, a.ev, 0)
	}),
	inCapture("merge", 2, func(a *inquiry) error {
		a.says(a.StreamBeginCapture(a.other, 2))
		a.says(a.EventRecord(a.ev, a.other))
		err := a.StreamWaitEvent(a.s, a.ev, 0)
		a.ends(a.other)
		return err
	}),
	inCapture("info when invalid", 0, func(a *inquiry) error {
		a.says(must.Err(a.MemAlloc(64)))
		i, err := a.StreamGetCaptureInfo(a.s)
		a.is(i.Status)
		a.is(i.Graph != 0)
		a.is(i.ID != 0)
		a.says(a.MemsetD8Async(a.p, 1, 4, a.s))
		return err
	}),
	inCapture("upload", 2, func(a *inquiry) error {
		g, err := a.GraphCreate()
		a.says(err)
		x, err := a.GraphInstantiate(g, 0)
		a.says(err)
		err = a.GraphUpload(x, a.s)
		a.GraphExecDestroy(x)
		a.GraphDestroy(g)
		return err
	}),
	{"event of a capture that ended", func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.s, 2))
		a.says(a.EventRecord(a.ev, a.s))
		a.ends(a.s)
		a.says(must.Err(a.EventQuery(a.ev)))
		a.says(a.EventSynchronize(a.ev))
		a.says(a.StreamWaitEvent(a.other, a.ev, 0))
		a.says(a.EventRecord(a.ev, a.other))
		a.says(must.Err(a.EventQuery(a.ev)))
	}},
	{"event of a capture that ended, after a record", func(a *inquiry) {
		e, err := a.EventCreate(0)
		a.says(err)
		a.says(a.EventRecord(e, a.s))
		a.says(a.StreamSynchronize(a.s))
		a.says(a.StreamBeginCapture(a.s, 2))
		a.says(a.EventRecord(e, a.s))
		a.ends(a.s)
		a.says(must.Err(a.EventElapsedTime(e, e)))
		a.says(must.Err(a.EventQuery(e)))
		a.EventDestroy(e)
	}},
	{"blocking stream captures, legacy stream used", func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.blocking, 2))
		a.says(must.Err(a.StreamIsCapturing(0)))
		a.says(must.Err(a.StreamGetCaptureInfo(0)))
		a.says(a.MemsetD8Async(a.p, 1, 4, 0))
		a.ends(a.blocking)
	}},
	{"blocking stream captures, synchronous copy", func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.blocking, 2))
		a.says(a.MemcpyHtoD(a.p, make([]byte, 4)))
		a.ends(a.blocking)
	}},
	{"blocking stream captures, legacy stream synchronized", func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.blocking, 2))
		a.says(a.StreamSynchronize(0))
		a.ends(a.blocking)
	}},
	{"blocking stream captures, event recorded on the legacy stream", func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.blocking, 2))
		a.says(a.EventRecord(a.ev, 0))
		a.ends(a.blocking)
	}},
	{"a stream destroyed while it captures", func(a *inquiry) {
		s, _ := a.StreamCreate(1, 0)
		a.says(a.StreamBeginCapture(s, 2))
		a.says(a.StreamDestroy(s))
	}},
	{"not capturing", func(a *inquiry) {
		a.says(must.Err(a.StreamEndCapture(a.s)))
		a.says(a.StreamUpdateCaptureDependencies(a.s, nil, 1))
		a.says(must.Err(a.StreamIsCapturing(0)))
	}},
	{"external events outside of a capture", func(a *inquiry) {
		a.says(a.EventRecordWithFlags(a.ev, a.s, 1))
		a.says(a.StreamWaitEvent(a.s, a.ev, 1))
		a.says(a.EventRecordWithFlags(a.ev, a.s, 7))
	}},
	{"events", func(a *inquiry) {
		a.says(must.Err(a.EventElapsedTime(a.ev, a.ev)))
		e, err := a.EventCreate(0)
		a.says(err)
		a.says(must.Err(a.EventElapsedTime(e, e)))
		a.says(a.EventDestroy(e))
		a.says(must.Err(a.EventCreate(cuda.EventInterprocess)))
		a.says(must.Err(a.EventCreate(1 << 20)))
	}},
	{"streams", func(a *inquiry) {
		a.says(must.Err(a.StreamCreate(77, 0)))
		a.says(a.StreamDestroy(0))
		for _, s := range []cuda.Stream{0, 1, 2, a.s, a.blocking} {
			f, err := a.StreamGetFlags(s)
			a.says(err)
			a.is(f)
			p, err := a.StreamGetPriority(s)
			a.says(err)
			a.is(p)
		}
		s, err := a.StreamCreate(1, -100)
		a.says(err)
		p, _ := a.StreamGetPriority(s)
		a.is(p)
		a.StreamDestroy(s)
		least, greatest, err := a.CtxGetStreamPriorityRange()
		a.says(err)
		a.is(least)
		a.is(greatest)
	}},
	{"device memory", func(a *inquiry) {
		a.says(must.Err(a.MemAlloc(0)))
		a.says(a.MemFree(0))
		a.says(a.MemFree(a.p + 256))
		a.says(a.MemFree(a.h))
		_, _, err := a.MemGetAddressRange(a.h)
		a.says(err)
		p, err := a.MemAlloc(1000)
		a.says(err)
		_, n, err := a.MemGetAddressRange(p + 999)
		a.says(err)
		a.is(n)
		a.says(a.MemFree(p))
	}},
	{"host memory", func(a *inquiry) {
		a.says(must.Err(a.MemHostAlloc(0, 0)))
		a.says(a.MemFreeHost(a.h + 64))
		a.says(must.Err(a.MemHostGetDevicePointer(a.p)))
		b := make([]byte, 3*4096)
		p := uintptr(unsafe.Pointer(&b[0]))
		a.says(must.Err(a.MemHostGetDevicePointer(p)))
		a.says(a.MemHostRegister(p, 4096, 0))
		a.says(a.MemHostRegister(p, 4096, 0))
		a.says(a.MemHostRegister(p+64, 64, 0))
		a.says(a.MemFreeHost(p))
		q, err := a.MemHostGetDevicePointer(p)
		a.says(err)
		a.is(q == p)
		a.says(a.MemHostUnregister(p + 64))
		a.says(a.MemHostUnregister(p))
		a.says(a.MemHostUnregister(p))
		a.says(a.MemHostRegister(p, 0, 0))
		a.says(a.MemHostRegister(a.p, 4096, 0))
		a.says(a.MemHostRegister(a.h, 4096, 0))
		runtime.KeepAlive(b)
	}},
	{"host memory of no bytes, and of others", func(a *inquiry) {
		p, err := a.MemHostAlloc(0, 0)
		a.says(err)
		a.is(p == 0)
		a.says(a.MemFreeHost(p))
		a.says(a.MemHostUnregister(a.h))
		a.says(a.MemHostUnregister(a.p))
		_, n, err := a.MemGetAddressRange(a.h + 8)
		a.says(err)
		a.is(n)
	}},
	{"pointer attributes", func(a *inquiry) {
		for _, p := range []uintptr{a.p + 100, a.h + 100} {
			for at := range cuda.PointerAttribute(13) {
				switch at {
				case cuda.PointerMemoryType, cuda.PointerSyncMemops, cuda.PointerIsManaged, cuda.PointerDeviceOrdinal,
					cuda.PointerLegacyIPC, cuda.PointerRangeSize:
					v, err := a.PointerGetAttribute(at, p)
					a.says(err)
					a.is(v)
				}
			}
		}
		a.says(must.Err(a.PointerGetAttribute(999, a.p)))
		a.says(a.PointerSetSyncMemops(a.h, true))
		a.says(must.Err(a.PointerGetAttribute(cuda.PointerMemoryType, 64)))
	}},
	{"contexts", func(a *inquiry) {
		c, err := a.CtxPopCurrent()
		a.says(err)
		a.is(c == a.ctx)
		a.says(must.Err(a.CtxPopCurrent()))
		a.says(must.Err(a.CtxGetDevice()))
		a.says(a.CtxSynchronize())
		a.says(must.Err(a.StreamQuery(0)))
		a.says(must.Err(a.StreamQuery(a.s)))
		a.says(must.Err(a.EventQuery(a.ev)))
		a.says(a.EventRecord(a.ev, a.s))
		a.says(a.MemsetD8Async(a.p, 1, 4, a.s))
		_, _, err = a.MemGetAddressRange(a.p)
		a.says(err)
		a.says(must.Err(a.IpcGetMemHandle(a.p)))
		a.says(must.Err(a.MemCreate(1, cuda.AllocationProp{})))
		a.says(must.Err(a.StreamIsCapturing(a.s)))
		g, err := a.GraphCreate()
		if a.says(err) {
			x, err := a.GraphInstantiate(g, 0)
			a.says(err)
			a.GraphExecDestroy(x)
			a.GraphDestroy(g)
		}
		a.says(a.CtxSetCurrent(a.ctx))
		a.says(a.CtxEnablePeerAccess(a.ctx))
		a.says(must.Err(a.DeviceGetP2PAttribute(1, 0, 0)))
		a.says(must.Err(a.DeviceGetAttribute(9999, 0)))
		a.says(a.DevicePrimaryCtxRelease(7777))
	}},
	{"without a context, on functions and modules", func(a *inquiry) {
		m, err := a.ModuleLoadData([]byte(ptxText))
		a.says(err)
		f, err := a.ModuleGetFunction(m, "nothing")
		a.says(err)
		a.CtxSetCurrent(0)
		a.says(must.Err(a.ModuleGetFunction(m, "few")))
		_, _, err = a.ModuleGetGlobal(m, "there")
		a.says(err)
		a.says(must.Err(a.FuncGetAttribute(0, f)))
		a.says(must.Err(a.OccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 0)))
		a.says(a.LaunchKernel(f, &cuda.Launch{Stream: a.s}, nil))
		a.says(a.LaunchHostFunc(a.s, func() {}))
		a.says(a.StreamWriteValue32(a.s, a.p, 1, 0))
		a.says(a.StreamSynchronize(a.s))
		a.says(a.ModuleUnload(m))
		a.CtxSetCurrent(a.ctx)
		a.ModuleUnload(m)
	}},
	{"without a context, setting an attribute", func(a *inquiry) {
		m, err := a.ModuleLoadData([]byte(ptxText))
		a.says(err)
		f, err := a.ModuleGetFunction(m, "reverse")
		a.says(err)
		a.CtxSetCurrent(0)
		a.says(a.FuncSetAttribute(f, cuda.FuncMaxDynamicShared, 1024))
		a.CtxSetCurrent(a.ctx)
		for _, c := range [][2]int{{1025, 0}, {64, 48 << 10}, {64, 100 << 10}} { // less than is static, more than is allowed
			v, err := a.OccupancyMaxActiveBlocksPerMultiprocessor(f, c[0], c[1])
			a.says(err)
			a.is(v)
		}
		a.says(a.ModuleUnload(m))
	}},
	{"IPC", func(a *inquiry) {
		h, err := a.IpcGetMemHandle(a.p + 4096)
		a.says(err)
		a.says(must.Err(a.IpcOpenMemHandle(h)))
		a.says(must.Err(a.IpcOpenMemHandle(cuda.IPCHandle{})))
		a.says(must.Err(a.IpcGetMemHandle(a.h)))
		a.says(a.IpcCloseMemHandle(a.p))
		a.says(must.Err(a.IpcGetEventHandle(a.ev)))
		e, err := a.EventCreate(cuda.EventInterprocess | cuda.EventDisableTiming)
		a.says(err)
		h, err = a.IpcGetEventHandle(e)
		a.says(err)
		a.says(must.Err(a.IpcOpenEventHandle(h)))
		a.says(must.Err(a.IpcOpenEventHandle(cuda.IPCHandle{})))
		a.EventDestroy(e)
	}},
	{"IPC handles of the other kind", func(a *inquiry) {
		h, err := a.IpcGetMemHandle(a.p)
		a.says(err)
		a.says(must.Err(a.IpcOpenEventHandle(h)))
		e, err := a.EventCreate(cuda.EventInterprocess | cuda.EventDisableTiming)
		a.says(err)
		h, err = a.IpcGetEventHandle(e)
		a.says(err)
		a.says(must.Err(a.IpcOpenMemHandle(h)))
		a.EventDestroy(e)
	}},
	{"virtual memory", func(a *inquiry) {
		const n = 2 << 20
		prop := cuda.AllocationProp{}
		g, err := a.MemGetAllocationGranularity(prop, 0)
		a.says(err)
		a.is(g)
		a.says(must.Err(a.MemCreate(n+1, prop)))
		h, err := a.MemCreate(n, prop)
		a.says(err)
		a.says(must.Err(a.MemExportToShareableHandle(h)))
		a.says(must.Err(a.MemAddressReserve(n+1, 0)))
		a.says(must.Err(a.MemAddressReserve(n, 3)))
		p, err := a.MemAddressReserve(4*n, 0)
		a.says(err)
		a.says(a.MemMap(p, n, h))
		a.says(a.MemMap(p, n, h))   // mapped already
		a.says(a.MemMap(p+n, n, h)) // a second time elsewhere
		a.says(a.MemMap(p+2*n, 2*n, h))
		a.says(a.MemcpyHtoD(p, make([]byte, 4))) // no access
		a.says(a.MemSetAccess(p, n, 0))
		a.says(a.MemSetAccess(p, 2*n, 0))
		a.says(a.MemSetAccess(p, 4*n, 0))
		a.says(a.MemcpyHtoD(p, make([]byte, 4)))
		a.says(a.MemcpyHtoD(p+n-2, make([]byte, 4))) // across two mappings
		v, err := a.PointerGetAttribute(cuda.PointerContext, p)
		a.says(err)
		a.is(v != 0)
		v, err = a.PointerGetAttribute(cuda.PointerRangeSize, p+8)
		a.says(err)
		a.is(v)
		a.says(must.Err(a.IpcGetMemHandle(p)))
		a.says(a.MemAddressFree(p, 4*n))
		a.says(a.MemUnmap(p, n/2))
		a.says(a.MemUnmap(p, 2*n))
		a.says(a.MemUnmap(p, n))
		a.says(a.MemFree(p))
		a.says(a.MemAddressFree(p, n))
		a.says(a.MemAddressFree(p, 4*n))
		a.says(a.MemRelease(h))
	}},
	{"virtual memory, ranges", func(a *inquiry) {
		const n = 2 << 20
		h, err := a.MemCreate(n, cuda.AllocationProp{})
		a.says(err)
		r, err := a.MemAddressReserve(4*n, 0)
		a.says(err)
		p := r + n
		a.says(a.MemMap(p, n, h))
		a.says(a.MemSetAccess(p, n, 0))
		base, size, err := a.MemGetAddressRange(p + 8)
		a.says(err)
		a.is(base - r)
		a.is(size)
		for _, at := range []cuda.PointerAttribute{cuda.PointerRangeStart, cuda.PointerRangeSize} {
			v, err := a.PointerGetAttribute(at, p+8)
			a.says(err)
			if at == cuda.PointerRangeStart {
				v -= uint64(r)
			}
			a.is(v)
		}
		_, err = a.PointerGetAttribute(cuda.PointerMemoryType, r) // reserved alone
		a.says(err)
		_, _, err = a.MemGetAddressRange(r)
		a.says(err)
		a.says(a.MemUnmap(r, n))
		a.says(a.MemUnmap(p, n))
		a.says(a.MemAddressFree(r, 4*n))
		a.says(a.MemUnmap(p, n)) // not reserved any more
		a.says(a.MemRelease(h))
	}},
	{"modules", func(a *inquiry) {
		load := func(text string) {
			m, err := a.ModuleLoadData([]byte(text))
			if a.says(err) {
				a.ModuleUnload(m)
			}
		}
		load("")
		load("hello")
		load("\x7fELF and so on and so on, longer than any header of a file of this kind is, so that nothing is read " +
			"behind its end, as one hopes")
		load(strings.Replace(ptxText, ".version 7.0", ".version 99.0", 1))
		load(strings.Replace(ptxText, "sm_70", "sm_100", 1))
		load(strings.Replace(ptxText, "sm_70", "sm_90a", 1))
		load(strings.Replace(ptxText, ".version 7.0\n.target sm_70", ".version 8.6\n.target sm_100", 1))
		load(strings.Replace(ptxText, ".version 7.0\n.target sm_70", ".version 8.6\n.target sm_90a", 1))
		load(strings.Replace(ptxText, "bar.sync 0;", "frobnicate 0;", 1))
		load(".version 7.0\n.target sm_70\n.address_size 64\n")
	}},
	{"launches", func(a *inquiry) {
		m, err := a.ModuleLoadData([]byte(ptxText))
		a.says(err)
		few, err := a.ModuleGetFunction(m, "few")
		a.says(err)
		box, err := a.ModuleGetFunction(m, "reverse")
		a.says(err)
		a.says(a.LaunchKernel(few, &cuda.Launch{Block: cuda.Dim3{X: 65}}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Block: cuda.Dim3{X: 1025}}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Block: cuda.Dim3{Z: 65}}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Grid: cuda.Dim3{Y: 65536}}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Shared: 48<<10 + 1}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Shared: 48 << 10}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Shared: 1 << 20}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Grid: cuda.Dim3{X: 100000}, Cooperative: true}, nil))
		a.says(a.LaunchKernel(few, &cuda.Launch{Stream: a.s}, make([]byte, 4)))
		for _, at := range []cuda.FunctionAttribute{0, 1, 3, 5, 8} {
			v, err := a.FuncGetAttribute(at, box)
			a.says(err)
			a.is(v)
		}
		v, err := a.FuncGetAttribute(0, few)
		a.says(err)
		a.is(v)
		a.says(a.FuncSetAttribute(box, cuda.FuncMaxDynamicShared, 227<<10))
		a.says(a.FuncSetAttribute(box, cuda.FuncMaxDynamicShared, 227<<10-256))
		a.says(a.FuncSetAttribute(box, cuda.FuncMaxDynamicShared, -1))
		a.says(a.FuncSetAttribute(box, cuda.FuncRegisters, 1))
		for _, c := range [][2]int{{32, 0}, {64, 40 << 10}, {65, 0}, {1024, 0}, {64, 300 << 10}, {0, 0}, {64, 1 << 10}} {
			v, err := a.OccupancyMaxActiveBlocksPerMultiprocessor(few, c[0], c[1])
			a.says(err)
			a.is(v)
		}
		a.says(must.Err(a.ModuleGetFunction(m, "here")))
		_, _, err = a.ModuleGetGlobal(m, "few")
		a.says(err)
		a.says(a.CtxSynchronize())
		a.ModuleUnload(m)
	}},
	{"host function calls the driver", func(a *inquiry) {
		result := make(chan error, 2)
		a.says(a.LaunchHostFunc(a.s, func() {
			_, err := a.MemAlloc(64)
			result <- err
		}))
		a.says(a.StreamSynchronize(a.s))
		a.says(<-result)
	}},
}
