package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// The data must come out the same in whatever order it is combined, and as
// package kernels combines it: that is what makes exact comparison right.
func TestResultHoldsInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
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
						i := rng.IntN(len(left) - 1)
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

// Sums of twice the precision are within 2⁻¹⁰⁰ of exact ones.
func TestDouble(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var d double
		exact := new(big.Float).SetPrec(500)
		for range 1 + rng.IntN(20) {
			x, y := rng.Float64()*math.Ldexp(1, rng.IntN(40)), rng.Float64()
			d = d.plusProduct(x, y)
			exact.Add(exact, new(big.Float).SetPrec(500).Mul(big.NewFloat(x), big.NewFloat(y)))
		}
		d = d.over(7)
		exact.Quo(exact, big.NewFloat(7))
		got := new(big.Float).SetPrec(500).Add(big.NewFloat(d.hi), big.NewFloat(d.lo))
		diff, _ := new(big.Float).Quo(new(big.Float).Sub(got, exact), exact).Float64()
		require.Less(t, math.Abs(diff), 0x1p-98)
	}
}

// value is the inverse of bits, for all elements of narrow formats.
func TestElementValue(t *testing.T) {
	for typ, e := range elements {
		if !e.float() || e.size > 2 {
			continue
		}
		b := make([]byte, e.size)
		for v := range uint64(1) << (8 * e.size) {
			e.put(b, v)
			x := e.value(b)
			if math.IsInf(x, 0) {
				continue
			}
			require.Equal(t, v, e.bits(x), "%v %#x is %g", typ, v, x)
			next := x + math.Copysign(e.ulp(x), x)
			require.Equal(t, next, e.round(next), "%v: the number after %g", typ, x)
		}
	}
	require.Equal(t, 448.0, elements[ringo.Float8E4M3].value([]byte{0x7e}))
	require.True(t, math.IsInf(elements[ringo.Float8E4M3].value([]byte{0x7f}), 0))
}

// Errors of one rounding are half a unit at most; errors of several roundings are larger.
func TestDeviation(t *testing.T) {
	tier.Long(t)
	for _, test := range []struct {
		args           []string
		least, most    float64 // the greatest error
		rmsLow, rmsTop float64
	}{
		{[]string{"allreduce", "-d", "bfloat16", "-deterministic"}, 0.45, 0.5, 0.2, 0.35},
		{[]string{"reducescatter", "-d", "float16", "-o", "avg", "-deterministic"}, 0.45, 0.55, 0.2, 0.35},
		{[]string{"reduce", "-d", "float8e4m3", "-r", "2", "-deterministic"}, 0.4, 0.5, 0.2, 0.35},
		{[]string{"allreduce", "-d", "bfloat16", "-algo", "ring"}, 0.6, 2, 0.3, 0.9},
		{[]string{"allreduce", "-d", "float64", "-o", "premulsum(0.3)"}, 0.5, 2.5, 0.2, 0.9},
		{[]string{"allreduce", "-d", "bfloat16", "-device", "emu", "-g", "3", "-unchecked", "-e", "1000"}, 0.45, 0.5,
			0.2, 0.35},
	} {
		args := append([]string{"-error", "-np", "3", "-transport", "inproc", "-b", "1000", "-e", "60K", "-f", "60"},
			test.args[1:]...)
		if test.args[3] == "-device" {
			args = append([]string{"-error", "-b", "1000", "-f", "60"}, test.args[1:]...)
		}
		r, out := measureHere(t, append([]string{test.args[0]}, args...)...)
		require.Zero(t, r.Wrong())
		require.Contains(t, out, "(ulp)")
		e := r.Rows[len(r.Rows)-1].Error
		require.NotNil(t, e)
		require.True(t, e.Max >= test.least && e.Max <= test.most && e.RMS >= test.rmsLow &&
			e.RMS <= test.rmsTop, "%v: %+v", test.args, *e)
	}
}

// Only sums of floats have a Deviation.
func TestDeviates(t *testing.T) {
	r, out := measureHere(t, "allreduce", "allgather", "-error", "-np", "2", "-transport", "inproc", "-b", "64", "-e",
		"64", "-d", "int32,float32", "-o", "sum,max")
	var with int
	for _, row := range r.Rows {
		if row.Error != nil {
			with++
			require.Equal(t, "float32 sum", row.Type+" "+row.Op)
		}
	}
	require.Equal(t, 1, with)
	require.Contains(t, out, "0        -       -")
}

func TestErrorColumns(t *testing.T) {
	rep := example()
	rep.Rows[1].Error, rep.Rows[2].Error = &Deviation{0.5, 0.28867}, &Deviation{1234.5, 3.75}
	var b bytes.Buffer
	rep.print(&b)
	golden(t, "errors.txt", b.Bytes())
}
