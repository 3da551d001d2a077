package cudatest

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

func testStreamProperties(e *env) {
	least, greatest, err := e.d.CtxGetStreamPriorityRange()
	e.noErr(err)
	require.LessOrEqual(e, greatest, least, "a smaller number is a greater priority")
	s := must.Get(e.d.StreamCreate(cuda.StreamNonBlocking, greatest))
	p := must.Get(e.d.StreamGetPriority(s))
	require.Equal(e, greatest, p)
	f := must.Get(e.d.StreamGetFlags(s))
	require.Equal(e, cuda.StreamNonBlocking, f)
	c := must.Get(e.d.StreamGetCtx(s))
	require.Equal(e, e.ctx, c)
	done := must.Get(e.d.StreamQuery(s))
	require.True(e, done, "an empty stream is done")
	e.noErr(e.d.StreamSynchronize(s))
	e.noErr(e.d.StreamDestroy(s))

	for _, s := range []cuda.Stream{0, cuda.StreamLegacy, cuda.StreamPerThread} {
		e.noErr(e.d.MemsetD8Async(e.alloc(64), 1, 64, s))
		e.noErr(e.d.StreamSynchronize(s))
	}
}

// A gate is a word of the host's memory that a stream waits for.
type gate struct{ p uintptr }

func (e *env) gate() gate {
	e.Helper()
	g := gate{e.host(4096)}
	g.set(0)
	e.Cleanup(func() { g.set(1) }) // before the memory and streams go, whatever happened
	return g
}

func (g gate) set(v uint32) {
	atomic.StoreUint32((*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&g.p))), v)
}

func (g gate) get() uint32 {
	return atomic.LoadUint32((*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&g.p))))
}

func testStreamValues(e *env) {
	if found := cuda.Probe(e.d, cuda.StreamValues, e.dev); found.Answer != cuda.Yes {
		e.Skip(found)
	}
	s := e.stream()
	g := e.gate()
	p := e.alloc(64)
	e.put(p, 0, 0, 0, 0)

	e.noErr(e.d.StreamWaitValue32(s, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.StreamWriteValue32(s, p, 5, 0))
	e.noErr(e.d.StreamWriteValue64(s, p+8, 1<<40|6, 0))
	e.noErr(e.d.StreamWriteValue32(s, g.p+4, 7, 0)) // the host's memory, too
	time.Sleep(5 * time.Millisecond)
	done := must.Get(e.d.StreamQuery(s))
	require.False(e, done, "it waits")
	require.Zero(e, gate{g.p + 4}.get())
	g.set(2)
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, uint32(7), gate{g.p + 4}.get())
	require.Equal(e, []uint32{5, 0, 6, 1 << 8}, e.words(p, 4))

	for _, c := range []struct {
		name  string
		flags cuda.WaitFlags
		wait  uint32
		not   uint32 // the wait goes on at this value
		until uint32 // and ends at this
	}{
		{"greater or equal", cuda.WaitGEQ, 10, 9, 11},
		{"greater or equal, cyclic", cuda.WaitGEQ, 0, 0xffffffff, 1},
		{"equal", cuda.WaitEQ, 10, 11, 10},
		{"and", cuda.WaitAND, 6, 9, 2},
		{"nor", cuda.WaitNOR, 0xfffffff0, 0x0f, 0x0e}, // ^(*p | v) != 0
	} {
		g.set(c.not)
		e.noErr(e.d.StreamWaitValue32(s, g.p, c.wait, c.flags))
		time.Sleep(2 * time.Millisecond)
		done := must.Get(e.d.StreamQuery(s))
		require.False(e, done, c.name)
		g.set(c.until)
		e.noErr(e.d.StreamSynchronize(s))
	}
	e.put(p, 0xffffffff, 1)
	e.noErr(e.d.StreamWaitValue64(s, p, 1<<32, cuda.WaitGEQ)) // it is that already
	e.noErr(e.d.StreamSynchronize(s))

	e.is(e.d.StreamWriteValue32(s, 0, 1, 0), cuda.ErrInvalidValue)
	e.is(e.d.StreamWriteValue32(s, p+1, 1, 0), cuda.ErrInvalidValue)
	e.is(e.d.StreamWriteValue64(s, p+4, 1, 0), cuda.ErrInvalidValue)
}

func testHostFunctions(e *env) {
	s := e.stream()
	g := e.gate()
	p, h := e.alloc(64), e.host(64)
	var order []int
	e.noErr(e.d.StreamWaitValue32(s, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.MemsetD32Async(p, 3, 4, s))
	e.noErr(e.d.MemcpyAsync(h, p, 16, s))
	for i := range 100 {
		e.noErr(e.d.LaunchHostFunc(s, func() {
			if gate := (gate{h}); gate.get() == 3 { // what was queued before is done
				order = append(order, i)
			}
		}))
	}
	e.noErr(e.d.MemsetD32Async(p, 4, 4, s))
	g.set(1)
	e.noErr(e.d.StreamSynchronize(s))
	require.Len(e, order, 100)
	for i, x := range order {
		require.Equal(e, i, x)
	}
	require.Equal(e, repeat(4, 4), e.words(p, 4))
}

func testEvents(e *env) {
	s := e.stream()
	ev := e.event(cuda.EventDefault)
	done := must.Get(e.d.EventQuery(ev))
	require.True(e, done, "an event that was never recorded is complete")
	e.noErr(e.d.EventSynchronize(ev))

	g := e.gate()
	start := e.event(cuda.EventDefault)
	e.noErr(e.d.EventRecord(start, s))
	e.noErr(e.d.StreamWaitValue32(s, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.EventRecordWithFlags(ev, s, 0))
	done = must.Get(e.d.EventQuery(ev))
	require.False(e, done)
	e.is(must.Err(e.d.EventElapsedTime(start, ev)), cuda.ErrNotReady)
	e.noErr(e.d.EventSynchronize(start))
	time.Sleep(5 * time.Millisecond)
	g.set(1)
	e.noErr(e.d.EventSynchronize(ev))
	done = must.Get(e.d.EventQuery(ev))
	require.True(e, done)
	ms := must.Get(e.d.EventElapsedTime(start, ev))
	require.Greater(e, ms, float32(1))
	require.Less(e, ms, float32(10000))

	quick := e.event(cuda.EventDisableTiming | cuda.EventBlockingSync)
	e.noErr(e.d.EventRecord(quick, s))
	e.noErr(e.d.EventSynchronize(quick))
	e.is(must.Err(e.d.EventElapsedTime(start, quick)), cuda.ErrInvalidHandle)
	e.is(must.Err(e.d.EventElapsedTime(start, e.event(cuda.EventDefault))), cuda.ErrInvalidHandle) // never recorded
	e.is(must.Err(e.d.EventCreate(cuda.EventInterprocess)), cuda.ErrInvalidValue)                  // needs DisableTiming
}

func testStreamsBetween(e *env) {
	a, b := e.stream(), e.stream()
	g := e.gate()
	p := e.alloc(64)
	ev := e.event(cuda.EventDisableTiming)
	e.noErr(e.d.StreamWaitValue32(a, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.MemsetD32Async(p, 1, 4, a))
	e.noErr(e.d.EventRecord(ev, a))
	e.noErr(e.d.StreamWaitEvent(b, ev, 0))
	e.noErr(e.d.MemsetD32Async(p, 2, 4, b))
	done := must.Get(e.d.StreamQuery(b))
	require.False(e, done, "b waits for a")
	g.set(1)
	e.noErr(e.d.StreamSynchronize(b))
	require.Equal(e, repeat(2, 4), e.words(p, 4))

	// An event that was never recorded keeps no one waiting.
	e.noErr(e.d.StreamWaitEvent(b, e.event(cuda.EventDisableTiming), 0))
	e.noErr(e.d.StreamSynchronize(b))

	// Waiting for an event means its last record before the wait.
	e.noErr(e.d.EventRecord(ev, a))
	e.noErr(e.d.StreamWaitEvent(b, ev, 0))
	g.set(0)
	e.noErr(e.d.StreamWaitValue32(a, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.EventRecord(ev, a))
	e.noErr(e.d.StreamSynchronize(b))
	g.set(1)
	e.noErr(e.d.CtxSynchronize())
}

// testLegacyStream is about stream 0: it waits for the other streams and they for
// it, except for those that are non-blocking.
func testLegacyStream(e *env) {
	p := e.alloc(64)
	apart := e.stream()
	blocking := must.Get(e.d.StreamCreate(cuda.StreamDefault, 0))
	e.after(func() error { return e.d.StreamDestroy(blocking) })

	g := e.gate()
	e.noErr(e.d.StreamWaitValue32(apart, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.MemsetD32Async(p, 1, 4, 0))
	e.noErr(e.d.StreamSynchronize(0))
	done := must.Get(e.d.StreamQuery(apart))
	require.False(e, done, "it goes on waiting, unlike stream 0")
	g.set(1)
	e.noErr(e.d.StreamSynchronize(apart))

	g.set(0)
	e.noErr(e.d.StreamWaitValue32(blocking, g.p, 1, cuda.WaitGEQ))
	e.noErr(e.d.MemsetD32Async(p, 2, 4, blocking))
	e.noErr(e.d.MemsetD32Async(p, 3, 4, 0))
	e.noErr(e.d.MemcpyAsync(p+16, p, 16, blocking))
	time.Sleep(2 * time.Millisecond)
	done = must.Get(e.d.StreamQuery(0))
	require.False(e, done, "stream 0 waits for the blocking one")
	g.set(1)
	e.noErr(e.d.StreamSynchronize(blocking))
	require.Equal(e, repeat(3, 8), e.words(p, 8))
}

// testStreamIDs tells streams apart whose handles are the same: PerThread on two threads,
// and a handle that was destroyed and given again.
func testStreamIDs(e *env) {
	if v, err := e.d.DriverGetVersion(); err != nil || v < 12000 {
		e.Skip("needs CUDA 12")
	}
	id := func(s cuda.Stream) uint64 {
		n := must.Get(e.d.StreamGetId(s))
		return n
	}
	require.Equal(e, id(0), id(cuda.StreamLegacy))
	seen := map[uint64]bool{id(0): true}
	fresh := func(s cuda.Stream) {
		n := id(s)
		require.Equal(e, n, id(s))
		require.False(e, seen[n], "stream %#x", uintptr(s))
		seen[n] = true
	}
	fresh(cuda.StreamPerThread)
	onThread(func() {
		e.noErr(e.d.CtxPushCurrent(e.ctx))
		fresh(cuda.StreamPerThread)
		must.Get(e.d.CtxPopCurrent())
	})
	for range 3 {
		s := must.Get(e.d.StreamCreate(cuda.StreamNonBlocking, 0))
		fresh(s)
		e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureRelaxed))
		e.is(must.Err(e.d.StreamGetId(s)), cuda.ErrStreamCaptureUnsupported)
		if g, err := e.d.StreamEndCapture(s); err == nil {
			e.noErr(e.d.GraphDestroy(g))
		}
		e.noErr(e.d.StreamDestroy(s))
	}
}
