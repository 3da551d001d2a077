package cudatest

import (
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

func testDeviceMemory(e *env) {
	free, total, err := e.d.MemGetInfo()
	e.noErr(err)
	require.Positive(e, total)
	require.LessOrEqual(e, free, total)

	const n = 8 << 20
	p := must.Get(e.d.MemAlloc(n))
	require.Zero(e, p%256, "allocations are aligned to 256 bytes")
	base, size, err := e.d.MemGetAddressRange(p + 12345)
	e.noErr(err)
	require.Equal(e, p, base)
	require.Equal(e, n, size)
	less, _, err := e.d.MemGetInfo()
	e.noErr(err)
	require.Less(e, less, free)
	e.noErr(e.d.MemFree(p))
	e.is(e.d.MemFree(p), cuda.ErrInvalidValue)
	_, _, err = e.d.MemGetAddressRange(p)
	e.is(err, cuda.ErrNotFound, cuda.ErrInvalidValue)
}

// testBadMemory frees and asks for what it should not. Copies from addresses
// that are no memory at all are not tried with MemcpyAsync: with unified
// addressing the real driver takes them for memory of the host and crashes.
func testBadMemory(e *env) {
	e.is(must.Err(e.d.MemAlloc(0)), cuda.ErrInvalidValue)
	_, err := e.d.MemAlloc(tooMuch)
	e.is(err, cuda.ErrOutOfMemory)
	require.Contains(e, err.Error(), "free", "how much there is")

	host := make([]byte, 64)
	hostAddr := uintptr(unsafe.Pointer(&host[0]))
	e.is(e.d.MemFree(hostAddr), cuda.ErrInvalidValue)
	e.is(must.Err(e.d.PointerGetAttribute(cuda.PointerMemoryType, hostAddr)), cuda.ErrInvalidValue)
	_, _, err = e.d.MemGetAddressRange(hostAddr)
	e.is(err, cuda.ErrNotFound, cuda.ErrInvalidValue)
	e.is(e.d.MemFreeHost(hostAddr), cuda.ErrInvalidValue)
	e.is(e.d.MemHostUnregister(hostAddr), cuda.ErrHostMemoryNotRegistered, cuda.ErrInvalidValue)

	e.is(e.d.MemcpyHtoD(0, host), cuda.ErrInvalidValue)
	e.is(e.d.MemcpyDtoH(host, 0), cuda.ErrInvalidValue)
	e.is(e.d.MemsetD8(0, 1, 64), cuda.ErrInvalidValue)
	p, err := e.d.MemAlloc(8 << 20) // large: its addresses are gone when it is freed
	e.noErr(err)
	e.noErr(e.d.MemFree(p))
	e.is(e.d.MemcpyHtoD(p, host), cuda.ErrInvalidValue)
	e.is(e.d.MemcpyDtoH(host, p), cuda.ErrInvalidValue)

	e.is(e.d.MemsetD32Async(e.alloc(64)+2, 1, 4, 0), cuda.ErrInvalidValue) // not aligned to its words
	q := e.alloc(8 << 20)
	e.is(e.d.MemsetD8(q, 1, beyond), cuda.ErrInvalidValue)
}

func testHostMemory(e *env) {
	const n = 1 << 16
	h := e.host(n)
	dp := must.Get(e.d.MemHostGetDevicePointer(h))
	require.Equal(e, h, dp, "addresses are unified")
	b := bytesAt(h, n)
	for i := range b {
		b[i] = byte(i)
	}

	p := e.alloc(n)
	s := e.stream()
	e.noErr(e.d.MemcpyAsync(p, h, n, s))
	e.noErr(e.d.StreamSynchronize(s))
	got := make([]byte, n)
	e.noErr(e.d.MemcpyDtoH(got, p))
	require.Equal(e, b, got)
	e.noErr(e.d.MemsetD8Async(p, 9, n, s))
	e.noErr(e.d.MemcpyAsync(h, p, n, s))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, byte(9), b[n-1])

	// A kernel writes the host's memory.
	args := storeArgs{dp + 4, 0xabcd}
	e.noErr(e.d.LaunchKernel(e.kernel("store"), &cuda.Launch{Stream: s}, cuda.ArgsOf(&args)))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []byte{0xcd, 0xab, 0, 0}, b[4:8])
}

func testRegistered(e *env) {
	const n = 1 << 16
	b := must.Get(pages(n))
	defer freePages(b)
	h := uintptr(unsafe.Pointer(&b[0]))
	e.noErr(e.d.MemHostRegister(h, n, cuda.HostRegisterMapped|cuda.HostRegisterPortable))
	e.is(e.d.MemHostRegister(h, n, cuda.HostRegisterMapped), cuda.ErrHostMemoryAlreadyRegistered)
	dp := must.Get(e.d.MemHostGetDevicePointer(h))
	p := e.alloc(n)
	e.noErr(e.d.MemsetD8(p, 7, n))
	e.noErr(e.d.MemcpyDtoD(dp, p, n))
	e.noErr(e.d.CtxSynchronize())
	require.Equal(e, byte(7), b[n-1])
	e.noErr(e.d.MemHostUnregister(h))
	e.is(e.d.MemHostUnregister(h), cuda.ErrHostMemoryNotRegistered)
}

func testPointerAttributes(e *env) {
	get := func(a cuda.PointerAttribute, p uintptr) uint64 {
		e.Helper()
		v := must.Get(e.d.PointerGetAttribute(a, p))
		return v
	}
	const n = 4 << 20
	p, q := e.alloc(n), e.alloc(n)
	require.EqualValues(e, cuda.MemoryTypeDevice, get(cuda.PointerMemoryType, p+100))
	require.EqualValues(e, e.ctx, get(cuda.PointerContext, p))
	require.EqualValues(e, e.dev, get(cuda.PointerDeviceOrdinal, p))
	require.EqualValues(e, p, get(cuda.PointerRangeStart, p+100))
	require.EqualValues(e, n, get(cuda.PointerRangeSize, p+100))
	require.Zero(e, get(cuda.PointerIsManaged, p))
	require.EqualValues(e, 1, get(cuda.PointerLegacyIPC, p))
	require.Equal(e, get(cuda.PointerBufferID, p), get(cuda.PointerBufferID, p+100))
	require.NotEqual(e, get(cuda.PointerBufferID, p), get(cuda.PointerBufferID, q))
	e.noErr(e.d.PointerSetSyncMemops(p, true))
	require.EqualValues(e, 1, get(cuda.PointerSyncMemops, p))
	e.noErr(e.d.PointerSetSyncMemops(p, false))
	require.EqualValues(e, 0, get(cuda.PointerSyncMemops, p))

	h := e.host(4096)
	require.EqualValues(e, cuda.MemoryTypeHost, get(cuda.PointerMemoryType, h+8))
}

func testCopies(e *env) {
	const n = 1000
	src := make([]byte, n)
	for i := range src {
		src[i] = byte(i * 7)
	}
	p, q := e.alloc(n), e.alloc(n)
	e.noErr(e.d.MemcpyHtoD(p, src))
	e.noErr(e.d.MemcpyDtoD(q+1, p+3, 500)) // at odd addresses
	e.noErr(e.d.CtxSynchronize())
	got := make([]byte, 500)
	e.noErr(e.d.MemcpyDtoH(got, q+1))
	require.Equal(e, src[3:503], got)

	e.noErr(e.d.MemcpyHtoD(p, nil)) // nothing at all
	e.noErr(e.d.MemcpyDtoH(nil, p))
	e.noErr(e.d.MemcpyDtoD(p, q, 0))
	e.noErr(e.d.MemcpyAsync(p, q, 0, 0))
	e.noErr(e.d.MemsetD8(p, 1, 0))

	e.noErr(e.d.MemsetD8(p, 0xab, n))
	e.noErr(e.d.MemsetD8(p+1, 0xcd, 2))
	e.noErr(e.d.CtxSynchronize())
	got = make([]byte, 5)
	e.noErr(e.d.MemcpyDtoH(got, p))
	require.Equal(e, []byte{0xab, 0xcd, 0xcd, 0xab, 0xab}, got)

	s := e.stream()
	e.noErr(e.d.MemsetD32Async(p+8, 0x12345678, 3, s))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{0xabababab, 0x12345678, 0x12345678, 0x12345678, 0xabababab}, e.words(p+4, 5))

	// In order within a stream.
	for i := range byte(50) {
		e.noErr(e.d.MemsetD8Async(p, i, n, s))
		e.noErr(e.d.MemcpyAsync(q, p, n, s))
	}
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, repeat(0x31313131, n/4), e.words(q, n/4))
}

// bytesAt is memory of the host that the driver allocated.
func bytesAt(p uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}
