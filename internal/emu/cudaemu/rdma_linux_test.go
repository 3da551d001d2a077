package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Bytes that are written to a dma-buf are in the device's memory, and count as written there.
func TestRDMA(t *testing.T) {
	e := start(t, cudaemu.Config{RDMA: true})
	for _, a := range []cuda.DeviceAttribute{cuda.AttrRDMASupported, cuda.AttrRDMAVirtualMemorySupported,
		cuda.AttrDMABufSupported} {
		v := must.Get(e.DeviceGetAttribute(a, 0))
		require.Equal(t, 1, v)
	}
	prop := cuda.AllocationProp{RDMA: true}
	n := must.Get(e.MemGetAllocationGranularity(prop, cuda.GranularityMinimum))
	h := must.Get(e.MemCreate(n, prop))
	p := must.Get(e.MemAddressReserve(n, 0))
	e.ok(e.MemMap(p, n, h))
	e.ok(e.MemSetAccess(p, n, 0))
	e.is(must.Err(e.MemGetHandleForAddressRange(p+1, n)), cuda.ErrInvalidValue)
	e.is(must.Err(e.MemGetHandleForAddressRange(p, 2*n)), cuda.ErrInvalidValue)
	e.is(must.Err(e.MemGetHandleForAddressRange(p+4096, 4096)), cuda.ErrNotSupported)
	fd := must.Get(e.MemGetHandleForAddressRange(p, n))
	b := must.Get(unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
	require.NoError(t, unix.Close(fd))
	copy(b[100:], "from a card")
	got := make([]byte, 11)
	e.ok(e.MemcpyDtoH(got, p+100))
	require.Equal(t, "from a card", string(got))
	e.ok(cuda.Write(e.Machine, p+200, []byte("to a card")))
	require.Equal(t, "to a card", string(b[200:209]))
	require.NoError(t, unix.Munmap(b))

	other := must.Get(e.MemAlloc(4096))
	base, _, err := e.MemGetAddressRange(other)
	e.ok(err)
	require.Error(t, must.Err(e.MemGetHandleForAddressRange((base+4095)&^4095, 4096)))
	e.ok(e.MemFree(other))
	e.ok(e.MemUnmap(p, n))
	e.ok(e.MemAddressFree(p, n))
	e.ok(e.MemRelease(h))
}
