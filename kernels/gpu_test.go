package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgram(t *testing.T) {
	bits := math.Float64bits
	tests := []struct {
		t     DataType
		op    RedOp
		ranks int
		want  Program
	}{
		{Float32, Sum, 4, Program{Op: "sum"}},
		{Int8, BitXor, 4, Program{Op: "bitxor"}},
		{BFloat16, Avg, 4, Program{Op: "premulsum", Value: 0x3e800000, Scales: true}},
		{Float64, Avg, 3, Program{Op: "premulsum", Value: bits(1.0 / 3), Scales: true}},
		{Float16, PreMulSum(0.1), 3, Program{Op: "premulsum", Value: uint64(math.Float32bits(0.1)), Scales: true}},
		{Float64, PreMulSumInt(-3), 3, Program{Op: "premulsum", Value: bits(-3), Scales: true}},
		{Int8, PreMulSum(-1), 3, Program{Op: "premulsum", Value: math.MaxUint64, Scales: true}},
		{Uint64, PreMulSumInt(1<<62 + 1), 3, Program{Op: "premulsum", Value: 1<<62 + 1, Scales: true}},
		{Uint64, Avg, 3, Program{Op: "sum", Value: 3, Finishes: true}},
		{Int32, Avg, 3, Program{Op: "sum", Value: 0x5555555555555556, Finishes: true}},
		{Int32, Avg, 1, Program{Op: "sum"}},
		{Uint8, Avg, math.MaxUint32 + 1, Program{Op: "sum", Finishes: true}},
	}
	for _, test := range tests {
		r, err := NewReducer(test.t, test.op, test.ranks)
		require.NoError(t, err)
		require.Equal(t, test.t, r.Type())
		p, ok := r.Program()
		require.True(t, ok)
		require.Equal(t, test.want, p, "%v of %v", test.op, test.t)
	}
	r, err := NewReducer(Int8, UserOp("mine", func(DataType, []byte, []byte) {}), 3)
	require.NoError(t, err)
	_, ok := r.Program()
	require.False(t, ok)
}
