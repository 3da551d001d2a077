package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// TestOld: devices and drivers of all ages get the newest variant that they can load.
func TestOld(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("emulated devices and drivers only")
	}
	tests := []struct {
		name         string
		major, minor int
		driver       int
		t            kernels.DataType
		sm           int // 0: refused
	}{
		{"Volta", 7, 0, 11040, kernels.Float8E4M3, 70},
		{"Ampere", 8, 0, 12000, kernels.BFloat16, 80},
		{"Ada", 8, 9, 12020, kernels.Float8E4M3, 89},
		{"Hopper", 9, 0, 13000, kernels.Float8E5M2, 89},
		{"Hopper, driver of before its PTX", 9, 0, 12000, kernels.Float8E5M2, 70},
		{"Blackwell", 10, 0, 13000, kernels.BFloat16, 80},
		{"Pascal", 6, 1, 12000, kernels.Float32, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := gputest.Driver(t, gputest.Emu(cudaemu.Config{
				DriverVersion: test.driver,
				Shapes:        []cudaemu.Device{{Major: test.major, Minor: test.minor}},
			}))
			_, ctx := gputest.Context(t, d, 0)
			c, err := New(d, ctx)
			require.NoError(t, err)
			defer c.Close()
			k, err := c.Kernel(reducer(t, test.t, kernels.Sum, 2))
			if test.sm == 0 {
				var refused *RefusedError
				require.ErrorAs(t, err, &refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.sm, k.m.name.SM)
		})
	}
}

// TestOutOfMemory: after a load that failed for want of memory, the next load works.
func TestOutOfMemory(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("emulated faults only")
	}
	d := gputest.Driver(t, gputest.Emu(cudaemu.Config{
		Faults: []cudaemu.Injection{{Call: "cuModuleLoadData", Result: cuda.ErrOutOfMemory, Nth: 1}},
	}))
	_, ctx := gputest.Context(t, d, 0)
	c, err := New(d, ctx)
	require.NoError(t, err)
	defer c.Close()
	r := reducer(t, kernels.BFloat16, kernels.Sum, 2)
	_, err = c.Kernel(r)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.ErrorContains(t, err, "device: load bfloat16_sum_sm_80: cuModuleLoadData: ")
	k, err := c.Kernel(r)
	require.NoError(t, err)
	require.Equal(t, 80, k.m.name.SM)
}
