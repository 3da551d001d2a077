package cudaemu_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/cudaemu"
)

var record = flag.String("record", "", "ask the real driver and write its answers to this `file`")

const recorded = "testdata/behaviour.txt"

// differs lists what the emulator answers otherwise on purpose.
var differs = []struct {
	question string
	nth      int // of the answers, counted from 1
	here     string
	why      string
}{
	{"virtual memory", 27, "INVALID_VALUE", "unmapping twice would unmap what is mapped there by then"},
}

// TestBehaviour asks the emulator what a real driver was asked once. To ask one
// again: go test ./internal/cudaemu -run TestBehaviour -record testdata/behaviour.txt
func TestBehaviour(t *testing.T) {
	if *record != "" {
		d, err := cuda.Open("")
		require.NoError(t, err)
		v, err := d.DriverGetVersion()
		require.NoError(t, err)
		name, err := d.DeviceGetName(0)
		require.NoError(t, err)
		text := fmt.Sprintf("# %s, driver of CUDA %d.%d\n", name, v/1000, v%1000/10)
		for _, q := range questions {
			text += q.name + ": " + ask(t, d, q) + "\n"
			require.NoError(t, os.WriteFile(*record, []byte(text), 0o666)) // each time: the next may crash
		}
		return
	}
	b, err := os.ReadFile(recorded)
	if err != nil {
		t.Skip("no answers were recorded")
	}
	want := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, answer, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			want[name] = answer
		}
	}
	for _, q := range questions {
		m, err := cudaemu.New(cudaemu.Config{})
		require.NoError(t, err)
		got := ask(t, m, q)
		m.Close()
		w, ok := want[q.name]
		if !ok {
			t.Logf("%s: not recorded; here %s", q.name, got)
			continue
		}
		answers := strings.Split(w, ", ")
		for _, d := range differs {
			if d.question == q.name {
				require.NotEqual(t, d.here, answers[d.nth-1], "%s: does not differ", q.name)
				answers[d.nth-1] = d.here
			}
		}
		if strings.Join(answers, ", ") != got {
			t.Errorf("%s:\n\there     %s\n\thardware %s", q.name, got, w)
		}
	}
}

// An inquiry is a question being asked: a stream, another one, an event, memory.
type inquiry struct {
	cuda.Driver
	ctx      cuda.Context
	s, other cuda.Stream
	blocking cuda.Stream
	ev       cuda.Event
	p, h     uintptr
	answers  []string
}

// says notes an answer: the name of an error's result, or "ok".
func (a *inquiry) says(err error) bool {
	var e *cuda.Error
	switch {
	case err == nil:
		a.answers = append(a.answers, "ok")
	case errors.As(err, &e):
		a.answers = append(a.answers, strings.TrimPrefix(e.Result.Error(), "CUDA_ERROR_"))
	default:
		a.answers = append(a.answers, err.Error())
	}
	return err == nil
}

func (a *inquiry) is(v any) { a.answers = append(a.answers, fmt.Sprint(v)) }

// ends tells what becomes of the capture.
func (a *inquiry) ends(s cuda.Stream) {
	g, err := a.StreamEndCapture(s)
	if a.says(err) {
		a.GraphDestroy(g)
	}
}

func ask(t *testing.T, d cuda.Driver, q question) string {
	answer := make(chan string)
	go func() { // on a thread of its own
		runtime.LockOSThread()
		ctx, err := d.DevicePrimaryCtxRetain(0)
		require.NoError(t, err)
		require.NoError(t, d.CtxSetCurrent(ctx))
		a := &inquiry{Driver: d, ctx: ctx}
		a.s, _ = d.StreamCreate(cuda.StreamNonBlocking, 0)
		a.other, _ = d.StreamCreate(cuda.StreamNonBlocking, 0)
		a.blocking, _ = d.StreamCreate(cuda.StreamDefault, 0)
		a.ev, _ = d.EventCreate(cuda.EventDisableTiming)
		a.p, _ = d.MemAlloc(4 << 20)
		a.h, _ = d.MemHostAlloc(4096, 0)
		q.ask(a)
		for _, s := range []cuda.Stream{a.s, a.other, a.blocking} {
			if g, err := d.StreamEndCapture(s); err == nil {
				d.GraphDestroy(g)
			}
			d.StreamDestroy(s)
		}
		d.EventDestroy(a.ev)
		d.MemFree(a.p)
		d.MemFreeHost(a.h)
		d.CtxSetCurrent(0)
		d.DevicePrimaryCtxRelease(0)
		answer <- strings.Join(a.answers, ", ")
	}()
	return <-answer
}

type question struct {
	name string
	ask  func(*inquiry)
}

// inCapture asks within a capture of a.s, and what becomes of it.
func inCapture(name string, mode cuda.CaptureMode, f func(*inquiry) error) question {
	names := map[cuda.CaptureMode]string{cuda.CaptureGlobal: "global", cuda.CaptureThreadLocal: "thread-local", cuda.CaptureRelaxed: "relaxed"}
	return question{names[mode] + " capture, " + name, func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.s, mode))
		a.says(f(a))
		a.ends(a.s)
	}}
}

// questions must not be such that they kill the context or crash the process.
var questions = []question{
	inCapture("synchronize another stream", 0, func(a *inquiry) error { return a.StreamSynchronize(a.other) }),
	inCapture("query another stream", 0, func(a *inquiry) error { _, err := a.StreamQuery(a.other); return err }),
	inCapture("query an event", 0, func(a *inquiry) error { _, err := a.EventQuery(a.ev); return err }),
	inCapture("synchronize an event", 0, func(a *inquiry) error { return a.EventSynchronize(a.ev) }),
	inCapture("query an event", 2, func(a *inquiry) error { _, err := a.EventQuery(a.ev); return err }),
	inCapture("query a recorded event", 0, func(a *inquiry) error {
		a.says(a.EventRecord(a.ev, a.other))
		_, err := a.EventQuery(a.ev)
		return err
	}),
	inCapture("synchronous copy", 0, func(a *inquiry) error { return a.MemcpyHtoD(a.p, make([]byte, 4)) }),
	inCapture("synchronous copy", 2, func(a *inquiry) error { return a.MemcpyHtoD(a.p, make([]byte, 4)) }),
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
	inCapture("allocate", 0, func(a *inquiry) error { _, err := a.MemAlloc(64); return err }),
	inCapture("allocate", 2, func(a *inquiry) error {
		p, err := a.MemAlloc(64)
		if err == nil {
			a.says(a.MemFree(p))
		}
		return err
	}),
	inCapture("free", 0, func(a *inquiry) error { return a.MemFree(a.p) }),
	inCapture("allocate on the host", 0, func(a *inquiry) error { _, err := a.MemHostAlloc(64, 0); return err }),
	inCapture("free on the host", 0, func(a *inquiry) error { return a.MemFreeHost(a.h) }),
	inCapture("register", 0, func(a *inquiry) error {
		b := make([]byte, 8192)
		return a.MemHostRegister(uintptr(unsafe.Pointer(&b[0])), 8192, 0)
	}),
	inCapture("load a module", 0, func(a *inquiry) error { _, err := a.ModuleLoadData([]byte(ptxText)); return err }),
	inCapture("make virtual memory", 0, func(a *inquiry) error {
		h, err := a.MemCreate(2<<20, cuda.AllocationProp{})
		if err == nil {
			a.says(a.MemRelease(h))
		}
		return err
	}),
	inCapture("IPC handle", 0, func(a *inquiry) error { _, err := a.IpcGetMemHandle(a.p); return err }),
	inCapture("pointer attribute", 0, func(a *inquiry) error { _, err := a.PointerGetAttribute(2, a.p); return err }),
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
		_, err := a.StreamEndCapture(a.other)
		return err
	}),
	inCapture("end on another thread", 1, func(a *inquiry) error {
		result := make(chan error)
		go func() {
			result <- cuda.With(a.Driver, a.ctx, func() error { _, err := a.StreamEndCapture(a.s); return err })
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
		_, err := a.EventQuery(a.ev)
		return err
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
		_, err := a.MemAlloc(64)
		a.says(err)
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
		_, err := a.EventQuery(a.ev)
		a.says(err)
		a.says(a.EventSynchronize(a.ev))
		a.says(a.StreamWaitEvent(a.other, a.ev, 0))
		a.says(a.EventRecord(a.ev, a.other))
		_, err = a.EventQuery(a.ev)
		a.says(err)
	}},
	{"blocking stream captures, legacy stream used", func(a *inquiry) {
		a.says(a.StreamBeginCapture(a.blocking, 2))
		_, err := a.StreamIsCapturing(0)
		a.says(err)
		_, err = a.StreamGetCaptureInfo(0)
		a.says(err)
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
		_, err := a.StreamEndCapture(a.s)
		a.says(err)
		a.says(a.StreamUpdateCaptureDependencies(a.s, nil, 1))
		_, err = a.StreamIsCapturing(0)
		a.says(err)
	}},
	{"external events outside of a capture", func(a *inquiry) {
		a.says(a.EventRecordWithFlags(a.ev, a.s, 1))
		a.says(a.StreamWaitEvent(a.s, a.ev, 1))
		a.says(a.EventRecordWithFlags(a.ev, a.s, 7))
	}},
	{"events", func(a *inquiry) {
		_, err := a.EventElapsedTime(a.ev, a.ev)
		a.says(err)
		e, err := a.EventCreate(0)
		a.says(err)
		_, err = a.EventElapsedTime(e, e)
		a.says(err)
		a.says(a.EventDestroy(e))
		_, err = a.EventCreate(cuda.EventInterprocess)
		a.says(err)
		_, err = a.EventCreate(1 << 20)
		a.says(err)
	}},
	{"streams", func(a *inquiry) {
		_, err := a.StreamCreate(77, 0)
		a.says(err)
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
		_, err := a.MemAlloc(0)
		a.says(err)
		a.says(a.MemFree(0))
		a.says(a.MemFree(a.p + 256))
		a.says(a.MemFree(a.h))
		_, _, err = a.MemGetAddressRange(a.h)
		a.says(err)
		p, err := a.MemAlloc(1000)
		a.says(err)
		_, n, err := a.MemGetAddressRange(p + 999)
		a.says(err)
		a.is(n)
		a.says(a.MemFree(p))
	}},
	{"host memory", func(a *inquiry) {
		_, err := a.MemHostAlloc(0, 0)
		a.says(err)
		a.says(a.MemFreeHost(a.h + 64))
		_, err = a.MemHostGetDevicePointer(a.p)
		a.says(err)
		b := make([]byte, 3*4096)
		p := uintptr(unsafe.Pointer(&b[0]))
		_, err = a.MemHostGetDevicePointer(p)
		a.says(err)
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
	{"pointer attributes", func(a *inquiry) {
		for _, p := range []uintptr{a.p + 100, a.h + 100} {
			for at := range cuda.PointerAttribute(13) {
				switch at {
				case cuda.PointerMemoryType, cuda.PointerSyncMemops, cuda.PointerIsManaged, cuda.PointerDeviceOrdinal, cuda.PointerLegacyIPC, cuda.PointerRangeSize:
					v, err := a.PointerGetAttribute(at, p)
					a.says(err)
					a.is(v)
				}
			}
		}
		_, err := a.PointerGetAttribute(999, a.p)
		a.says(err)
		a.says(a.PointerSetSyncMemops(a.h, true))
		_, err = a.PointerGetAttribute(cuda.PointerMemoryType, 64)
		a.says(err)
	}},
	{"contexts", func(a *inquiry) {
		c, err := a.CtxPopCurrent()
		a.says(err)
		a.is(c == a.ctx)
		_, err = a.CtxPopCurrent()
		a.says(err)
		_, err = a.CtxGetDevice()
		a.says(err)
		a.says(a.CtxSynchronize())
		_, err = a.StreamQuery(0)
		a.says(err)
		_, err = a.StreamQuery(a.s)
		a.says(err)
		_, err = a.EventQuery(a.ev)
		a.says(err)
		a.says(a.EventRecord(a.ev, a.s))
		a.says(a.MemsetD8Async(a.p, 1, 4, a.s))
		_, _, err = a.MemGetAddressRange(a.p)
		a.says(err)
		_, err = a.IpcGetMemHandle(a.p)
		a.says(err)
		_, err = a.MemCreate(1, cuda.AllocationProp{})
		a.says(err)
		_, err = a.StreamIsCapturing(a.s)
		a.says(err)
		g, err := a.GraphCreate()
		if a.says(err) {
			x, err := a.GraphInstantiate(g, 0)
			a.says(err)
			a.GraphExecDestroy(x)
			a.GraphDestroy(g)
		}
		a.says(a.CtxSetCurrent(a.ctx))
		a.says(a.CtxEnablePeerAccess(a.ctx))
		_, err = a.DeviceGetP2PAttribute(1, 0, 0)
		a.says(err)
		_, err = a.DeviceGetAttribute(9999, 0)
		a.says(err)
		a.says(a.DevicePrimaryCtxRelease(7777))
	}},
	{"without a context, on functions and modules", func(a *inquiry) {
		m, err := a.ModuleLoadData([]byte(ptxText))
		a.says(err)
		f, err := a.ModuleGetFunction(m, "nothing")
		a.says(err)
		a.CtxSetCurrent(0)
		_, err = a.ModuleGetFunction(m, "few")
		a.says(err)
		_, _, err = a.ModuleGetGlobal(m, "there")
		a.says(err)
		_, err = a.FuncGetAttribute(0, f)
		a.says(err)
		_, err = a.OccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 0)
		a.says(err)
		a.says(a.LaunchKernel(f, &cuda.Launch{Stream: a.s}, nil))
		a.says(a.LaunchHostFunc(a.s, func() {}))
		a.says(a.StreamWriteValue32(a.s, a.p, 1, 0))
		a.says(a.StreamSynchronize(a.s))
		a.says(a.ModuleUnload(m))
		a.CtxSetCurrent(a.ctx)
		a.ModuleUnload(m)
	}},
	{"IPC", func(a *inquiry) {
		h, err := a.IpcGetMemHandle(a.p + 4096)
		a.says(err)
		_, err = a.IpcOpenMemHandle(h)
		a.says(err)
		_, err = a.IpcOpenMemHandle(cuda.IPCHandle{})
		a.says(err)
		_, err = a.IpcGetMemHandle(a.h)
		a.says(err)
		a.says(a.IpcCloseMemHandle(a.p))
		_, err = a.IpcGetEventHandle(a.ev)
		a.says(err)
		e, err := a.EventCreate(cuda.EventInterprocess | cuda.EventDisableTiming)
		a.says(err)
		h, err = a.IpcGetEventHandle(e)
		a.says(err)
		_, err = a.IpcOpenEventHandle(h)
		a.says(err)
		_, err = a.IpcOpenEventHandle(cuda.IPCHandle{})
		a.says(err)
		a.EventDestroy(e)
	}},
	{"virtual memory", func(a *inquiry) {
		const n = 2 << 20
		prop := cuda.AllocationProp{}
		g, err := a.MemGetAllocationGranularity(prop, 0)
		a.says(err)
		a.is(g)
		_, err = a.MemCreate(n+1, prop)
		a.says(err)
		h, err := a.MemCreate(n, prop)
		a.says(err)
		_, err = a.MemExportToShareableHandle(h)
		a.says(err)
		_, err = a.MemAddressReserve(n+1, 0)
		a.says(err)
		_, err = a.MemAddressReserve(n, 3)
		a.says(err)
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
		_, err = a.IpcGetMemHandle(p)
		a.says(err)
		a.says(a.MemAddressFree(p, 4*n))
		a.says(a.MemUnmap(p, n/2))
		a.says(a.MemUnmap(p, 2*n))
		a.says(a.MemUnmap(p, n))
		a.says(a.MemFree(p))
		a.says(a.MemAddressFree(p, n))
		a.says(a.MemAddressFree(p, 4*n))
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
		load("\x7fELF and so on and so on, longer than any header of a file of this kind is, so that nothing is read behind its end, as one hopes")
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
		_, err = a.ModuleGetFunction(m, "here")
		a.says(err)
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
