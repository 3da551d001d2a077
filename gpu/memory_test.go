package gpu

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/mem"
)

func TestCheck(t *testing.T) {
	m := open(t, 2)
	d, other := m.devices[0], m.devices[1]
	const n = 1 << 20
	r := must.Get(d.Alloc(n))
	theirs := must.Get(other.Alloc(n))
	freed := must.Get(d.Alloc(64 << 20))
	require.NoError(t, d.Free(freed))
	require.EqualValues(t, 1, d.Frees())
	var pinned uintptr
	require.NoError(t, d.With(func() (err error) {
		pinned, err = d.driver.MemHostAlloc(n, cuda.HostAllocPortable|cuda.HostAllocMapped)
		return err
	}))
	pageable := make([]byte, 64)
	for _, test := range []struct {
		name string
		r    mem.Region
		want string // "": nothing
	}{
		{"empty", mem.Device(0, 0, 0), ""},
		{"all", r, ""},
		{"its end", r.Slice(n-1, 1), ""},
		{"pinned", mem.Device(0, pinned, n), ""},
		{"null", mem.Device(0, 0, 4), "4 bytes at 0x0: device 0: null"},
		{"too long", mem.Device(0, r.Ptr()+16, n), "it exceeds its allocation of 1048576 bytes"},
		{"freed", freed, "no memory of a GPU: freed, never allocated, or the host's and not pinned"},
		{"the host's", mem.Device(0, uintptr(unsafe.Pointer(&pageable[0])), 64), "no memory of a GPU"},
		{"another device's", mem.Device(0, theirs.Ptr(), n), "memory of device 1: give memory of device 0"},
	} {
		err := d.With(func() error { return must.Err(d.Check(test.r)) })
		if test.want == "" {
			require.NoError(t, err, test.name)
			continue
		}
		var wrong *MemoryError
		require.ErrorAs(t, err, &wrong, test.name)
		require.ErrorContains(t, err, test.want, test.name)
	}
	require.NoError(t, d.With(func() error { return d.driver.MemFreeHost(pinned) }))
	require.NoError(t, d.Free(r))
	require.NoError(t, other.Free(theirs))
}

// TestCheckContexts: kernels do not reach memory of a context that a program has made on the device.
func TestCheckContexts(t *testing.T) {
	m := must.Get(Open(Options{Emulate: 1}))
	d, emulator := m.devices[0], m.driver.(*cudaemu.Machine)
	ctx := must.Get(emulator.CtxCreate(0))
	p := must.Get(emulator.MemAlloc(4096))
	mapped, err := d.AllocMapped(4096) // of no context
	require.NoError(t, err)
	require.NoError(t, d.With(func() error {
		must.Get(d.Check(mapped))
		_, err = d.Check(mem.Device(0, p+16, 64))
		var wrong *MemoryError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, "memory of another context")
		return nil
	}))
	require.NoError(t, d.Free(mapped))
	require.NoError(t, emulator.MemFree(p))
	require.NoError(t, emulator.CtxDestroy(ctx))
	require.ErrorIs(t, emulator.CtxSetCurrent(ctx), cuda.ErrInvalidContext)
	require.NoError(t, m.Close())
}
