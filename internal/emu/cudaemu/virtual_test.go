package cudaemu_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A virtual is a mapped allocation of the virtual-memory API.
type virtual struct {
	p uintptr
	n int
	h cuda.MemHandle
}

// virtual maps memory of a device, for all devices or none.
func (e *env) virtual(device int, access bool) virtual {
	e.Helper()
	v := virtual{n: 2 << 20}
	var err error
	v.h, err = e.MemCreate(v.n, cuda.AllocationProp{Device: cuda.Device(device), Shareable: runtime.GOOS == "linux"})
	e.ok(err)
	v.p = must.Get(e.MemAddressReserve(v.n, 0))
	e.ok(e.MemMap(v.p, v.n, v.h))
	if access {
		for i := range e.ctx {
			e.ok(e.MemSetAccess(v.p, v.n, cuda.Device(i)))
		}
	}
	e.Cleanup(func() {
		e.ok(e.MemUnmap(v.p, v.n))
		e.ok(e.MemAddressFree(v.p, v.n))
		e.ok(e.MemRelease(v.h))
	})
	return v
}

func TestVirtualMemory(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2, Shapes: nil})
	v := e.virtual(1, true)
	launch(e, "store", 0, &storeArgs{v.p, 5}) // from device 0, without peer access of contexts
	require.Equal(t, uint32(5), e.word(v.p))
	e.clean()

	// Two allocations side by side are one memory.
	const n = 2 << 20
	p := must.Get(e.MemAddressReserve(2*n, 4<<20))
	require.Zero(t, p%(4<<20))
	var h [2]cuda.MemHandle
	for i := range h {
		h[i] = must.Get(e.MemCreate(n, cuda.AllocationProp{Device: cuda.Device(i)}))
		e.ok(e.MemMap(p+uintptr(i)*n, n, h[i]))
		e.ok(e.MemRelease(h[i])) // the mapping keeps it
	}
	e.is(e.MemsetD8(p, 7, 2*n), cuda.ErrInvalidValue) // no access
	e.ok(e.MemSetAccess(p, 2*n, 0, 1))
	e.ok(e.MemsetD8(p, 7, 2*n))
	e.ok(e.MemcpyDtoD(p+n-2, p, 4))
	require.Equal(t, uint32(0x07070707), e.word(p+n-2))
	require.Error(t, must.Err(e.MemExportToShareableHandle(h[0])))

	e.is(e.MemUnmap(p, n/2), cuda.ErrInvalidValue)
	e.is(e.MemAddressFree(p, 2*n), cuda.ErrInvalidValue) // still mapped
	free, _, err := e.MemGetInfo()
	e.ok(err)
	e.ok(e.MemUnmap(p, 2*n))
	after, _, err := e.MemGetInfo()
	e.ok(err)
	require.Equal(t, n, after-free)
	e.ok(e.MemAddressFree(p, 2*n))
	e.is(e.MemAddressFree(p, 2*n), cuda.ErrInvalidValue)
}

func TestVirtualErrors(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2, Peers: func(a, b int) bool { return false }})
	v := e.virtual(0, false)
	e.is(e.MemMap(v.p, v.n, v.h), cuda.ErrInvalidValue)       // mapped already
	e.is(e.MemMap(v.p+1<<30, v.n, v.h), cuda.ErrInvalidValue) // not reserved
	e.is(e.MemMap(v.p, v.n+1, v.h), cuda.ErrInvalidValue)     // granularity
	e.is(e.MemMap(v.p, 2*v.n, v.h), cuda.ErrNotSupported)     // more than was allocated
	e.is(e.MemMap(v.p, v.n, v.h+1), cuda.ErrInvalidValue)     // no handle
	e.is(e.MemSetAccess(v.p, v.n, 1), cuda.ErrInvalidDevice)  // no peer access
	e.is(e.MemSetAccess(v.p, v.n, 9), cuda.ErrInvalidDevice)  // no device
	e.is(e.MemSetAccess(v.p, 2*v.n, 0), cuda.ErrInvalidValue) // more than is mapped
	e.is(must.Err(e.MemAddressReserve(v.n, 3)), cuda.ErrInvalidValue)
	e.is(must.Err(e.MemCreate(v.n, cuda.AllocationProp{RDMA: true})), cuda.ErrNotSupported)
	private := must.Get(e.MemCreate(v.n, cuda.AllocationProp{}))
	e.is(must.Err(e.MemExportToShareableHandle(private)), cuda.ErrInvalidValue)
	e.ok(e.MemRelease(private))
	e.is(e.MemRelease(private), cuda.ErrInvalidValue)

	file := must.Get(os.Create(t.TempDir() + "/x"))
	defer file.Close()
	for _, size := range []int64{0, 100, 8192} {
		e.ok(file.Truncate(size))
		e.is(must.Err(e.MemImportFromShareableHandle(int(file.Fd()))), cuda.ErrInvalidValue)
	}
	e.is(must.Err(e.MemImportFromShareableHandle(-1)), cuda.ErrInvalidValue)
}
