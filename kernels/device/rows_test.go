package device

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// TestRows combines any number of sources that lie one after the other.
func TestRows(t *testing.T) {
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	require.NoError(t, cuda.With(d, ctx, func() error { rows(t, d, ctx); return nil }))
}

func rows(t *testing.T, d cuda.Driver, ctx cuda.Context) {
	const most = 40 * 3000 * 8
	src, err := d.MemAlloc(most)
	require.NoError(t, err)
	dst, err := d.MemAlloc(most)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, d.MemFree(src))
		require.NoError(t, d.MemFree(dst))
	}()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range combiners(t, d, ctx) {
		for _, x := range []struct {
			t             kernels.DataType
			op            kernels.RedOp
			rows, count   int
			contributions uint64
		}{
			{kernels.BFloat16, kernels.Sum, 1, 100, ^uint64(0)},
			{kernels.BFloat16, kernels.Sum, 3, 3000, ^uint64(0)},
			{kernels.BFloat16, kernels.Avg, 9, 2400, ^uint64(0)},
			{kernels.BFloat16, kernels.Avg, 33, 77, ^uint64(0)},
			{kernels.Float16, kernels.PreMulSum(3), 17, 1001, 0},
			{kernels.Float16, kernels.PreMulSum(3), 5, 1001, 2},
			{kernels.Float32, kernels.Prod, 40, 1000, ^uint64(0)},
			{kernels.Float64, kernels.Sum, 12, 1, 0},
			{kernels.Float8E4M3, kernels.Sum, 20, 999, 0},
			{kernels.Int32, kernels.Avg, 11, 500, ^uint64(0)},
		} {
			r := reducer(t, x.t, x.op, x.rows)
			n := x.count * x.t.Size()
			in, want, got := make([]byte, x.rows*n), make([]byte, n), make([]byte, n)
			fill(rng, x.t, in)
			srcs := make([][]byte, x.rows)
			for i := range srcs {
				srcs[i] = in[i*n : (i+1)*n]
			}
			r.CombineAll(want, srcs, x.contributions, true)
			require.NoError(t, d.MemcpyHtoD(src, in))
			k, err := c.Kernel(r)
			require.NoError(t, err)
			a := Args{Dst: mem.Device(0, dst, n), Srcs: []mem.Region{mem.Device(0, src, len(in))}, Rows: x.rows,
				Contributions: x.contributions, Finish: true}
			require.NoError(t, k.Launch(0, &a))
			require.NoError(t, d.MemcpyDtoH(got, dst))
			require.Equal(t, want, got, fmt.Sprintf("%+v", x))
		}
	}
}

func TestRowsRefused(t *testing.T) {
	c, err := New(&fake{capability: 90}, 1)
	require.NoError(t, err)
	k, err := c.Kernel(reducer(t, kernels.Int32, kernels.Sum, 2))
	require.NoError(t, err)
	for _, test := range []struct {
		a    Args
		want string
	}{
		{Args{Rows: -1}, "rows: -1, want 1 to 1048576"},
		{Args{Rows: 2}, "srcs: 0 regions of rows, want 1"},
		{Args{Rows: 3, Srcs: regions(64, 0x2000)}, "srcs[0]: 64 bytes, but 3 rows like dst have 192"},
		{Args{Rows: 9, Srcs: regions(9*64, 0x2000), Contributions: 1}, "contributions: 0x1: want all or none of 9 rows"},
		{Args{Rows: 2, Srcs: regions(2*64, 0xfe0)}, "srcs[0]: it overlaps dst without starting at the same byte"},
	} {
		test.a.Dst = regions(64, 0x1000)[0]
		require.EqualError(t, k.Launch(0, &test.a), "device: int32_sum_sm_70: "+test.want)
	}
}
