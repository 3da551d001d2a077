package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseType(t *testing.T) {
	for i, ty := range Types() {
		require.Equal(t, i, ty.NCCL())
		require.True(t, ty.Valid())
		got, err := ParseType(ty.String())
		require.NoError(t, err)
		require.Equal(t, ty, got)
	}
	// ncclInt8 is 0, ncclFloat32 7, ncclFloat8e5m2 11.
	require.Equal(t, []int{0, 7, 11}, []int{Int8.NCCL(), Float32.NCCL(), Float8E5M2.NCCL()})
	for name, want := range map[string]DataType{
		"half": Float16, "float": Float32, "double": Float64, "f8e4m3": Float8E4M3, "f8e5m2": Float8E5M2,
	} {
		got, err := ParseType(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"", "Float", "int16"} {
		_, err := ParseType(name)
		require.ErrorContains(t, err, "is none of int8, uint8, int32")
	}
	for _, none := range []DataType{0, 13} {
		require.False(t, none.Valid())
		require.Zero(t, none.Size())
		require.Equal(t, -1, none.NCCL())
		require.NotContains(t, Types(), none)
		_, err := ParseType(none.String())
		require.Error(t, err)
	}
}

func TestParseOp(t *testing.T) {
	for name, want := range map[string]RedOp{
		"sum": Sum, "prod": Prod, "max": Max, "min": Min, "avg": Avg, "bitand": BitAnd, "bor": BitOr, "bxor": BitXor,
		"premulsum(0.5)": PreMulSum(0.5), "mulsum(3)": PreMulSumInt(3), "mulsum(1e3)": PreMulSum(1000),
		"premulsum(-9223372036854775807)": PreMulSumInt(-1<<63 + 1),
	} {
		got, err := ParseOp(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"", "sum(", "sum(1)", "mulsum", "premulsum()", "premulsum(x)", "premulsum(1", "user",
		"user(x)", "b"} {
		_, err := ParseOp(name)
		require.ErrorContains(t, err, "is none of sum, prod", name)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"sum", "bor", "premulsum(0.5)", "mulsum(-3)", "float8e4m3", "half"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ty, err := ParseType(s); err == nil {
			again, err := ParseType(ty.String())
			require.NoError(t, err)
			require.Equal(t, ty, again)
		}
		if op, err := ParseOp(s); err == nil {
			again, err := ParseOp(op.String())
			require.NoError(t, err)
			require.Equal(t, op.String(), again.String())
		}
	})
}
