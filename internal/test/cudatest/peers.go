package cudatest

import (
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// second is device 1, without peer access between it and device 0.
func (e *env) second() *env {
	e.Helper()
	n := must.Get(e.d.DeviceGetCount())
	if n < 2 {
		e.Skip("needs two devices")
	}
	dev := must.Get(e.d.DeviceGet(1))
	for _, pair := range [][2]cuda.Device{{e.dev, dev}, {dev, e.dev}} {
		can := must.Get(e.d.DeviceCanAccessPeer(pair[0], pair[1]))
		if !can {
			e.Skip("devices 0 and 1 do not reach each other")
		}
	}
	ctx := must.Get(e.d.DevicePrimaryCtxRetain(dev))
	e.Cleanup(func() { e.noErr(e.d.DevicePrimaryCtxRelease(dev)) })
	return &env{T: e.T, d: e.d, dev: dev, ctx: ctx}
}

// peer is device 1, with peer access between it and device 0.
func (e *env) peer() *env {
	e.Helper()
	p := e.second()
	for _, pair := range [][2]*env{{e, p}, {p, e}} {
		from, to := pair[0], pair[1]
		from.do(func() { e.noErr(e.d.CtxEnablePeerAccess(to.ctx)) })
		from.after(func() error { return e.d.CtxDisablePeerAccess(to.ctx) })
	}
	return p
}

// do runs f with the env's context current.
func (e *env) do(f func()) {
	e.Helper()
	e.noErr(cuda.With(e.d, e.ctx, func() error { f(); return nil }))
}

// graph is what f queues on the stream, executable until the test ends.
func (e *env) graph(s cuda.Stream, f func()) cuda.GraphExec {
	e.Helper()
	g := e.captured(s, f)
	x := must.Get(e.d.GraphInstantiate(g, 0))
	e.noErr(e.d.GraphDestroy(g))
	e.after(func() error { return e.d.GraphExecDestroy(x) })
	return x
}

// testPeerCopies has a graph copy to and from a peer.
func testPeerCopies(e *env) {
	peer := e.peer()
	var there uintptr
	peer.do(func() { there = peer.alloc(4096) })
	here, s := e.alloc(4096), e.stream()
	x := e.graph(s, func() {
		e.noErr(e.d.MemcpyAsync(there, here, 1024, s))
		e.noErr(e.d.MemcpyAsync(here+1024, there, 1024, s))
	})
	for v := range uint32(3) {
		e.noErr(e.d.MemsetD32Async(here, v, 256, s))
		e.noErr(e.d.GraphLaunch(x, s))
		e.noErr(e.d.StreamSynchronize(s))
		require.Equal(e, repeat(v, 512), e.words(here, 512))
		require.Equal(e, repeat(v, 256), e.words(there, 256))
	}

	e.noErr(e.d.StreamBeginCapture(s, cuda.CaptureThreadLocal))
	e.is(e.d.MemcpyPeerAsync(there, peer.ctx, here, e.ctx, 1024, s), cuda.ErrStreamCaptureUnsupported)
	if g, err := e.d.StreamEndCapture(s); err == nil {
		e.noErr(e.d.GraphDestroy(g))
	} else {
		e.is(err, cuda.ErrStreamCaptureInvalidated)
	}
}

// testPeerVirtual maps memory of device 1 for both devices, whose contexts have
// no access to each other.
func testPeerVirtual(e *env) {
	second := e.second()
	m := second.virtual()
	e.noErr(e.d.MemSetAccess(m.p, m.n, e.dev)) // beside the access of its own device
	v := must.Get(e.d.PointerGetAttribute(cuda.PointerDeviceOrdinal, m.p))
	require.EqualValues(e, second.dev, v)

	s := e.stream()
	e.noErr(e.d.LaunchKernel(e.kernel("store"), &cuda.Launch{Stream: s}, cuda.ArgsOf(&storeArgs{m.p, 5})))
	e.noErr(e.d.MemcpyAsync(m.p+4, m.p, 4, s))
	e.noErr(e.d.StreamSynchronize(s))
	second.do(func() {
		e.noErr(e.d.LaunchKernel(second.kernel("store"), &cuda.Launch{}, cuda.ArgsOf(&storeArgs{m.p + 8, 6})))
		e.noErr(e.d.CtxSynchronize())
		require.Equal(e, []uint32{5, 5, 6}, e.words(m.p, 3))
	})

	// An address alone leads to its memory, which is mapped a second time.
	base, n, err := e.d.MemGetAddressRange(m.p + 12345)
	e.noErr(err)
	require.Equal(e, []any{m.p, m.n}, []any{base, n})
	again := shareable{n: m.n}
	again.h = must.Get(e.d.MemRetainAllocationHandle(m.p + 12345))
	require.Equal(e, m.h, again.h)
	e.after(func() error { return e.d.MemRelease(again.h) })
	e.mapped(&again)
	require.Equal(e, []uint32{5, 5, 6}, e.words(again.p, 3))
}

// testNoAccess has device 0 use memory of device 1 that is out of its reach, in a
// child because it might end the context. Copies do reach what cuMemAlloc gave.
func testNoAccess(e *env) {
	e.second()
	e.child("no access", "")
}

func childNoAccess(e *env, _ string) {
	second := e.second()
	m := second.virtual()
	second.do(func() { e.put(m.p, 5) })
	here, s := e.alloc(64), e.stream()
	var there uintptr
	second.do(func() { there = second.alloc(64); e.put(there, 6) })
	e.noErr(e.d.MemcpyAsync(here, there, 4, s))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{6}, e.words(here, 1))
	e.is(e.d.StreamWriteValue32(s, there, 1, 0), cuda.ErrInvalidValue)
	e.is(e.d.StreamWaitValue32(s, there, 6, 0), cuda.ErrInvalidValue)

	e.is(e.d.MemcpyAsync(here, m.p, 4, s), cuda.ErrInvalidValue)
	e.is(e.d.MemcpyAsync(m.p, here, 4, s), cuda.ErrInvalidValue)
	e.is(e.d.MemcpyDtoH(make([]byte, 4), m.p), cuda.ErrInvalidValue)
	e.is(e.d.StreamWriteValue32(s, m.p, 1, 0), cuda.ErrInvalidValue)
	e.noErr(e.d.MemSetAccess(m.p, m.n, e.dev))
	require.Equal(e, []uint32{5}, e.words(m.p, 1))
}

// testPeerValues has graphs of two devices wait for each other, each in memory of
// its own, for a value that the other's stream or kernel writes there. (A copy of
// four bytes is no way to tell: nothing says that the data before are there.)
func testPeerValues(e *env) {
	if found := cuda.Probe(e.d, cuda.StreamValues, e.dev); found.Answer != cuda.Yes {
		e.Skip(found)
	}
	peer := e.peer()
	// A side has three words: the value it waits for, data, the answer's data.
	type side struct {
		*env
		p     uintptr
		s     cuda.Stream
		post  cuda.Function
		graph cuda.GraphExec
	}
	for _, how := range []struct {
		name string
		tell func(from, to *side)
	}{
		{"stream", func(from, to *side) { e.noErr(e.d.StreamWriteValue32(from.s, to.p, 1, 0)) }},
		{"kernel", func(from, to *side) {
			args := storeArgs{to.p, 1}
			e.noErr(e.d.LaunchKernel(from.post, &cuda.Launch{Stream: from.s}, cuda.ArgsOf(&args)))
		}},
	} {
		sides := []*side{{env: e}, {env: peer}}
		for _, x := range sides {
			x.do(func() {
				x.p, x.s = x.alloc(12), x.stream()
				x.put(x.p, 0, 0, 0)
				x.post = x.kernel("post")
			})
		}
		await := func(x *side) { // and be ready for the next time
			e.noErr(e.d.StreamWaitValue32(x.s, x.p, 1, cuda.WaitEQ))
			e.noErr(e.d.StreamWriteValue32(x.s, x.p, 0, 0))
		}
		a, b := sides[0], sides[1]
		a.do(func() {
			a.graph = a.env.graph(a.s, func() {
				e.noErr(e.d.MemcpyAsync(b.p+4, a.p+4, 4, a.s))
				how.tell(a, b)
				await(a)
			})
		})
		b.do(func() {
			b.graph = b.env.graph(b.s, func() {
				await(b)
				e.noErr(e.d.MemcpyAsync(a.p+8, b.p+4, 4, b.s))
				how.tell(b, a)
			})
		})
		for v := range uint32(4) {
			e.noErr(e.d.MemsetD32Async(a.p+4, v, 1, a.s))
			for _, x := range sides {
				x.do(func() { e.noErr(e.d.GraphLaunch(x.graph, x.s)) })
			}
			e.noErr(e.d.StreamSynchronize(a.s))
			require.Equal(e, []uint32{0, v, v}, e.words(a.p, 3), how.name)
		}
		b.do(func() { e.noErr(e.d.StreamSynchronize(b.s)) })
	}
}
