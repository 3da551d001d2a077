package cudaemu_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
)

// waitingTime is longer than any call takes by itself: loading a module takes a
// while.
const waitingTime = 80 * time.Millisecond

// waitingQuestions are about which calls return while something goes on.
var waitingQuestions = []question{
	{"what returns while the legacy stream waits", func(a *inquiry) {
		gate := (*atomic.Uint32)(pointer(a.h))
		small, large := make([]byte, 4), make([]byte, 4<<20)
		synced, err := a.MemAlloc(4 << 20)
		a.says(err)
		a.says(a.PointerSetSyncMemops(synced, true))
		for _, f := range []func() error{
			func() error { return a.MemcpyHtoD(a.p, small) },
			func() error { return a.MemcpyHtoD(a.p, large[:32<<10]) },
			func() error { return a.MemcpyHtoD(a.p, large[:128<<10]) },
			func() error { return a.MemcpyHtoD(a.p, large) },
			func() error { return a.MemcpyHtoD(a.p, bytesAt(a.h+64, 64)) },
			func() error { return a.MemcpyHtoD(a.h+64, small) },
			func() error { return a.MemcpyHtoD(synced, small) },
			func() error { return a.MemcpyDtoD(a.p, a.p+4096, 64) },
			func() error { return a.MemcpyDtoD(synced, a.p, 64) },
			func() error { return a.MemcpyDtoD(a.h+64, a.p, 64) },
			func() error { return a.MemcpyDtoD(a.h+64, a.h+128, 64) },
			func() error { return a.MemcpyDtoH(small, a.p) },
			func() error { return a.MemsetD8(a.p, 1, 64) },
			func() error { return a.MemsetD8(synced, 1, 64) },
			func() error { return a.MemsetD8(a.h+64, 1, 64) },
		} {
			gate.Store(0)
			a.StreamWaitValue32(cuda.StreamLegacy, a.h, 1, cuda.WaitGEQ)
			open := time.AfterFunc(20*time.Millisecond, func() { gate.Store(1) })
			if a.says(f()) {
				a.is(gate.Load() == 0)
			}
			open.Stop()
			gate.Store(1)
			a.StreamSynchronize(cuda.StreamLegacy)
		}
		a.says(a.MemFree(synced))
	}},
	{"what waits for a kernel", func(a *inquiry) { whileKernelRuns(a, a.ctx) }},
	{"what waits for a kernel of a peer", func(a *inquiry) {
		peer, err := a.DevicePrimaryCtxRetain(1)
		if !a.says(err) {
			return
		}
		defer a.DevicePrimaryCtxRelease(1)
		a.says(a.CtxEnablePeerAccess(peer))
		a.says(cuda.With(a, peer, func() error { return a.CtxEnablePeerAccess(a.ctx) }))
		whileKernelRuns(a, peer)
		a.says(cuda.With(a, peer, func() error { return a.CtxDisablePeerAccess(a.ctx) }))
		a.says(a.CtxDisablePeerAccess(peer))
	}},
}

// whileKernelRuns has a kernel of a context run on a stream of its own, and tells
// of calls in the current context whether they return before it ends.
func whileKernelRuns(a *inquiry, of cuda.Context) {
	gate := (*atomic.Uint32)(pointer(a.h))
	var kernel cuda.Function
	var stream cuda.Stream
	var module cuda.Module
	a.says(cuda.With(a, of, func() (err error) {
		if module, err = a.ModuleLoadData([]byte(ptxText)); err != nil {
			return err
		}
		if kernel, err = a.ModuleGetFunction(module, "await"); err != nil {
			return err
		}
		stream, err = a.StreamCreate(cuda.StreamNonBlocking, 0)
		return err
	}))
	tell := func(name string, f func() error) {
		limit := waitingTime
		if strings.HasPrefix(name, "many ") {
			limit *= 4
		}
		gate.Store(0)
		launched := cuda.With(a, of, func() error {
			return a.LaunchKernel(kernel, &cuda.Launch{Stream: stream}, cuda.ArgsOf(&waitArgs{a.h}))
		})
		time.Sleep(time.Millisecond) // it runs by now
		open := time.AfterFunc(limit, func() { gate.Store(1) })
		err := f()
		does := "returns"
		if gate.Load() != 0 {
			does = "waits"
		}
		open.Stop()
		gate.Store(1)
		ended := cuda.With(a, of, func() error { return a.StreamSynchronize(stream) })
		if err := errors.Join(launched, err, ended); err != nil {
			does = err.Error()
		}
		a.is(name + " " + does)
	}

	const page, large, n = 4096, 64 << 20, 2 << 20
	var p, q, h uintptr
	tell("cuMemAlloc", func() (err error) { p, err = a.MemAlloc(page); return })
	tell("cuMemAlloc of much", func() (err error) { q, err = a.MemAlloc(large); return })
	tell("cuIpcGetMemHandle", func() (err error) { _, err = a.IpcGetMemHandle(q); return })
	tell("cuMemcpyHtoD", func() error { return a.MemcpyHtoD(p, make([]byte, 64)) })
	tell("cuMemcpyDtoH", func() error { return a.MemcpyDtoH(make([]byte, 64), p) })
	tell("cuMemcpyDtoD", func() error { return a.MemcpyDtoD(q, p, 64) })
	tell("cuMemsetD8", func() error { return a.MemsetD8(p, 1, 64) })
	tell("cuMemFree", func() error { return a.MemFree(p) })
	tell("cuMemFree of much", func() error { return a.MemFree(q) })
	tell("cuMemHostAlloc", func() (err error) { h, err = a.MemHostAlloc(page, 0); return })
	tell("cuMemFreeHost", func() error { return a.MemFreeHost(h) })
	buf := make([]byte, 1<<16)
	b := address(&buf[0])
	tell("cuMemHostRegister", func() error { return a.MemHostRegister(b, len(buf), 0) })
	tell("cuMemHostUnregister", func() error { return a.MemHostUnregister(b) })

	var v cuda.MemHandle
	tell("cuMemCreate", func() (err error) { v, err = a.MemCreate(n, cuda.AllocationProp{}); return })
	tell("cuMemAddressReserve", func() (err error) { p, err = a.MemAddressReserve(n, 0); return })
	tell("cuMemMap", func() error { return a.MemMap(p, n, v) })
	tell("cuMemSetAccess", func() error { return a.MemSetAccess(p, n, 0) })
	tell("cuMemUnmap", func() error { return a.MemUnmap(p, n) })
	tell("cuMemRelease", func() error { return a.MemRelease(v) })
	tell("cuMemAddressFree", func() error { return a.MemAddressFree(p, n) })

	var s cuda.Stream
	var e cuda.Event
	tell("cuStreamCreate", func() (err error) { s, err = a.StreamCreate(cuda.StreamNonBlocking, 0); return })
	tell("cuEventCreate", func() (err error) { e, err = a.EventCreate(cuda.EventDisableTiming); return })
	var m cuda.Module
	var f cuda.Function
	// Other texts, so that nothing of them is known: names of entries are all that differs.
	tell("cuModuleLoadData", func() (err error) {
		m, err = a.ModuleLoadData([]byte(strings.ReplaceAll(ptxText, "nothing", "nothing_yet")))
		return
	})
	tell("cuModuleGetFunction", func() (err error) { f, err = a.ModuleGetFunction(m, "nothing_yet"); return })
	tell("a first launch", func() error { return a.LaunchKernel(f, &cuda.Launch{Stream: s}, nil) })
	tell("another launch", func() error { return a.LaunchKernel(f, &cuda.Launch{Stream: s}, nil) })
	a.says(a.StreamSynchronize(s))
	var x cuda.GraphExec
	a.says(a.StreamBeginCapture(s, cuda.CaptureRelaxed))
	a.says(a.LaunchKernel(f, &cuda.Launch{Stream: s}, nil))
	g, err := a.StreamEndCapture(s)
	a.says(err)
	tell("cuGraphInstantiate", func() (err error) { x, err = a.GraphInstantiate(g, 0); return })
	tell("a graph's first launch", func() error { return a.GraphLaunch(x, s) })
	a.says(a.StreamSynchronize(s))
	tell("cuGraphExecDestroy", func() error { return a.GraphExecDestroy(x) })
	a.says(a.GraphDestroy(g))
	tell("cuEventDestroy", func() error { return a.EventDestroy(e) })
	tell("cuStreamDestroy", func() error { return a.StreamDestroy(s) })
	tell("cuModuleUnload", func() error { return a.ModuleUnload(m) })
	// The driver has some memory in store, and has to ask for more when that is gone.
	var many []uintptr
	tell("many cuMemAlloc", func() error {
		for range 40 {
			p, err := a.MemAlloc(1 << 20)
			if err != nil {
				return err
			}
			many = append(many, p)
		}
		return nil
	})
	var modules []cuda.Module
	tell("many cuModuleLoadData", func() error {
		for i := range 30 {
			text := fmt.Sprintf(".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 "+
				"room[%d];\n.visible .entry k() { ret; }\n", 100000+i)
			m, err := a.ModuleLoadData([]byte(text))
			if err != nil {
				return err
			}
			modules = append(modules, m)
		}
		return nil
	})
	for _, p := range many {
		a.MemFree(p)
	}
	for _, m := range modules {
		a.ModuleUnload(m)
	}
	a.says(cuda.With(a, of, func() error {
		a.says(a.StreamDestroy(stream))
		return a.ModuleUnload(module)
	}))
}
