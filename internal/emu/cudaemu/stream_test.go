package cudaemu_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// TestOrder holds one stream back and asks which others wait for it.
func TestOrder(t *testing.T) {
	type pick func(*env) cuda.Stream
	legacy := func(*env) cuda.Stream { return 0 }
	perThread := func(*env) cuda.Stream { return cuda.StreamPerThread }
	blocking := func(e *env) cuda.Stream { return e.stream(cuda.StreamDefault) }
	free := func(e *env) cuda.Stream { return e.stream(cuda.StreamNonBlocking) }
	for _, c := range []struct {
		name          string
		first, second pick
		waits         bool
	}{
		{"blocking, then legacy", blocking, legacy, true},
		{"legacy, then blocking", legacy, blocking, true},
		{"per thread, then legacy", perThread, legacy, true},
		{"legacy, then per thread", legacy, perThread, true},
		{"free, then legacy", free, legacy, false},
		{"legacy, then free", legacy, free, false},
		{"blocking, then blocking", blocking, blocking, false},
	} {
		for name, cfg := range map[string]cudaemu.Config{"own goroutine": {}, "lazy": {Lazy: true}} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				e := start(t, cfg)
				p, g := e.alloc(64, true), e.gate()
				a, b := c.first(e), c.second(e)
				mark := e.event(cuda.EventDisableTiming)
				e.ok(e.StreamWaitValue32(a, address(g), 1, cuda.WaitGEQ))
				e.ok(e.MemsetD32Async(p, 1, 1, b))
				e.ok(e.EventRecord(mark, b))
				if c.waits {
					for range 50 {
						done := must.Get(e.EventQuery(mark))
						require.False(t, done)
					}
				} else {
					e.ok(e.EventSynchronize(mark))
				}
				g.Store(1)
				e.ok(e.EventSynchronize(mark))
				e.ok(e.CtxSynchronize())
				e.clean()
			})
		}
	}
}

// TestMissingSynchronize has the host copy while a kernel runs that it did not wait for.
func TestMissingSynchronize(t *testing.T) {
	e := start(t, cudaemu.Config{Lazy: true})
	s := e.stream(cuda.StreamNonBlocking)
	p := e.alloc(64, true)
	launch(e, "store", s, &storeArgs{p, 7})
	e.word(p) // the legacy stream does not wait for s
	e.ok(e.StreamSynchronize(s))
	require.Equal(t, 1, e.kinds()[weakmem.Race])

	e = start(t, cudaemu.Config{Lazy: true})
	s = e.stream(cuda.StreamNonBlocking)
	p = e.alloc(64, true)
	launch(e, "store", s, &storeArgs{p, 7})
	for done := false; !done; {
		done = must.Get(e.StreamQuery(s))
	}
	require.Equal(t, uint32(7), e.word(p))
	e.clean()
}

// TestQueryOfLegacyStream: the default stream is done when the streams that it waits for are, and no sooner.
func TestQueryOfLegacyStream(t *testing.T) {
	for _, flags := range []cuda.StreamFlags{0, cuda.StreamNonBlocking} {
		e := start(t, cudaemu.Config{})
		s := e.stream(flags)
		host := make(chan struct{})
		e.ok(e.LaunchHostFunc(s, func() { <-host }))
		done := must.Get(e.StreamQuery(0))
		require.Equal(t, flags == cuda.StreamNonBlocking, done)
		close(host)
		e.ok(e.StreamSynchronize(s))
		done = must.Get(e.StreamQuery(0))
		require.True(t, done)
		e.clean()
	}
}

// TestHostFlag has a kernel wait for a flag that the host sets after it has
// waited for a copy, or before, which is a race.
func TestHostFlag(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(e *env, g *atomic.Uint32, s cuda.Stream)
		races bool
	}{
		{"after the copy", func(e *env, g *atomic.Uint32, s cuda.Stream) {
			e.ok(e.StreamSynchronize(s))
			g.Store(1)
		}, false},
		{"by the stream", func(e *env, g *atomic.Uint32, s cuda.Stream) {
			e.ok(e.StreamWriteValue32(s, address(g), 1, 0))
		}, false},
		{"by a host function", func(e *env, g *atomic.Uint32, s cuda.Stream) {
			e.ok(e.LaunchHostFunc(s, func() { g.Store(1) }))
		}, false},
		{"before the copy", func(e *env, g *atomic.Uint32, s cuda.Stream) {
			g.Store(1)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, cudaemu.Config{Lazy: true})
			p, g := e.alloc(64, true), e.gate()
			kernels, copies := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
			launch(e, "relay", kernels, &messageArgs{p + 32, p, address(g)})
			e.ok(e.MemsetD32Async(p, 5, 1, copies))
			c.set(e, g, copies)
			e.ok(e.CtxSynchronize())
			require.Equal(t, c.races, len(e.Reports()) > 0, "%v", e.Reports())
			if !c.races {
				require.Equal(t, uint32(5), e.word(p+32))
			}
		})
	}
}

// TestDestroyedStream: the work on a destroyed stream still gets done.
func TestDestroyedStream(t *testing.T) {
	e := start(t, cudaemu.Config{})
	g, p := e.gate(), e.alloc(64, true)
	s := must.Get(e.StreamCreate(cuda.StreamNonBlocking, 0))
	e.ok(e.StreamWaitValue32(s, address(g), 1, cuda.WaitGEQ))
	launch(e, "store", s, &storeArgs{p, 9})
	e.ok(e.StreamDestroy(s))
	g.Store(1)
	e.ok(e.CtxSynchronize())
	require.Equal(t, uint32(9), e.word(p))
}

func TestEventTimes(t *testing.T) {
	for name, cfg := range map[string]cudaemu.Config{"own goroutine": {}, "lazy": {Lazy: true}} {
		t.Run(name, func(t *testing.T) {
			e := start(t, cfg)
			a, b := e.event(0), e.event(0)
			e.ok(e.EventRecord(a, 0))
			launch(e, "nothing", 0, &struct{}{})
			e.ok(e.EventRecord(b, 0))
			e.ok(e.EventSynchronize(b))
			ms := must.Get(e.EventElapsedTime(a, b))
			require.Positive(t, ms)
			back := must.Get(e.EventElapsedTime(b, a))
			require.Equal(t, -ms, back)
		})
	}
}
