package ptx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArchiveHoldsTheFiles(t *testing.T) {
	files, err := filepath.Glob("*.ptx")
	require.NoError(t, err)
	require.Len(t, files, len(All()))
	total := 0
	for _, n := range All() {
		want, err := os.ReadFile(n.String() + ".ptx")
		require.NoError(t, err)
		got, err := Text(n)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "modules.zip is not up to date: run go generate ./kernels/ptx")
		total += len(got)
	}
	require.Less(t, total, 2<<20, "bytes of PTX")
}

func TestNames(t *testing.T) {
	require.Equal(t, []Name{{"bfloat16", "sum", 80}, {"bfloat16", "sum", 70}}, Variants("bfloat16", "sum"))
	require.Equal(t, []Name{{"int8", "bitxor", 70}}, Variants("int8", "bitxor"))
	require.Empty(t, Variants("float32", "bitxor"))
	require.Empty(t, Variants("float128", "sum"))
	require.Empty(t, Variants("float32", "avg"))
	n := Name{"bfloat16", "sum", 80}
	require.Equal(t, "bfloat16_sum_sm_80", n.String())
	require.Equal(t, "combine_bfloat16_sum", n.Combine())
	require.Equal(t, "plain_bfloat16_sum", n.Plain())
	_, err := Text(Name{"float32", "sum", 100})
	require.EqualError(t, err, "ptx: no kernel for sum of float32 at sm_100: run go generate ./kernels/ptx if it is new")
}
