package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Memory in the order of streams is there between the two calls, and only for what is ordered with both.
func TestOrderedMemory(t *testing.T) {
	for name, c := range map[string]struct {
		use  func(e *env, a, b cuda.Stream, p uintptr)
		want int
	}{
		"between": {func(e *env, a, _ cuda.Stream, p uintptr) {
			launch(e, "store", a, &storeArgs{p, 1})
			e.ok(e.MemFreeAsync(p, a))
		}, 0},
		"behind": {func(e *env, a, _ cuda.Stream, p uintptr) {
			e.ok(e.MemFreeAsync(p, a))
			launch(e, "store", a, &storeArgs{p, 1})
		}, 1},
		"beside the allocation": {func(e *env, a, b cuda.Stream, p uintptr) {
			launch(e, "store", b, &storeArgs{p, 1})
			e.CtxSynchronize()
			e.MemFreeAsync(p, a)
		}, 1},
		"beside the free": {func(e *env, a, b cuda.Stream, p uintptr) {
			e.ok(e.StreamSynchronize(a))
			launch(e, "store", a, &storeArgs{p, 1})
			e.ok(e.MemFreeAsync(p, b))
		}, 1},
		"MemFree without waiting": {func(e *env, a, _ cuda.Stream, p uintptr) {
			e.ok(e.StreamSynchronize(a))
			launch(e, "store", a, &storeArgs{p, 1})
			e.ok(e.MemFree(p))
		}, 1},
		"MemFree": {func(e *env, a, _ cuda.Stream, p uintptr) {
			launch(e, "store", a, &storeArgs{p, 1})
			e.ok(e.StreamSynchronize(a))
			e.ok(e.MemFree(p))
		}, 0},
		"twice": {func(e *env, a, _ cuda.Stream, p uintptr) {
			e.ok(e.MemFreeAsync(p, a))
			e.is(e.MemFreeAsync(p, a), cuda.ErrInvalidValue)
			e.is(e.MemFree(p), cuda.ErrInvalidValue)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				e := start(t, cudaemu.Config{Seed: seed})
				a, b := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
				p := must.Get(e.MemAllocAsync(64, a))
				c.use(e, a, b, p)
				e.CtxSynchronize()
				require.Equal(t, c.want, e.kinds()[weakmem.OutOfBounds], "%v", e.Reports())
				require.Len(t, e.Reports(), c.want)
			}
		})
	}
}

// What is freed in one stream has room at once, also while another stream is busy: no call waits.
func TestOrderedRoom(t *testing.T) {
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Memory: 1 << 20}}})
	s := e.stream(cuda.StreamNonBlocking)
	for range 5 {
		p := must.Get(e.MemAllocAsync(1<<20, s))
		e.is(must.Err(e.MemAllocAsync(1, s)), cuda.ErrOutOfMemory)
		e.ok(e.MemFreeAsync(p, s))
	}
	e.ok(e.CtxSynchronize())
	free, total, err := e.MemGetInfo()
	e.ok(err)
	require.Equal(t, total, free)
}
