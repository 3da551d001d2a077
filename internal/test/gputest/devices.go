package gputest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// GPUs opens n devices, of the emulator unless REQUIRE=cuda.
func GPUs(t testing.TB, n int, o ...Option) []*gpu.Device {
	t.Helper()
	return GPUsOf(t, Driver(t, append(o, Devices(n), Warm())...), n)
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
