package cudaemu_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// TestCaptureRules makes one call during a capture and looks at its error and
// at what becomes of the capture: those that the recording of TestBehaviour has not.
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
		{"allocate, thread-local", cuda.CaptureThreadLocal, 1, func(e state) error { return must.Err(e.MemAlloc(1)) },
			cuda.ErrStreamCaptureUnsupported, false},
		{"synchronize it", cuda.CaptureRelaxed, 1, func(e state) error { return e.StreamSynchronize(e.s) },
			cuda.ErrStreamCaptureUnsupported, false},
		{"query it", cuda.CaptureRelaxed, 1, func(e state) error { return must.Err(e.StreamQuery(e.s)) },
			cuda.ErrStreamCaptureUnsupported, false},
		{"ask about the legacy stream", cuda.CaptureRelaxed, 0,
			func(e state) error { return must.Err(e.StreamIsCapturing(0)) }, cuda.ErrStreamCaptureImplicit, true},
		{"another thread allocates, global", cuda.CaptureGlobal, 1, func(e state) error {
			return elsewhere(e.env, func() error { return must.Err(e.MemAlloc(1)) })
		}, cuda.ErrStreamCaptureUnsupported, false},
		{"another thread allocates, thread-local", cuda.CaptureThreadLocal, 1, func(e state) error {
			return elsewhere(e.env, func() error { p, _ := e.MemAlloc(1); return e.MemFree(p) })
		}, fine, true},
		{"another, exchanged thread allocates", cuda.CaptureGlobal, 1, func(e state) error {
			return elsewhere(e.env, func() error {
				must.Get(e.ThreadExchangeStreamCaptureMode(cuda.CaptureThreadLocal))
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
