package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels/ptx"
)

func TestArchive(t *testing.T) {
	sizes, err := ptx.Sizes()
	require.NoError(t, err)
	require.Len(t, sizes, len(ptx.All()))
	total := 0
	for _, n := range sizes {
		total += n
	}
	require.Less(t, total, 32<<20, "bytes of PTX")
	for _, n := range tier.Some(7, ptx.All()) {
		text, err := ptx.Text(n)
		require.NoError(t, err)
		require.Contains(t, string(text), ".target "+n.Target())
		require.Contains(t, sizes, len(text))
	}
	require.Less(t, ptx.Embedded(), 3<<20, "bytes in a program")
}

func TestNames(t *testing.T) {
	require.Equal(t, []ptx.Name{{Type: "bfloat16", Op: "sum", SM: 80}, {Type: "bfloat16", Op: "sum", SM: 70}},
		ptx.Variants("bfloat16", "sum"))
	require.Equal(t, []ptx.Name{{Type: "int8", Op: "bitxor", SM: 70}}, ptx.Variants("int8", "bitxor"))
	require.Empty(t, ptx.Variants("float32", "bitxor"))
	require.Empty(t, ptx.Variants("float128", "sum"))
	require.Empty(t, ptx.Variants("float32", "avg"))
	require.Equal(t, []ptx.Name{{Type: "float32", Op: "sum", SM: 70, Source: "direct", Ranks: 4},
		{Type: "float32", Op: "sum", SM: 70, Source: "direct"}},
		ptx.VariantsOf("direct", "float32", "sum", 4))
	require.Equal(t, []ptx.Name{{Type: "float32", Op: "max", SM: 70, Source: "direct"}},
		ptx.VariantsOf("direct", "float32", "max", 4))
	require.Equal(t, []ptx.Name{{SM: 70, Source: "direct", Ranks: 2}, ptx.Direct}, ptx.VariantsOf("direct", "", "", 2))
	require.Equal(t, []ptx.Name{ptx.Direct}, ptx.VariantsOf("direct", "", "", 3))
	require.Equal(t, "direct_copy_4_ranks_sm_70", ptx.Name{SM: 70, Source: "direct", Ranks: 4}.String())
	n := ptx.Name{Type: "bfloat16", Op: "sum", SM: 80}
	require.Equal(t, "bfloat16_sum_sm_80", n.String())
	require.Equal(t, "combine_bfloat16_sum", n.Combine())
	require.Equal(t, "plain_bfloat16_sum", n.Plain())
	n.Source = "run"
	require.Equal(t, "run_bfloat16_sum_sm_80", n.String())
	require.Equal(t, "run_bfloat16_sum", n.Run())
	require.Equal(t, "run_copy_sm_70", ptx.Copy.String())
	_, err := ptx.Text(ptx.Name{Type: "float32", Op: "sum", SM: 100})
	require.EqualError(t, err, "ptx: no module float32_sum_sm_100: run go generate ./kernels/ptx if it is new")
}
