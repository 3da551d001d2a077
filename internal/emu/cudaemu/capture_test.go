package cudaemu_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// TestCaptureRules makes one call during a capture and looks at its error and
// at what becomes of the capture.
func TestCaptureRules(t *testing.T) {
	const fine = cuda.Result(0)
	type state struct {
		*env
		s, other cuda.Stream
		ev       cuda.Event
		p        uintptr
	}
	for _, c := range []struct {
		name   string
		mode   cuda.CaptureMode
		stream cuda.StreamFlags
		call   func(state) error
		want   cuda.Result
		valid  bool
	}{
		{"kernel", 0, 1, func(e state) error {
			return e.LaunchKernel(e.kernel("nothing"), &cuda.Launch{Stream: e.s}, nil)
		}, fine, true},
		{"allocate", cuda.CaptureGlobal, 1, func(e state) error { _, err := e.MemAlloc(1); return err },
			cuda.ErrStreamCaptureUnsupported, false},
		{"allocate, thread-local", cuda.CaptureThreadLocal, 1, func(e state) error { _, err := e.MemAlloc(1); return err },
			cuda.ErrStreamCaptureUnsupported, false},
		{"allocate, relaxed", cuda.CaptureRelaxed, 1, func(e state) error { p, _ := e.MemAlloc(1); return e.MemFree(p) },
			fine, true},
		{"free", cuda.CaptureGlobal, 1, func(e state) error { return e.MemFree(e.p) },
			cuda.ErrStreamCaptureUnsupported, false},
		{"load a module", cuda.CaptureGlobal, 1, func(e state) error {
			mod, err := e.ModuleLoadData([]byte(ptxText))
			e.Cleanup(func() { e.ok(e.ModuleUnload(mod)) })
			return err
		}, fine, true},
		{"synchronize it", cuda.CaptureRelaxed, 1, func(e state) error { return e.StreamSynchronize(e.s) },
			cuda.ErrStreamCaptureUnsupported, false},
		{"query it", cuda.CaptureRelaxed, 1, func(e state) error { _, err := e.StreamQuery(e.s); return err },
			cuda.ErrStreamCaptureUnsupported, false},
		{"destroy a stream that joined", cuda.CaptureRelaxed, 1, func(e state) error {
			e.ok(e.EventRecord(e.ev, e.s))
			e.ok(e.StreamWaitEvent(e.other, e.ev, 0))
			return e.StreamDestroy(e.other)
		}, fine, true},
		{"synchronize the context", cuda.CaptureRelaxed, 1, func(e state) error { return e.CtxSynchronize() },
			cuda.ErrStreamCaptureUnsupported, false},
		{"upload", cuda.CaptureRelaxed, 1, func(e state) error {
			g, err := e.GraphCreate()
			e.ok(err)
			defer e.GraphDestroy(g)
			x, err := e.GraphInstantiate(g, 0)
			e.ok(err)
			defer e.GraphExecDestroy(x)
			return e.GraphUpload(x, e.s)
		}, cuda.ErrStreamCaptureUnsupported, false},
		{"legacy stream, blocking", cuda.CaptureRelaxed, 0, func(e state) error { return e.MemsetD8Async(e.p, 1, 1, 0) },
			cuda.ErrStreamCaptureImplicit, false},
		{"legacy stream, non-blocking", cuda.CaptureRelaxed, 1, func(e state) error { return e.MemsetD8Async(e.p, 1, 1, 0) },
			fine, true},
		{"synchronous copy, blocking", cuda.CaptureRelaxed, 0, func(e state) error { return e.MemcpyHtoD(e.p, []byte{1}) },
			cuda.ErrStreamCaptureImplicit, false},
		{"synchronous copy, non-blocking", cuda.CaptureGlobal, 1, func(e state) error { return e.MemcpyHtoD(e.p, []byte{1}) },
			fine, true},
		{"legacy stream joins", cuda.CaptureRelaxed, 1, func(e state) error {
			e.ok(e.EventRecord(e.ev, e.s))
			return e.StreamWaitEvent(0, e.ev, 0)
		}, cuda.ErrStreamCaptureImplicit, false},
		{"ask about the legacy stream", cuda.CaptureRelaxed, 0,
			func(e state) error { _, err := e.StreamIsCapturing(0); return err }, cuda.ErrStreamCaptureImplicit, true},
		{"event from outside", cuda.CaptureRelaxed, 1, func(e state) error {
			e.ok(e.EventRecord(e.ev, e.other))
			return e.StreamWaitEvent(e.s, e.ev, 0)
		}, cuda.ErrStreamCaptureIsolation, false},
		{"event never recorded", cuda.CaptureRelaxed, 1, func(e state) error { return e.StreamWaitEvent(e.s, e.ev, 0) },
			fine, true},
		{"query a captured event", cuda.CaptureRelaxed, 1, func(e state) error {
			e.ok(e.EventRecord(e.ev, e.s))
			_, err := e.EventQuery(e.ev)
			return err
		}, cuda.ErrCapturedEvent, false},
		{"merge", cuda.CaptureRelaxed, 1, func(e state) error {
			e.ok(e.StreamBeginCapture(e.other, cuda.CaptureRelaxed))
			defer e.StreamEndCapture(e.other)
			e.ok(e.EventRecord(e.ev, e.other))
			return e.StreamWaitEvent(e.s, e.ev, 0)
		}, cuda.ErrStreamCaptureMerge, false},
		{"begin again", cuda.CaptureRelaxed, 1, func(e state) error { return e.StreamBeginCapture(e.s, 0) },
			cuda.ErrIllegalState, true},
		{"legacy stream begins", cuda.CaptureRelaxed, 1, func(e state) error { return e.StreamBeginCapture(0, 0) },
			cuda.ErrStreamCaptureUnsupported, true},
		{"end on a stream that joined", cuda.CaptureRelaxed, 1, func(e state) error {
			e.ok(e.EventRecord(e.ev, e.s))
			e.ok(e.StreamWaitEvent(e.other, e.ev, 0))
			_, err := e.StreamEndCapture(e.other)
			return err
		}, cuda.ErrStreamCaptureUnmatched, false},
		{"another thread allocates, global", cuda.CaptureGlobal, 1, func(e state) error {
			return elsewhere(e.env, func() error { _, err := e.MemAlloc(1); return err })
		}, cuda.ErrStreamCaptureUnsupported, false},
		{"another thread allocates, thread-local", cuda.CaptureThreadLocal, 1, func(e state) error {
			return elsewhere(e.env, func() error { p, _ := e.MemAlloc(1); return e.MemFree(p) })
		}, fine, true},
		{"another, exchanged thread allocates", cuda.CaptureGlobal, 1, func(e state) error {
			return elsewhere(e.env, func() error {
				_, err := e.ThreadExchangeStreamCaptureMode(cuda.CaptureThreadLocal)
				e.ok(err)
				p, _ := e.MemAlloc(1)
				return e.MemFree(p)
			})
		}, fine, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, cudaemu.Config{})
			x := state{e, e.stream(c.stream), e.stream(cuda.StreamNonBlocking), e.event(cuda.EventDisableTiming),
				e.alloc(64, true)}
			e.kernel("nothing") // not within the capture
			e.ok(e.StreamBeginCapture(x.s, c.mode))
			err := c.call(x)
			if c.want == fine {
				e.ok(err)
			} else {
				e.is(err, c.want)
			}
			g, err := e.StreamEndCapture(x.s)
			if c.valid {
				e.ok(err)
				e.ok(e.GraphDestroy(g))
			} else {
				e.is(err, cuda.ErrStreamCaptureInvalidated)
				require.Zero(t, g)
			}
			e.ok(e.CtxSynchronize())
		})
	}
}

// elsewhere runs f on another thread with the first context.
func elsewhere(e *env, f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its mode
		result <- cuda.With(e.Machine, e.ctx[0], f)
	}()
	return <-result
}

// TestLostCapture ends captures such that nothing is left of them to be ended.
func TestLostCapture(t *testing.T) {
	e := start(t, cudaemu.Config{})
	s, other, ev := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking), e.event(cuda.EventDisableTiming)
	begin := func(s cuda.Stream) {
		e.ok(e.StreamBeginCapture(s, cuda.CaptureThreadLocal))
		e.ok(e.EventRecord(ev, s))
		e.ok(e.StreamWaitEvent(other, ev, 0))
	}
	isOver := func() {
		status, err := e.StreamIsCapturing(other)
		e.ok(err)
		require.Equal(t, cuda.CaptureNone, status)
		_, err = e.EventQuery(ev)
		e.is(err, cuda.ErrInvalidValue)
	}

	begin(s)
	e.is(elsewhere(e, func() error { _, err := e.StreamEndCapture(s); return err }), cuda.ErrStreamCaptureWrongThread)
	_, err := e.StreamEndCapture(s)
	e.is(err, cuda.ErrIllegalState)
	isOver()

	gone, err := e.StreamCreate(cuda.StreamNonBlocking, 0)
	e.ok(err)
	begin(gone)
	e.ok(e.StreamDestroy(gone))
	isOver()
	e.is(e.StreamWaitEvent(s, ev, 0), cuda.ErrInvalidValue)
	e.ok(e.EventRecord(ev, s))
	e.ok(e.StreamWaitEvent(other, ev, 0))
	e.ok(e.EventSynchronize(ev))
	e.is(e.EventRecordWithFlags(ev, s, 1), cuda.ErrIllegalState) // external, and no graph to be in
}

func TestInvalidatedCapture(t *testing.T) {
	e := start(t, cudaemu.Config{})
	s, p := e.stream(cuda.StreamNonBlocking), e.alloc(64, true)
	e.ok(e.StreamBeginCapture(s, cuda.CaptureGlobal))
	_, err := e.MemAlloc(1)
	e.is(err, cuda.ErrStreamCaptureUnsupported)
	e.is(e.MemsetD8Async(p, 1, 1, s), cuda.ErrStreamCaptureInvalidated)
	i, err := e.StreamGetCaptureInfo(s)
	e.ok(err)
	require.Equal(t, cuda.CaptureInvalidated, i.Status)
	_, err = e.StreamEndCapture(s)
	e.is(err, cuda.ErrStreamCaptureInvalidated)
	e.ok(e.MemsetD8Async(p, 1, 1, s)) // usable again
}

// TestUpdateDependencies has a node after two that the stream would have put in a row.
func TestUpdateDependencies(t *testing.T) {
	e := start(t, cudaemu.Config{Lazy: true})
	s, p := e.stream(cuda.StreamNonBlocking), e.alloc(64, true)
	e.ok(e.StreamBeginCapture(s, cuda.CaptureGlobal))
	e.ok(e.MemsetD32Async(p, 1, 1, s))
	first, err := e.StreamGetCaptureInfo(s)
	e.ok(err)
	e.ok(e.StreamUpdateCaptureDependencies(s, nil, 1)) // forget it: the next is concurrent
	e.ok(e.MemsetD32Async(p, 2, 1, s))
	e.is(e.StreamUpdateCaptureDependencies(s, []cuda.GraphNode{77}, 0), cuda.ErrInvalidValue)
	e.ok(e.StreamUpdateCaptureDependencies(s, first.Dependencies, 0))
	e.ok(e.MemcpyAsync(p+32, p, 4, s))
	g, err := e.StreamEndCapture(s)
	e.ok(err)
	e.is(e.StreamUpdateCaptureDependencies(s, nil, 0), cuda.ErrIllegalState)
	x, err := e.GraphInstantiate(g, 0)
	e.ok(err)
	e.ok(e.GraphLaunch(x, s))
	e.ok(e.StreamSynchronize(s))
	require.Len(t, e.Reports(), 1, "the two sets race, the copy comes after both")
	e.ok(e.GraphExecDestroy(x))
	e.ok(e.GraphDestroy(g))
}
