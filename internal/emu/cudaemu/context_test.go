package cudaemu_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Programs know the devices that are visible as 0, 1 and so on, in the order of the list.
func TestVisible(t *testing.T) {
	all, some := open(t, cudaemu.Config{Devices: 3}), open(t, cudaemu.Config{Devices: 3, Visible: []int{2, 0}})
	n := must.Get(some.DeviceGetCount())
	require.Equal(t, 2, n)
	runtime.LockOSThread()
	for i, device := range []cuda.Device{2, 0} {
		d := must.Get(some.DeviceGet(i))
		require.Equal(t, cuda.Device(i), d)
		got := must.Get(some.DeviceGetUuid(d))
		want := must.Get(all.DeviceGetUuid(device))
		require.Equal(t, want, got)
		c := must.Get(some.DevicePrimaryCtxRetain(d))
		require.NoError(t, cuda.With(some, c, func() error {
			current := must.Get(some.CtxGetDevice())
			require.Equal(t, d, current)
			p := must.Get(some.MemAlloc(64))
			of := must.Get(some.PointerGetAttribute(cuda.PointerDeviceOrdinal, p))
			require.EqualValues(t, i, of)
			return some.MemFree(p)
		}))
		require.NoError(t, some.DevicePrimaryCtxRelease(d))
	}
	require.ErrorIs(t, must.Err(some.DeviceGet(2)), cuda.ErrInvalidDevice)
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
