package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// Bytes that are written to a dma-buf are in the device's memory, and count as written there.
func TestRDMA(t *testing.T) {
	e := start(t, cudaemu.Config{RDMA: true})
	for _, a := range []cuda.DeviceAttribute{cuda.AttrRDMASupported, cuda.AttrRDMAVirtualMemorySupported,
		cuda.AttrDMABufSupported} {
		v, err := e.DeviceGetAttribute(a, 0)
		e.ok(err)
		require.Equal(t, 1, v)
	}
	prop := cuda.AllocationProp{RDMA: true}
	n, err := e.MemGetAllocationGranularity(prop, cuda.GranularityMinimum)
	e.ok(err)
	h, err := e.MemCreate(n, prop)
	e.ok(err)
	p, err := e.MemAddressReserve(n, 0)
	e.ok(err)
	e.ok(e.MemMap(p, n, h))
	e.ok(e.MemSetAccess(p, n, 0))
	_, err = e.MemGetHandleForAddressRange(p+1, n)
	e.is(err, cuda.ErrInvalidValue)
	_, err = e.MemGetHandleForAddressRange(p, 2*n)
	e.is(err, cuda.ErrInvalidValue)
	_, err = e.MemGetHandleForAddressRange(p+4096, 4096)
	e.is(err, cuda.ErrNotSupported)
	fd, err := e.MemGetHandleForAddressRange(p, n)
	e.ok(err)
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	copy(b[100:], "from a card")
	got := make([]byte, 11)
	e.ok(e.MemcpyDtoH(got, p+100))
	require.Equal(t, "from a card", string(got))
	e.ok(cuda.Write(e.Machine, p+200, []byte("to a card")))
	require.Equal(t, "to a card", string(b[200:209]))
	require.NoError(t, unix.Munmap(b))

	other, err := e.MemAlloc(4096)
	e.ok(err)
	base, _, err := e.MemGetAddressRange(other)
	e.ok(err)
	_, err = e.MemGetHandleForAddressRange((base+4095)&^4095, 4096)
	require.Error(t, err)
	e.ok(e.MemFree(other))
	e.ok(e.MemUnmap(p, n))
	e.ok(e.MemAddressFree(p, n))
	e.ok(e.MemRelease(h))
}
