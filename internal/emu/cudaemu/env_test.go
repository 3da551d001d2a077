package cudaemu_test

import (
	"encoding/binary"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// An env is a test on an OS thread of its own, with the primary contexts of all
// devices retained and that of device 0 current.
type env struct {
	testing.TB
	*cudaemu.Machine
	ctx     []cuda.Context
	modules map[string][]cuda.Module
}

func start(t testing.TB, cfg cudaemu.Config) *env {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test
	e := &env{TB: t, Machine: open(t, cfg), modules: map[string][]cuda.Module{}}
	n := must.Get(e.DeviceGetCount())
	for i := range n {
		c := must.Get(e.DevicePrimaryCtxRetain(cuda.Device(i)))
		e.ctx = append(e.ctx, c)
	}
	require.NoError(t, e.CtxSetCurrent(e.ctx[0]))
	t.Cleanup(func() {
		for text := range e.modules {
			for i, m := range e.modules[text] {
				if m != 0 {
					e.use(i)
					e.ModuleUnload(m) // may fail in a context that is broken
				}
			}
		}
		for i := range e.ctx {
			require.NoError(t, e.DevicePrimaryCtxRelease(cuda.Device(i)))
		}
		e.CtxSetCurrent(0)
	})
	return e
}

// use makes the context of a device current.
func (e *env) use(device int) {
	e.Helper()
	require.NoError(e, e.CtxSetCurrent(e.ctx[device]))
}

func (e *env) ok(err error) {
	e.Helper()
	require.NoError(e, err)
}

// is fails the test unless err is the result, of a call that it names.
func (e *env) is(err error, r cuda.Result) {
	e.Helper()
	var got *cuda.Error
	require.ErrorAs(e, err, &got)
	require.Equal(e, r, got.Result, "%v", err)
	require.NotEmpty(e, got.Call)
}

// alloc is device memory of the current context, filled with zeros if zero.
func (e *env) alloc(n int, zero bool) uintptr {
	e.Helper()
	p := must.Get(e.MemAlloc(n))
	ctx := must.Get(e.CtxGetCurrent())
	if zero {
		e.ok(e.MemsetD8(p, 0, n))
		e.ok(e.CtxSynchronize())
	}
	e.Cleanup(func() {
		if e.CtxSetCurrent(ctx) == nil { // else the test has reset the device
			e.MemFree(p) // may fail in a context that is broken
		}
	})
	return p
}

func (e *env) stream(flags cuda.StreamFlags) cuda.Stream {
	e.Helper()
	s := must.Get(e.StreamCreate(flags, 0))
	e.Cleanup(func() { e.StreamDestroy(s) })
	return s
}

func (e *env) event(flags cuda.EventFlags) cuda.Event {
	e.Helper()
	ev := must.Get(e.EventCreate(flags))
	e.Cleanup(func() { e.EventDestroy(ev) })
	return ev
}

// kernel is a kernel of ptxText on the current device.
func (e *env) kernel(name string) cuda.Function { return e.kernelOf(ptxText, name) }

func (e *env) kernelOf(text, name string) cuda.Function {
	e.Helper()
	d := must.Get(e.CtxGetDevice())
	list := e.modules[text]
	if list == nil {
		list = make([]cuda.Module, len(e.ctx))
		e.modules[text] = list
	}
	if list[d] == 0 {
		list[d] = must.Get(e.ModuleLoadData([]byte(text)))
	}
	f := must.Get(e.ModuleGetFunction(list[d], name))
	return f
}

// edited is ptxText with a piece replaced, which must be there.
func edited(t testing.TB, old, new string) string {
	t.Helper()
	require.Contains(t, ptxText, old)
	return strings.Replace(ptxText, old, new, 1)
}

// launch starts one block of a kernel of ptxText; args is a pointer to a struct.
func launch[T any](e *env, name string, s cuda.Stream, args *T) {
	e.Helper()
	launchOf(e, ptxText, name, 1, 1, s, args)
}

func launchOf[T any](e *env, text, name string, blocks, threads int, s cuda.Stream, args *T) {
	e.Helper()
	l := cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)}, Stream: s}
	e.ok(e.LaunchKernel(e.kernelOf(text, name), &l, cuda.ArgsOf(args)))
}

type (
	storeArgs struct {
		p uintptr
		v uint32
	}
	moveArgs     struct{ to, from uintptr }
	waitArgs     struct{ p uintptr }
	messageArgs  struct{ data, flag, out uintptr }
	exchangeArgs struct {
		theirs, mine, out uintptr
		value, rounds     uint32
	}
)

// word reads device memory.
func (e *env) word(p uintptr) uint32 {
	e.Helper()
	var b [4]byte
	e.ok(e.MemcpyDtoH(b[:], p))
	return binary.LittleEndian.Uint32(b[:])
}

// gate is a word of pinned memory that streams wait for.
func (e *env) gate() *atomic.Uint32 {
	e.Helper()
	p := must.Get(e.MemHostAlloc(4096, 0))
	g := (*atomic.Uint32)(pointer(p))
	e.Cleanup(func() {
		g.Store(1)
		e.MemFreeHost(p)
	})
	return g
}

func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// bytesAt is pinned memory.
func bytesAt(p uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(p)), n) }

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// kinds counts the faults found so far.
func (e *env) kinds() map[weakmem.FaultKind]int {
	n := map[weakmem.FaultKind]int{}
	for _, f := range e.Reports() {
		n[f.Kind]++
	}
	return n
}

// clean fails the test if anything was found.
func (e *env) clean() {
	e.Helper()
	for _, f := range e.Reports() {
		e.Errorf("%v", f)
	}
}
