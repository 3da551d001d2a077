package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/mem"
)

// TestPreMulSumAt: a scalar in memory gives the Reducer that the scalar itself gives.
func TestPreMulSumAt(t *testing.T) {
	for _, tc := range []struct {
		t    DataType
		at   mem.Region
		want RedOp
	}{
		{Int8, mem.Of([]int8{-3}), PreMulSumInt(-3)},
		{Uint8, mem.Of([]uint8{200}), PreMulSumInt(200)},
		{Int32, mem.Of([]int32{-1 << 31}), PreMulSumInt(-1 << 31)},
		{Uint32, mem.Of([]uint32{1 << 31}), PreMulSumInt(1 << 31)},
		{Int64, mem.Of([]int64{1<<62 + 1}), PreMulSumInt(1<<62 + 1)},
		{Uint64, mem.Of([]uint64{0}), PreMulSumInt(0)},
		{Float16, mem.Of([]F16{NewF16(1.5)}), PreMulSum(1.5)},
		{BFloat16, mem.Of([]BF16{NewBF16(-2)}), PreMulSum(-2)},
		{Float32, mem.Of([]float32{0.1}), PreMulSum(float64(float32(0.1)))},
		{Float64, mem.Of([]float64{math.Pi}), PreMulSum(math.Pi)},
		{Float8E4M3, mem.Of([]F8E4M3{NewF8E4M3(7)}), PreMulSum(7)},
		{Float8E5M2, mem.Of([]F8E5M2{NewF8E5M2(0)}), PreMulSum(0)},
	} {
		got, err := NewReducer(tc.t, PreMulSumAt(tc.at), 3)
		require.NoError(t, err)
		want, err := NewReducer(tc.t, tc.want, 3)
		require.NoError(t, err)
		require.Equal(t, want.factor, got.factor, "%v", tc.t)
		if tc.t >= Float16 {
			require.Equal(t, want.scale, got.scale, "%v", tc.t)
		}
		_, err = NewReducer(tc.t, PreMulSumAt(mem.Device(0, 0x1000, tc.t.Size())), 3)
		require.NoError(t, err, "on a GPU")
	}
	x := []float32{2, 3, 4}
	op := PreMulSumAt(mem.Of(x[1:2]))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = NewReducer(Float32, op, 3) }))
	x[1] = 7
	r, err := NewReducer(Float32, op, 3)
	require.NoError(t, err)
	require.Equal(t, 7.0, r.scale, "read when asked for")
}

func TestPreMulSumAtRefused(t *testing.T) {
	for _, tc := range []struct {
		t    DataType
		at   mem.Region
		want string
	}{
		{Float32, mem.Region{}, "kernels: premulsum(scalar in host memory) of float32: the scalar's memory is nil"},
		{Float32, mem.Device(1, 0x1000, 8),
			"kernels: premulsum(scalar on device 1) of float32: the scalar's memory has 8 bytes: give it one element, of 4"},
		{Float64, mem.Device(1, 0x1004, 8),
			"kernels: premulsum(scalar on device 1) of float64: the scalar's address 0x1004 is no multiple of the element's 8 " +
				"bytes: align it"},
	} {
		_, err := NewReducer(tc.t, PreMulSumAt(tc.at), 3)
		require.EqualError(t, err, tc.want)
	}
}
