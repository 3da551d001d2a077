package gputest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// GPUs opens n devices, of the emulator unless REQUIRE=cuda.
func GPUs(t testing.TB, n int, o ...Option) []*gpu.Device {
	t.Helper()
	return GPUsOf(t, Driver(t, append(o, Devices(n), Warm())...), n)
}

// Unchecked has the emulator make stores visible at once and look for no races, but in the full tier: for tests of
// anything but the order of accesses to memory. Lines tear only where races are looked for.
func Unchecked(n int) Option {
	return Emu(cudaemu.Config{Devices: n, Plain: !tier.Full() && !need.Required("pcie")})
}

// Context gives a driver's nth device with its primary context, which the end of the test releases.
func Context(t testing.TB, d cuda.Driver, n int) (cuda.Device, cuda.Context) {
	t.Helper()
	dev, err := d.DeviceGet(n)
	require.NoError(t, err)
	ctx, err := d.DevicePrimaryCtxRetain(dev)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DevicePrimaryCtxRelease(dev)) })
	return dev, ctx
}

// GPUsOf opens n devices of a driver. The end of the test releases them.
func GPUsOf(t testing.TB, d cuda.Driver, n int) []*gpu.Device {
	t.Helper()
	m, err := gpu.Of(d)
	require.NoError(t, err)
	list := make([]*gpu.Device, n)
	for i := range list {
		list[i], err = m.Device(i)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, d := range list {
			require.NoError(t, d.Release())
		}
	})
	return list
}
