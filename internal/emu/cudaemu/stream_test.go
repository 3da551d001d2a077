package cudaemu_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
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
						done, err := e.EventQuery(mark)
						e.ok(err)
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

// TestMissingWait reads on one stream what a kernel wrote on another: a race
// without the event, none with it.
func TestMissingWait(t *testing.T) {
	for _, wait := range []bool{true, false} {
		for seed := range uint64(20) {
			e := start(t, cudaemu.Config{Seed: seed, Lazy: true})
			a, b := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
			ev := e.event(cuda.EventDisableTiming)
			p := e.alloc(64, true)
			launch(e, "store", a, &storeArgs{p, 7})
			e.ok(e.EventRecord(ev, a))
			if wait {
				e.ok(e.StreamWaitEvent(b, ev, 0))
			}
			launch(e, "move", b, &moveArgs{p + 32, p})
			e.ok(e.CtxSynchronize())
			if wait {
				require.Equal(t, uint32(7), e.word(p+32))
				e.clean()
			} else {
				require.Equal(t, 1, e.kinds()[weakmem.Race], "seed %d", seed)
			}
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
		var err error
		done, err = e.StreamQuery(s)
		e.ok(err)
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
		done, err := e.StreamQuery(0)
		e.ok(err)
		require.Equal(t, flags == cuda.StreamNonBlocking, done)
		close(host)
		e.ok(e.StreamSynchronize(s))
		done, err = e.StreamQuery(0)
		e.ok(err)
		require.True(t, done)
		e.clean()
	}
}

// TestCopiesOvertake shows that copies of streams that are not ordered happen
// in either order.
func TestCopiesOvertake(t *testing.T) {
	last := map[uint32]int{}
	for seed := range uint64(30) {
		e := start(t, cudaemu.Config{Seed: seed, Lazy: true, CopyDelay: 8})
		a, b := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
		src, dst := e.alloc(64, false), e.alloc(64, false)
		e.ok(cuda.Write(e.Machine, src, []byte{1, 0, 0, 0, 2, 0, 0, 0}))
		e.ok(e.MemcpyAsync(dst, src, 4, a))
		e.ok(e.MemcpyAsync(dst, src+4, 4, b))
		e.ok(e.CtxSynchronize())
		require.Equal(t, 1, e.kinds()[weakmem.Race])
		last[e.word(dst)]++
	}
	require.Len(t, last, 2, "%v", last)
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

// TestDeviceFlag has the host see a flag of a kernel that goes on, and copy what
// it wrote before.
func TestDeviceFlag(t *testing.T) {
	e := start(t, cudaemu.Config{})
	p, g := e.alloc(256, true), e.gate()
	a, b := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
	// The kernel sends a number, then waits for one.
	launch(e, "exchange", a, &exchangeArgs{theirs: p, mine: p + 128, out: p + 192, value: 7, rounds: 1})
	e.ok(e.StreamWaitValue32(b, p+64, 1, cuda.WaitGEQ))
	e.ok(e.MemcpyAsync(address(g)+8, p+4, 4, b))
	e.ok(e.StreamSynchronize(b))
	require.Equal(t, uint32(7), (*atomic.Uint32)(pointer(address(g)+8)).Load())
	e.ok(e.StreamWriteValue32(b, p+192, 1, 0)) // its flag
	e.ok(e.CtxSynchronize())
	e.clean()
}

func TestHostFunction(t *testing.T) {
	for name, cfg := range map[string]cudaemu.Config{"own goroutine": {}, "lazy": {Lazy: true}} {
		t.Run(name, func(t *testing.T) {
			e := start(t, cfg)
			s := e.stream(cuda.StreamNonBlocking)
			var inside error
			var calls atomic.Int32
			e.ok(e.LaunchHostFunc(s, func() { _, inside = e.MemAlloc(1); calls.Add(1) }))
			e.ok(e.LaunchHostFunc(s, func() { calls.Add(1) }))
			e.ok(e.StreamSynchronize(s))
			require.EqualValues(t, 2, calls.Load())
			e.is(inside, cuda.ErrNotPermitted)
			e.is(e.LaunchHostFunc(s, nil), cuda.ErrInvalidValue)
		})
	}
}

func TestStreamErrors(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2})
	s := e.stream(cuda.StreamNonBlocking)
	_, err := e.StreamCreate(77, 0)
	e.is(err, cuda.ErrInvalidValue)
	e.is(e.StreamDestroy(0), cuda.ErrInvalidHandle)
	gone, err := e.StreamCreate(0, -100)
	e.ok(err)
	p, err := e.StreamGetPriority(gone)
	e.ok(err)
	require.Equal(t, -5, p, "priorities are clamped")
	e.ok(e.StreamDestroy(gone))
	e.is(e.StreamDestroy(gone), cuda.ErrInvalidHandle)
	e.is(e.StreamSynchronize(gone), cuda.ErrInvalidHandle)
	ev := e.event(0)
	e.is(e.EventRecord(cuda.Event(s), s), cuda.ErrInvalidHandle) // a handle of another kind
	e.use(1)
	e.is(e.EventRecord(ev, 0), cuda.ErrInvalidHandle) // of another device
	e.ok(e.StreamWaitEvent(0, ev, 0))                 // but it can be waited for
	e.is(e.LaunchKernel(e.kernel("nothing"), &cuda.Launch{Stream: s}, nil), cuda.ErrInvalidHandle)
}

// TestDestroyedStream: the work on a destroyed stream still gets done.
func TestDestroyedStream(t *testing.T) {
	e := start(t, cudaemu.Config{})
	g, p := e.gate(), e.alloc(64, true)
	s, err := e.StreamCreate(cuda.StreamNonBlocking, 0)
	e.ok(err)
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
			ms, err := e.EventElapsedTime(a, b)
			e.ok(err)
			require.Positive(t, ms)
			back, err := e.EventElapsedTime(b, a)
			e.ok(err)
			require.Equal(t, -ms, back)
		})
	}
}
