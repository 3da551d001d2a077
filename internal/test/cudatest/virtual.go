package cudatest

import (
	"fmt"
	"os"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// shareable is a mapped allocation of the virtual-memory API.
type shareable struct {
	p uintptr
	n int
	h cuda.MemHandle
}

// needs skips the test for a reason unless the device has all of these.
func (e *env) needs(why string, attributes ...cuda.DeviceAttribute) {
	e.Helper()
	for _, a := range attributes {
		ok := must.Get(e.d.DeviceGetAttribute(a, e.dev))
		if ok == 0 {
			e.Skip(why)
		}
	}
}

func (e *env) virtual() shareable {
	e.Helper()
	e.needs("the device has no virtual-memory API with file descriptors", cuda.AttrVirtualMemorySupported,
		cuda.AttrPosixFDSupported)
	prop := cuda.AllocationProp{Device: e.dev, Shareable: true}
	g := must.Get(e.d.MemGetAllocationGranularity(prop, cuda.GranularityMinimum))
	require.Zero(e, g&(g-1), "granularity %d is a power of two", g)
	r := must.Get(e.d.MemGetAllocationGranularity(prop, cuda.GranularityRecommended))
	require.GreaterOrEqual(e, r, g)

	m := shareable{n: 2 * r}
	m.h = must.Get(e.d.MemCreate(m.n, prop))
	e.after(func() error { return e.d.MemRelease(m.h) })
	e.mapped(&m)
	return m
}

// mapped maps m.h to addresses until the test ends.
func (e *env) mapped(m *shareable) {
	e.Helper()
	p := must.Get(e.d.MemAddressReserve(m.n, 0))
	m.p = p
	e.after(func() error { return e.d.MemAddressFree(p, m.n) })
	e.noErr(e.d.MemMap(p, m.n, m.h))
	e.after(func() error { return e.d.MemUnmap(p, m.n) })
	e.noErr(e.d.MemSetAccess(p, m.n, e.dev))
}

func testVirtualMemory(e *env) {
	m := e.virtual()
	e.noErr(e.d.MemsetD8(m.p, 5, m.n))
	e.noErr(e.d.CtxSynchronize())
	require.Equal(e, []uint32{0x05050505}, e.words(m.p+uintptr(m.n)-4, 1))
	args := storeArgs{m.p + 64, 99}
	e.noErr(e.d.LaunchKernel(e.kernel("store"), &cuda.Launch{}, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	require.Equal(e, []uint32{99}, e.words(m.p+64, 1))

	h := must.Get(e.d.MemRetainAllocationHandle(m.p))
	require.Equal(e, m.h, h)
	e.noErr(e.d.MemRelease(h))
	v := must.Get(e.d.PointerGetAttribute(cuda.PointerLegacyIPC, m.p))
	require.Zero(e, v, "such memory has no IPC handles")

	// The same memory at a second address, by way of a file descriptor.
	fd := must.Get(e.d.MemExportToShareableHandle(m.h))
	again := shareable{n: m.n}
	again.h = must.Get(e.d.MemImportFromShareableHandle(fd))
	e.noErr(closeFile(fd)) // it was left open
	e.after(func() error { return e.d.MemRelease(again.h) })
	e.mapped(&again)
	require.NotEqual(e, m.p, again.p)
	require.Equal(e, []uint32{99}, e.words(again.p+64, 1))

	// Bad requests.
	_, err := e.d.MemCreate(m.n+1, cuda.AllocationProp{Device: e.dev})
	e.is(err, cuda.ErrInvalidValue) // not a multiple of the granularity
	e.is(must.Err(e.d.MemCreate(tooMuch, cuda.AllocationProp{Device: e.dev})), cuda.ErrOutOfMemory)
	e.is(must.Err(e.d.MemRetainAllocationHandle(e.alloc(64))), cuda.ErrInvalidValue)
	null := must.Get(os.Open(os.DevNull))
	defer null.Close()
	_, err = e.d.MemImportFromShareableHandle(int(null.Fd()))
	require.Error(e, err) // drivers differ in what they call it
}

func testImport(e *env) {
	m := e.virtual()
	e.put(m.p, 1234)
	fd := must.Get(e.d.MemExportToShareableHandle(m.h))
	file := os.NewFile(uintptr(fd), "device memory")
	defer file.Close()
	e.child("import", fmt.Sprint(m.n), file)
	require.Equal(e, []uint32{1234, 4321}, e.words(m.p, 2), "the child wrote")
}

// testPeerImport has a kernel of device 1 write from another process.
func testPeerImport(e *env) {
	e.second()
	m := e.virtual()
	fd := must.Get(e.d.MemExportToShareableHandle(m.h))
	file := os.NewFile(uintptr(fd), "device memory")
	defer file.Close()
	e.child("peer import", fmt.Sprint(m.n), file)
	require.Equal(e, []uint32{4321}, e.words(m.p, 1), "the child wrote")
}

func childPeerImport(e *env, arg string) {
	m := shareable{}
	must.Get(fmt.Sscan(arg, &m.n))
	m.h = must.Get(e.d.MemImportFromShareableHandle(3))
	second := e.second()
	second.after(func() error { return e.d.MemRelease(m.h) })
	second.do(func() {
		second.mapped(&m)
		e.noErr(e.d.LaunchKernel(second.kernel("store"), &cuda.Launch{}, cuda.ArgsOf(&storeArgs{m.p, 4321})))
		e.noErr(e.d.CtxSynchronize())
	})
}

// childImport reads and writes the parent's memory, which it has as file 3.
func childImport(e *env, arg string) {
	m := shareable{}
	must.Get(fmt.Sscan(arg, &m.n))
	m.h = must.Get(e.d.MemImportFromShareableHandle(3))
	e.after(func() error { return e.d.MemRelease(m.h) })
	e.mapped(&m)
	require.Equal(e, []uint32{1234}, e.words(m.p, 1))
	e.put(m.p+4, 4321)
}

// testGrowing grows memory in place: its content stays, at the same addresses.
func testGrowing(e *env) {
	g := cuda.NewGrowing(e.d, e.ctx, e.dev)
	p := must.Get(g.AtLeast(4))
	e.put(p, 7)
	before, _, err := e.d.MemGetInfo()
	e.noErr(err)
	for n := 4; n <= 24<<20; n += 1 << 20 {
		q := must.Get(g.AtLeast(n))
		require.Equal(e, p, q)
		e.noErr(e.d.MemsetD8Async(p+uintptr(n)-4, 1, 4, 0))
	}
	e.noErr(e.d.StreamSynchronize(0))
	require.Equal(e, []uint32{0x01010101}, e.words(p, 1), "the first fill")
	after, _, err := e.d.MemGetInfo()
	e.noErr(err)
	require.LessOrEqual(e, before-after, 48<<20)
	require.GreaterOrEqual(e, g.Size(), 23<<20)
	e.noErr(g.Close())
	e.noErr(g.Close())
	require.Zero(e, g.Size())
	p = must.Get(g.AtLeast(4))
	e.put(p, 8)
	e.noErr(g.Close())
}

// testDMABuf exports memory for other devices.
func testDMABuf(e *env) {
	e.needs("the device lets no network cards into its memory by dma-buf", cuda.AttrVirtualMemorySupported,
		cuda.AttrRDMAVirtualMemorySupported, cuda.AttrDMABufSupported)
	prop := cuda.AllocationProp{Device: e.dev, RDMA: true}
	g := must.Get(e.d.MemGetAllocationGranularity(prop, cuda.GranularityMinimum))
	m := shareable{n: g}
	m.h = must.Get(e.d.MemCreate(m.n, prop))
	e.after(func() error { return e.d.MemRelease(m.h) })
	e.mapped(&m)
	fd := must.Get(e.d.MemGetHandleForAddressRange(m.p, m.n))
	file := os.NewFile(uintptr(fd), "dma-buf")
	info := must.Get(file.Stat())
	require.GreaterOrEqual(e, info.Size(), int64(m.n))
	e.noErr(file.Close())
}
