package cudaemu_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Each thread has a stack of contexts, whose top is current.
func TestContextStack(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2})
	e.ok(e.CtxPushCurrent(e.ctx[1]))
	e.ok(e.CtxPushCurrent(e.ctx[0]))
	e.ok(e.CtxSetCurrent(e.ctx[1])) // the top alone
	for _, want := range []cuda.Context{e.ctx[1], e.ctx[1], e.ctx[0]} {
		c, err := e.CtxPopCurrent()
		e.ok(err)
		require.Equal(t, want, c)
	}
	_, err := e.CtxPopCurrent()
	e.is(err, cuda.ErrInvalidContext)
	_, err = e.MemAlloc(1)
	e.is(err, cuda.ErrInvalidContext)
	require.Contains(t, err.Error(), "With")
	e.is(e.CtxSetCurrent(5), cuda.ErrInvalidContext)
	e.ok(e.CtxSetCurrent(0)) // nothing is current: nothing changes
}

func TestReferences(t *testing.T) {
	m := open(t, cudaemu.Config{})
	e := &env{TB: t, Machine: m}
	runtime.LockOSThread()
	active := func() bool {
		_, a, err := m.DevicePrimaryCtxGetState(0)
		e.ok(err)
		return a
	}
	require.False(t, active())
	e.is(m.DevicePrimaryCtxRelease(0), cuda.ErrInvalidContext)
	a, err := m.DevicePrimaryCtxRetain(0)
	e.ok(err)
	b, err := m.DevicePrimaryCtxRetain(0)
	e.ok(err)
	require.Equal(t, a, b)
	e.ok(m.DevicePrimaryCtxRelease(0))
	require.True(t, active())
	e.ok(m.CtxSetCurrent(a))
	e.ok(m.DevicePrimaryCtxRelease(0))
	require.False(t, active())
	_, err = m.MemAlloc(1)
	e.is(err, cuda.ErrContextIsDestroyed)
	e.is(m.CtxPushCurrent(a), cuda.ErrContextIsDestroyed)
	e.ok(m.CtxSetCurrent(0))
	e.is(m.DevicePrimaryCtxRelease(9), cuda.ErrInvalidDevice)
}

// TestPeerDirections enables access one way: a kernel of device 0 may touch
// memory of device 1, not the reverse. Copies need no access.
func TestPeerDirections(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2})
	e.ok(e.CtxEnablePeerAccess(e.ctx[1]))
	here := e.alloc(64, true)
	e.use(1)
	there := e.alloc(64, true)
	e.use(0)
	launch(e, "store", 0, &storeArgs{there, 8})
	e.ok(e.CtxSynchronize())
	e.use(1)
	require.Equal(t, uint32(8), e.word(there))
	e.ok(e.MemcpyPeerAsync(here, e.ctx[0], there, e.ctx[1], 4, 0))
	e.is(e.MemcpyPeerAsync(here, e.ctx[1], there, e.ctx[1], 4, 0), cuda.ErrInvalidValue)
	e.ok(e.CtxSynchronize())
	require.Equal(t, uint32(8), e.word(here))
	e.clean()
	launch(e, "store", 0, &storeArgs{here, 8})
	e.is(e.CtxSynchronize(), cuda.ErrIllegalAddress)
	require.Equal(t, 1, e.kinds()[weakmem.NoAccess])
	require.Contains(t, e.Reports()[0].Error(), "no access")
}

func TestOutOfMemory(t *testing.T) {
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Memory: 1 << 20}}})
	p, err := e.MemAlloc(1 << 19)
	e.ok(err)
	_, err = e.MemAlloc(1<<19 + 1)
	e.is(err, cuda.ErrOutOfMemory)
	require.Contains(t, err.Error(), "524288 of 1048576 free")
	q, err := e.MemAlloc(1 << 19)
	e.ok(err)
	free, total, err := e.MemGetInfo()
	e.ok(err)
	require.Zero(t, free)
	require.Equal(t, 1<<20, total)
	e.ok(e.MemFree(p))
	e.ok(e.MemFree(q))
	_, err = e.MemCreate(2<<20, cuda.AllocationProp{})
	e.is(err, cuda.ErrOutOfMemory)
	e.ok(e.MemFree(0))
	e.is(e.MemFree(q), cuda.ErrInvalidValue)
	e.is(e.MemcpyHtoD(q, make([]byte, 4)), cuda.ErrInvalidValue)
}

func TestHostMemory(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2})
	buf := make([]byte, 64)
	p := uintptr(unsafe.Pointer(&buf[0]))
	e.ok(e.MemHostRegister(p, 64, cuda.HostRegisterPortable))
	e.is(e.MemHostRegister(p+8, 4, 0), cuda.ErrHostMemoryAlreadyRegistered)
	e.use(1) // portable: for all devices
	launch(e, "store", 0, &storeArgs{p + 4, 0x01020304})
	e.ok(e.CtxSynchronize())
	require.Equal(t, []byte{0, 0, 0, 0, 4, 3, 2, 1}, buf[:8])
	d, err := e.MemHostGetDevicePointer(p + 8)
	e.ok(err)
	require.Equal(t, p+8, d)
	e.is(e.MemFreeHost(p), cuda.ErrInvalidValue)
	e.ok(e.MemHostUnregister(p))
	e.is(e.MemHostUnregister(p), cuda.ErrHostMemoryNotRegistered)
	e.is(e.MemHostRegister(e.alloc(64, false), 64, 0), cuda.ErrInvalidValue)
	_, err = e.MemHostAlloc(-1, 0)
	e.is(err, cuda.ErrInvalidValue)
	runtime.KeepAlive(buf)
}

// Programs know the devices that are visible as 0, 1 and so on, in the order of the list.
func TestVisible(t *testing.T) {
	all, some := open(t, cudaemu.Config{Devices: 3}), open(t, cudaemu.Config{Devices: 3, Visible: []int{2, 0}})
	n, err := some.DeviceGetCount()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	runtime.LockOSThread()
	for i, device := range []cuda.Device{2, 0} {
		d, err := some.DeviceGet(i)
		require.NoError(t, err)
		require.Equal(t, cuda.Device(i), d)
		got, err := some.DeviceGetUuid(d)
		require.NoError(t, err)
		want, err := all.DeviceGetUuid(device)
		require.NoError(t, err)
		require.Equal(t, want, got)
		c, err := some.DevicePrimaryCtxRetain(d)
		require.NoError(t, err)
		require.NoError(t, cuda.With(some, c, func() error {
			current, err := some.CtxGetDevice()
			require.NoError(t, err)
			require.Equal(t, d, current)
			p, err := some.MemAlloc(64)
			require.NoError(t, err)
			of, err := some.PointerGetAttribute(cuda.PointerDeviceOrdinal, p)
			require.NoError(t, err)
			require.EqualValues(t, i, of)
			return some.MemFree(p)
		}))
		require.NoError(t, some.DevicePrimaryCtxRelease(d))
	}
	_, err = some.DeviceGet(2)
	require.ErrorIs(t, err, cuda.ErrInvalidDevice)
	require.ErrorIs(t, some.DevicePrimaryCtxRelease(2), cuda.ErrInvalidDevice)
	for _, wrong := range [][]int{{3}, {-1}, {1, 1}} {
		_, err := cudaemu.New(cudaemu.Config{Devices: 3, Visible: wrong})
		require.ErrorContains(t, err, "give numbers of devices, each once")
	}
}

// A list of visible devices ends before the first word that is no device.
func TestParseVisible(t *testing.T) {
	for list, want := range map[string][]int{"1,0": {1, 0}, "2": {2}, "0, 1,7,2": {0, 1}, "-1": nil, "": nil,
		"GPU-1": nil} {
		require.Equal(t, want, cudaemu.ParseVisible(list, 3), list)
	}
}
