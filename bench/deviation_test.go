package bench

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

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
