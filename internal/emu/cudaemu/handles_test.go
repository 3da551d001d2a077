package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// TestHandlesComeAgain destroys an object of each kind: the next one of its kind has the
// same handle, and is another object.
func TestHandlesComeAgain(t *testing.T) {
	e := start(t, cudaemu.Config{})
	const n = 2 << 20
	for name, kind := range map[string]struct {
		create  func() (uint64, error)
		destroy func(uint64) error
	}{
		"stream": {
			func() (uint64, error) { s, err := e.StreamCreate(0, 0); return uint64(s), err },
			func(h uint64) error { return e.StreamDestroy(cuda.Stream(h)) }},
		"event": {
			func() (uint64, error) { v, err := e.EventCreate(0); return uint64(v), err },
			func(h uint64) error { return e.EventDestroy(cuda.Event(h)) }},
		"graph": {
			func() (uint64, error) { g, err := e.GraphCreate(); return uint64(g), err },
			func(h uint64) error { return e.GraphDestroy(cuda.Graph(h)) }},
		"executable graph": {
			func() (uint64, error) {
				g := must.Get(e.GraphCreate())
				defer e.GraphDestroy(g)
				x, err := e.GraphInstantiate(g, 0)
				return uint64(x), err
			},
			func(h uint64) error { return e.GraphExecDestroy(cuda.GraphExec(h)) }},
		"module": {
			func() (uint64, error) { m, err := e.ModuleLoadData([]byte(ptxText)); return uint64(m), err },
			func(h uint64) error { return e.ModuleUnload(cuda.Module(h)) }},
		"user object": {
			func() (uint64, error) { o, err := e.UserObjectCreate(func() {}, 1); return uint64(o), err },
			func(h uint64) error { return e.UserObjectRelease(cuda.UserObject(h), 1) }},
		"memory": {
			func() (uint64, error) { p, err := e.MemAlloc(1000); return uint64(p), err },
			func(h uint64) error { return e.MemFree(uintptr(h)) }},
		"reserved addresses": {
			func() (uint64, error) { p, err := e.MemAddressReserve(n, 0); return uint64(p), err },
			func(h uint64) error { return e.MemAddressFree(uintptr(h), n) }},
		"memory without an address": {
			func() (uint64, error) { h, err := e.MemCreate(n, cuda.AllocationProp{}); return uint64(h), err },
			func(h uint64) error { return e.MemRelease(cuda.MemHandle(h)) }},
	} {
		a, err := kind.create()
		require.NoError(t, err, name)
		b, err := kind.create()
		require.NoError(t, err, name)
		require.NotEqual(t, a, b, name)
		require.NoError(t, kind.destroy(a), name)
		require.Error(t, kind.destroy(a), "%s: none has it now", name)
		again, err := kind.create()
		require.NoError(t, err, name)
		require.Equal(t, a, again, name)
		require.NoError(t, kind.destroy(b), name)
		require.NoError(t, kind.destroy(again), name)
	}
}

// A stream that is made while work of a destroyed one still runs has its handle and
// nothing of its order.
func TestStreamWithAnOldHandle(t *testing.T) {
	e := start(t, cudaemu.Config{})
	release := e.gate()
	s := must.Get(e.StreamCreate(cuda.StreamNonBlocking, 0))
	e.ok(e.StreamWaitValue32(s, address(release), 1, cuda.WaitEQ))
	e.ok(e.StreamDestroy(s))
	again := must.Get(e.StreamCreate(cuda.StreamNonBlocking, 0))
	require.Equal(t, s, again)
	done := must.Get(e.StreamQuery(again))
	require.True(t, done)
	release.Store(1)
	e.ok(e.CtxSynchronize())
	e.ok(e.StreamDestroy(again))
}

// Memory of another size takes the place of memory that was freed; a place keeps its
// size. With FreshAddresses no place comes back.
func TestAddressesComeAgain(t *testing.T) {
	const place = 1 << 16
	e := start(t, cudaemu.Config{})
	first := must.Get(e.MemAlloc(place))
	e.ok(e.MemFree(first))
	for _, n := range []int{256, place, 1000, place} {
		p := must.Get(e.MemAlloc(n))
		require.Equal(t, first, p, n)
		e.ok(e.MemFree(p))
	}
	p := must.Get(e.MemAlloc(place + 1))
	require.NotEqual(t, first, p)
	e.ok(e.MemFree(p))

	fresh := start(t, cudaemu.Config{FreshAddresses: true})
	p, err := fresh.MemAlloc(64)
	fresh.ok(err)
	fresh.ok(fresh.MemFree(p))
	require.NotEqual(t, p, fresh.alloc(64, true))
	launch(fresh, "store", 0, &storeArgs{p, 1})
	fresh.is(fresh.CtxSynchronize(), cuda.ErrIllegalAddress)
	require.Equal(t, 1, fresh.kinds()[weakmem.OutOfBounds])
	require.Contains(t, fresh.Reports()[0].Error(), "freed")
}
