package cudaemu_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// again maps the memory at another address: by its handle, or by one that the process has imported.
func (e *env) again(v virtual, imported bool) virtual {
	e.Helper()
	a := virtual{n: v.n, h: v.h}
	if imported {
		fd := must.Get(e.MemExportToShareableHandle(v.h))
		a.h = must.Get(e.MemImportFromShareableHandle(fd))
		e.ok(os.NewFile(uintptr(fd), "memory").Close())
		e.Cleanup(func() { e.ok(e.MemRelease(a.h)) })
	}
	a.p = must.Get(e.MemAddressReserve(v.n, 0))
	e.ok(e.MemMap(a.p, a.n, a.h))
	for i := range e.ctx {
		e.ok(e.MemSetAccess(a.p, a.n, cuda.Device(i)))
	}
	e.Cleanup(func() {
		e.MemUnmap(a.p, a.n) // a test may have done it
		e.ok(e.MemAddressFree(a.p, a.n))
	})
	return a
}

// eachAlias runs a test where memory has two addresses, in each way in which it can get them.
func eachAlias(t *testing.T, f func(t *testing.T, imported bool)) {
	for name, imported := range map[string]bool{"mapped twice": false, "imported": true} {
		if !imported || runtime.GOOS == "linux" {
			t.Run(name, func(t *testing.T) { f(t, imported) })
		}
	}
}

// Kernels and copies that nothing orders race through aliases, also on two devices.
func TestRaceOfAliases(t *testing.T) {
	eachAlias(t, func(t *testing.T, imported bool) {
		e := start(t, cudaemu.Config{Devices: 2, Lazy: true})
		v := e.virtual(0, true)
		a := e.again(v, imported)
		launch(e, "store", e.stream(cuda.StreamNonBlocking), &storeArgs{v.p, 5})
		e.use(1)
		launch(e, "store", e.stream(cuda.StreamNonBlocking), &storeArgs{a.p, 6})
		e.ok(e.MemsetD8Async(a.p+64, 1, 64, e.stream(cuda.StreamNonBlocking)))
		e.ok(e.MemsetD8Async(v.p+64, 1, 64, e.stream(cuda.StreamNonBlocking)))
		e.ok(e.CtxSynchronize())
		e.use(0)
		e.ok(e.CtxSynchronize())
		require.Equal(t, 2, e.kinds()[weakmem.Race])
	})
}

// Memory that was unmapped at one address is out of bounds there, and lives on at the other, with what is known of it.
func TestUnmappedAlias(t *testing.T) {
	eachAlias(t, func(t *testing.T, imported bool) {
		e := start(t, cudaemu.Config{Devices: 2, Lazy: true, FreshAddresses: true})
		v := e.virtual(0, true)
		a := e.again(v, imported)
		out := e.alloc(64, true)
		e.use(1)
		launch(e, "store", e.stream(cuda.StreamNonBlocking), &storeArgs{a.p, 5})
		e.ok(e.CtxSynchronize())
		e.ok(e.MemUnmap(a.p, a.n))
		e.use(0)
		launch(e, "move", 0, &moveArgs{out, v.p})
		e.ok(e.CtxSynchronize())
		e.clean()
		require.Equal(t, uint32(5), e.word(out))
		launch(e, "move", 0, &moveArgs{out, a.p})
		err := e.CtxSynchronize()
		e.is(err, cuda.ErrIllegalAddress)
		require.Equal(t, weakmem.OutOfBounds, e.Reports()[0].Kind)
		require.Contains(t, e.Reports()[0].Error(), ", freed")
	})
}

// Memory that a process has imported from itself lives until the last handle and mapping are gone.
func TestImportOutlives(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is shared on Linux alone")
	}
	e := start(t, cudaemu.Config{Lazy: true})
	before, _, err := e.MemGetInfo()
	e.ok(err)
	h := must.Get(e.MemCreate(2<<20, cuda.AllocationProp{Shareable: true}))
	fd := must.Get(e.MemExportToShareableHandle(h))
	own := must.Get(e.MemImportFromShareableHandle(fd))
	require.Zero(t, e.Opened(), "the memory is of this process")
	e.ok(os.NewFile(uintptr(fd), "memory").Close())
	e.ok(e.MemRelease(h))
	p := must.Get(e.MemAddressReserve(2<<20, 0))
	e.ok(e.MemMap(p, 2<<20, own))
	e.ok(e.MemSetAccess(p, 2<<20, 0))
	e.ok(e.MemsetD8(p, 5, 64))
	require.Equal(t, uint32(0x05050505), e.word(p))
	free, _, err := e.MemGetInfo()
	e.ok(err)
	require.Equal(t, before-2<<20, free)
	e.ok(e.MemUnmap(p, 2<<20))
	e.ok(e.MemAddressFree(p, 2<<20))
	e.ok(e.MemRelease(own))
	free, _, err = e.MemGetInfo()
	e.ok(err)
	require.Equal(t, before, free)
}

// An IPC handle that is opened in two contexts gives one memory two addresses.
func TestRaceOfOpened(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is shared on Linux alone")
	}
	owner := start(t, cudaemu.Config{Devices: 2})
	owner.use(0)
	h, err := owner.IpcGetMemHandle(owner.alloc(256, true))
	owner.ok(err)
	e := start(t, cudaemu.Config{Devices: 2, Lazy: true})
	var p [2]uintptr
	for i := range p {
		e.use(i)
		p[i] = must.Get(e.IpcOpenMemHandle(h))
		launch(e, "store", e.stream(cuda.StreamNonBlocking), &storeArgs{p[i], 5})
	}
	for i := range p {
		e.use(i)
		e.ok(e.CtxSynchronize())
		e.ok(e.IpcCloseMemHandle(p[i]))
	}
	require.NotEqual(t, p[0], p[1])
	require.Equal(t, 1, e.kinds()[weakmem.Race])
	owner.use(0)
}
