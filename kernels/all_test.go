package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCombineAll compares CombineAll with function pairs, for operands that start anywhere, and in place.
func TestCombineAll(t *testing.T) {
	const ranks = 5
	reductions(t, func(t *testing.T, ty DataType, op RedOp) {
		r, err := NewReducer(ty, op, ranks)
		require.NoError(t, err)
		rnd := rand.New(rand.NewPCG(7, uint64(ty)))
		for k := 1; k <= 8; k++ {
			n := []int{0, 1, 3, 16, 511, 513, 1100, 4099}[rnd.IntN(8)]
			contributions := rnd.Uint64()
			finish := rnd.IntN(2) == 0
			srcs := make([][]byte, k)
			for i := range srcs {
				srcs[i] = apart(make([]byte, n*ty.Size()), rnd.IntN(9))
				fill(rnd, ty, srcs[i])
			}
			want := pairs(t, r, srcs, contributions, finish)
			got := apart(make([]byte, n*ty.Size()), rnd.IntN(9))
			r.CombineAll(got, srcs, contributions, finish)
			name := fmt.Sprintf("%d sources of %d elements, contributions %b, finish %v", k, n, contributions, finish)
			require.Equal(t, "", difference(ty, srcs[0], srcs[k-1], want, got), name)
			over := srcs[rnd.IntN(k)]
			r.CombineAll(over, srcs, contributions, finish)
			require.Equal(t, "", difference(ty, want, want, want, over), "in place: "+name)
		}
	})
}

// pairs computes the result of CombineAll from two operands at a time: by the Reducer, but sums and products of narrow
// floats in float32, since narrow arithmetic would round at each step.
func pairs(t *testing.T, r *Reducer, srcs [][]byte, contributions uint64, finish bool) []byte {
	v := make([]byte, len(srcs[0]))
	if types[r.t].family != floating || r.size > 2 || r.kind == KindMax || r.kind == KindMin {
		for i, src := range srcs {
			switch contributed := contributions>>i&1 == 1; {
			case i == 0 && contributed:
				r.Load(v, src)
			case i == 0:
				copy(v, src)
			case contributed:
				r.CombineIn(v, v, src)
			default:
				r.Combine(v, v, src)
			}
		}
		if finish {
			r.Finish(v)
		}
		return v
	}
	if len(srcs) == 1 && (r.LoadIsCopy() || contributions&1 == 0) {
		copy(v, srcs[0])
		return v
	}
	for at := 0; at < len(v); at += r.size {
		var sum float32
		for i, src := range srcs {
			x := float32(number(r.t, apart(src[at:at+r.size], 0)))
			if !r.LoadIsCopy() && contributions>>i&1 == 1 {
				x *= float32(r.scale)
			}
			switch {
			case i == 0:
				sum = x
			case r.kind == KindProd:
				sum *= x
			default:
				sum += x
			}
		}
		copy(v[at:], rounded(r.t, float64(sum)))
	}
	return v
}

// TestRoundsOnce has sums and products that a rounding in between would spoil.
func TestRoundsOnce(t *testing.T) {
	tests := []struct {
		t          DataType
		op         RedOp
		in         []float32
		pairs, all float32
	}{
		{BFloat16, Sum, []float32{256, 1, 1}, 256, 258},
		{Float16, Sum, []float32{60000, 60000, -60000}, float32(math.Inf(1)), 60000},
		{Float8E4M3, Sum, []float32{448, 448, -448}, 0, 448},
		{Float8E5M2, Prod, []float32{57344, 2, 0.5}, 28672, 57344},
		{Float8E4M3, PreMulSum(1.0 / 3), []float32{1, 1, 1}, 1, 1},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v/%v", test.t, test.op), func(t *testing.T) {
			r, err := NewReducer(test.t, test.op, 3)
			require.NoError(t, err)
			var srcs [][]byte
			for _, x := range test.in {
				srcs = append(srcs, rounded(test.t, float64(x)))
			}
			out := make([]byte, test.t.Size())
			r.CombineAll(out, srcs, 7, true)
			require.Equal(t, float64(test.all), number(test.t, out))
			r.Load(out, srcs[0])
			r.CombineIn(out, out, srcs[1])
			r.CombineIn(out, out, srcs[2])
			require.Equal(t, float64(test.pairs), number(test.t, out))
		})
	}
}

func TestCombineAllRefuses(t *testing.T) {
	r, err := NewReducer(Int32, Sum, 2)
	require.NoError(t, err)
	dst := make([]byte, 8)
	require.PanicsWithValue(t, "kernels: combine 0 sources, want 1 to 64", func() { r.CombineAll(dst, nil, 0, false) })
	require.Panics(t, func() { r.CombineAll(dst, make([][]byte, 65), 1, false) })
	require.Panics(t, func() { r.CombineAll(dst, [][]byte{dst, dst[:4]}, 0, false) })
}

// TestCombineAllMany: any number of sources may be combined if all or none are contributions.
func TestCombineAllMany(t *testing.T) {
	const ranks = 150
	r, err := NewReducer(BFloat16, Avg, ranks)
	require.NoError(t, err)
	for _, contributions := range []uint64{0, ^uint64(0)} {
		srcs := make([][]byte, ranks)
		sum, scale := float32(0), float32(1)
		if contributions != 0 {
			scale = float32(1.0 / ranks)
		}
		for i := range srcs {
			srcs[i] = rounded(BFloat16, float64(i)+0.5)
			sum += float32(number(BFloat16, srcs[i])) * scale
		}
		out := make([]byte, 2)
		r.CombineAll(out, srcs, contributions, true)
		require.Equal(t, rounded(BFloat16, float64(sum)), out)
	}
}

func TestCombineAllAllocates(t *testing.T) {
	dst := make([]byte, 4096)
	srcs := [][]byte{make([]byte, 4096), make([]byte, 4096), dst}
	for _, ty := range []DataType{Float32, BFloat16, Int8} {
		r, err := NewReducer(ty, Avg, 3)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() { r.CombineAll(dst, srcs, 7, true) }))
	}
}
