package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/kernels"
	"github.com/stretchr/testify/require"
)

// The data must come out the same in whatever order it is combined, and as
// package kernels combines it: that is what makes exact comparison right.
func TestResultHoldsInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	const count = 97
	for _, typ := range kernels.Types() {
		for _, op := range append(allOps, ringo.PreMulSum(0.1), ringo.PreMulSum(-3)) {
			if !possible(op, typ) {
				continue
			}
			for _, n := range []int{1, 2, 3, 4, 7, 8, 17, 41, 130} {
				name := fmt.Sprintf("%v %v n=%d", typ, op, n)
				d := newData(typ, op, false, n, count, 7)
				want := make([]byte, count*typ.Size())
				d.result(want)
				r, err := kernels.NewReducer(typ, op, n)
				require.NoError(t, err, name)
				parts := make([][]byte, n)
				for k := range parts {
					raw := make([]byte, len(want))
					d.contribution(raw, k)
					parts[k] = make([]byte, len(want))
					r.Load(parts[k], raw)
				}
				for range 2 { // combine random pairs until one is left
					left := append([][]byte(nil), parts...)
					rng.Shuffle(n, func(i, j int) { left[i], left[j] = left[j], left[i] })
					for len(left) > 1 {
						i := rng.Intn(len(left) - 1)
						sum := make([]byte, len(want))
						r.Combine(sum, left[i], left[i+1])
						left = append(append(left[:i:i], sum), left[i+2:]...)
					}
					got := append([]byte(nil), left[0]...)
					r.Finish(got)
					require.True(t, bytes.Equal(want, got), name)
				}
			}
		}
	}
}

// A result that came out the same without some rank would prove little.
func TestResultDependsOnEveryRank(t *testing.T) {
	const n, count = 5, 1000
	for _, typ := range kernels.Types() {
		for _, op := range allOps {
			if !possible(op, typ) {
				continue
			}
			full := newData(typ, op, false, n, count, 3)
			want := make([]byte, count*typ.Size())
			full.result(want)
			without := *full
			without.ranks = n - 1 // the last one is missing
			got := make([]byte, len(want))
			without.result(got)
			whole := pattern{want, typ.Size()}
			require.Greater(t, whole.wrong(got, 0), int64(count/50), "%v %v", typ, op)
		}
	}
}

func TestElementRounding(t *testing.T) {
	// 16- and 8-bit formats against all their values: every finite bit pattern
	// must survive, and numbers between two must go to the nearer one.
	for _, typ := range []ringo.DataType{ringo.Float16, ringo.BFloat16, ringo.Float8E4M3, ringo.Float8E5M2} {
		el := elements[typ]
		bias := 1<<(el.exp-1) - 1
		value := func(b uint64) float64 {
			exp, man := int(b>>el.man), float64(b&(1<<el.man-1))
			if exp == 0 {
				return math.Ldexp(man, 1-bias-el.man)
			}
			return math.Ldexp(man+float64(int(1)<<el.man), exp-bias-el.man)
		}
		largest := uint64(1<<el.exp-1)<<el.man - 1 // below infinity
		for b := uint64(0); b < largest; b++ {
			x, next := value(b), value(b+1)
			require.Equal(t, b, el.bits(x), "%v %#x", typ, b)
			require.Equal(t, x, el.round(x))
			middle := (x + next) / 2
			even := b + b&1
			require.Equal(t, even, el.bits(middle), "%v between %#x and the next", typ, b)
			require.Equal(t, value(even), el.round(middle))
			require.Equal(t, b, el.bits(math.Nextafter(middle, 0)))
			require.Equal(t, b+1, el.bits(math.Nextafter(middle, 1e300)))
			require.Equal(t, b|1<<(8*el.size-1), el.bits(math.Copysign(x, -1)))
		}
	}
	for _, x := range []float64{0, 1, -1.5, 3.14159, 1e-40, 1e38, 1e-45, math.Pi * 1e-39} {
		require.Equal(t, uint64(math.Float32bits(float32(x))), elements[ringo.Float32].bits(x), "%g", x)
		require.Equal(t, float64(float32(x)), elements[ringo.Float32].round(x), "%g", x)
	}
}

func TestMovedDataIsAllBits(t *testing.T) {
	d := newData(ringo.Float32, ringo.RedOp{}, true, 2, 1000, 1)
	a, b := make([]byte, 4000), make([]byte, 4000)
	d.contribution(a, 0)
	d.contribution(b, 1)
	require.Greater(t, pattern{a, 4}.wrong(b, 0), int64(990), "ranks have different data")
	bits := [8]int{}
	for _, x := range a {
		for i := range bits {
			bits[i] += int(x >> i & 1)
		}
	}
	for i, k := range bits {
		require.InDelta(t, 2000, k, 250, "bit %d", i)
	}
}

func BenchmarkResult(b *testing.B) {
	for _, op := range []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Avg} {
		d := newData(ringo.Float32, op, false, 4, period, 1)
		mem := make([]byte, period*4)
		b.Run(op.String(), func(b *testing.B) {
			b.SetBytes(int64(len(mem)))
			for b.Loop() {
				d.result(mem)
			}
		})
	}
}
