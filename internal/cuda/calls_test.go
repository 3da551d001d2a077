//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Calls have the arguments, outputs and results of C.
func TestSimpleCalls(t *testing.T) {
	d := openFake(t)
	n := must.Get(d.DeviceGetCount())
	require.Equal(t, 2, n)
	name := must.Get(d.DeviceGetName(1))
	require.Equal(t, "Fake One", name)
	least, greatest, err := d.CtxGetStreamPriorityRange()
	require.NoError(t, err)
	require.Equal(t, []int{0, -5}, []int{least, greatest})
	ms := must.Get(d.EventElapsedTime(1, 2))
	require.Equal(t, float32(1.5), ms)

	p := must.Get(d.MemAlloc(16))
	require.NoError(t, d.MemcpyHtoD(p, []byte("0123456789abcdef")))
	b := make([]byte, 6)
	require.NoError(t, d.MemcpyDtoH(b, p+10))
	require.Equal(t, "abcdef", string(b))
	require.NoError(t, d.MemFree(p))

	done := must.Get(d.StreamQuery(1))
	require.True(t, done)
	done, err = d.StreamQuery(77)
	require.NoError(t, err, "not ready is no error")
	require.False(t, done)
}

// TestLook wants the answers of the driver's functions from Look's one call of libcuda, and from a call
// of each for another Driver.
func TestLook(t *testing.T) {
	f := openFake(t)
	for name, d := range map[string]Driver{"one": f.Driver, "each": struct{ Driver }{f.Driver}} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, Sight{Stream: 5, Context: 9, ID: 1005}, Look(d, 5, true))
			require.Equal(t, Sight{Stream: 5, Context: 9}, Look(d, 5, false))
			require.Equal(t, Sight{Stream: 101, Context: 9, Capture: CaptureActive}, Look(d, 101, true))
			require.ErrorIs(t, Look(d, 99, true).Err, ErrInvalidHandle)
			require.ErrorContains(t, Look(d, 99, true).Err, "cuStreamIsCapturing")
			require.ErrorContains(t, Look(d, 98, true).Err, "cuStreamGetId")
			require.Equal(t, Sight{Stream: 98, Context: 9}, Look(d, 98, false))
		})
	}
	require.Zero(t, *saw[uint64](t, f, "fake_refused"), "that could break the capture")
	require.Zero(t, testing.AllocsPerRun(100, func() { Look(f.Driver, 5, true) }))
}

func TestErrors(t *testing.T) {
	d := openFake(t)
	_, err := d.MemAlloc(1 << 40)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.EqualError(t, err,
		"cuMemAlloc: device 1: CUDA_ERROR_OUT_OF_MEMORY (1099511627776 bytes; 3.0 GiB of 8.0 GiB are free): "+results[ErrOutOfMemory].remedy)
	_, err = d.DeviceGet(2)
	require.ErrorIs(t, err, ErrInvalidDevice)
	require.Contains(t, err.Error(), "device 2")
	_, err = d.StreamQuery(78)
	require.ErrorIs(t, err, ErrIllegalAddress)
	require.Contains(t, err.Error(), "new one")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Device)
	require.Equal(t, "cuStreamQuery", e.Call)
	require.Equal(t, "CUDA_ERROR_4711", Result(4711).Error())
}

// The error of a wrong address has the driver's knowledge of it.
func TestBadAddresses(t *testing.T) {
	d := openFake(t)
	fn := must.Get(d.lib.Sym("fake_known"))
	known := dl.Call(fn)
	err := d.MemsetD8(known+24, 1, 64)
	require.ErrorIs(t, err, ErrInvalidValue)
	require.Contains(t, err.Error(), fmt.Sprintf("(address %#x, 64 bytes): %#x is memory of device 1 with 40 bytes left",
		known+24, known+24))
	err = d.MemsetD8(0, 1, 64)
	require.Contains(t, err.Error(), "the address is null")
	err = d.MemcpyDtoD(known, 4096, 8)
	require.Contains(t, err.Error(),
		"0x1000 is no memory of the driver, so it was freed, or is the program's own, "+fmt.Sprintf("%#x is memory of "+
			"device 1", known))
	err = d.MemcpyDtoD(known, 1, 8) // not about the addresses
	require.ErrorIs(t, err, ErrMisalignedAddress)
	require.NotContains(t, err.Error(), "no memory of the driver")
}

func TestIPCHandlesByValue(t *testing.T) {
	d := openFake(t)
	got := saw[struct {
		Flags  uint64
		Handle IPCHandle
	}](t, d, "fake_ipc")
	var h IPCHandle
	for i := range h {
		h[i] = byte(200 - i)
	}
	p := must.Get(d.IpcOpenMemHandle(h))
	require.EqualValues(t, 0x1234, p)
	require.Equal(t, h, got.Handle)
	require.EqualValues(t, 1, got.Flags)

	h[63] = 3
	e := must.Get(d.IpcOpenEventHandle(h))
	require.EqualValues(t, 0x5678, e)
	require.Equal(t, h, got.Handle)

	h = must.Get(d.IpcGetMemHandle(10))
	require.Equal(t, []byte{10, 11, 73}, []byte{h[0], h[1], h[63]})
}

func TestCallbacks(t *testing.T) {
	d := openFake(t)
	registered := func() int {
		callbacks.Lock()
		defer callbacks.Unlock()
		return len(callbacks.f)
	}
	before := registered()

	done := make(chan int, 100)
	for i := range 100 {
		require.NoError(t, d.LaunchHostFunc(1, func() { done <- i }))
	}
	var got []int
	for range 100 {
		select {
		case i := <-done:
			got = append(got, i)
		case <-time.After(10 * time.Second):
			t.Fatal("a host function was not called")
		}
	}
	slices.Sort(got)
	require.Equal(t, []int{0, 1, 99}, []int{got[0], got[1], got[99]})
	require.Equal(t, before, registered(), "none is kept")

	require.ErrorIs(t, d.LaunchHostFunc(78, func() {}), ErrIllegalAddress)
	require.Equal(t, before, registered())

	// Captured: called in each launch, kept until the graph goes.
	calls := 0
	require.NoError(t, d.LaunchHostFunc(101, func() { calls++ }))
	for range 3 {
		require.NoError(t, d.GraphLaunch(1, 1))
	}
	require.Equal(t, 3, calls)
	require.NoError(t, d.GraphDestroy(900))
	require.Equal(t, before, registered())

	gone := 0
	o := must.Get(d.UserObjectCreate(func() { gone++ }, 2))
	require.NoError(t, d.UserObjectRelease(o, 1))
	require.Zero(t, gone)
	require.NoError(t, d.UserObjectRelease(o, 1))
	require.Equal(t, 1, gone)
	require.Equal(t, before, registered())
}

func TestModuleLog(t *testing.T) {
	d := openFake(t)
	m, err := d.ModuleLoadData([]byte("good")) // it ends in a zero for C
	require.NoError(t, err)
	require.EqualValues(t, 5, m)
	_, err = d.ModuleLoadData([]byte("bad"))
	require.ErrorIs(t, err, ErrInvalidPTX)
	require.Contains(t, err.Error(), "(ptxas fatal: line 7 is nonsense)")
}
