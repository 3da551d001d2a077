package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

// A format describes a float type as IEEE 754 and OCP's paper on 8-bit floats do. Its
// round is a slow conversion that searches all numbers of the type.
type format struct {
	name               string
	exponent, mantissa int  // bits
	infinities, clamp  bool // clamp: too large a number becomes the largest
	nan                uint16
	widen              func(uint16) float32
	narrow             func(float32) uint16
}

var formats = []format{
	{"float16", 5, 10, true, false, 0x7fff, func(b uint16) float32 { return F16(b).Float32() },
		func(f float32) uint16 { return uint16(NewF16(f)) }},
	{"bfloat16", 8, 7, true, false, 0x7fff, func(b uint16) float32 { return BF16(b).Float32() },
		func(f float32) uint16 { return uint16(NewBF16(f)) }},
	{"float8e4m3", 4, 3, false, true, 0x7f, func(b uint16) float32 { return F8E4M3(b).Float32() },
		func(f float32) uint16 { return uint16(NewF8E4M3(f)) }},
	{"float8e5m2", 5, 2, true, true, 0x7f, func(b uint16) float32 { return F8E5M2(b).Float32() },
		func(f float32) uint16 { return uint16(NewF8E5M2(f)) }},
}

func (f format) sign() uint16 { return 1 << (f.exponent + f.mantissa) }

// value is the number of a bit pattern without a sign.
func (f format) value(bits uint16) float64 {
	e, m := int(bits>>f.mantissa), float64(bits&(1<<f.mantissa-1))
	top, bias := 1<<f.exponent-1, 1<<(f.exponent-1)-1
	switch {
	case f.infinities && e == top && m == 0:
		return math.Inf(1)
	case f.infinities && e == top, !f.infinities && bits == f.sign()-1:
		return math.NaN()
	case e == 0:
		return math.Ldexp(m, 1-bias-f.mantissa)
	}
	return math.Ldexp(m+float64(int(1)<<f.mantissa), e-bias-f.mantissa)
}

// numbers are 0 and all finite positive numbers; the bits of a number are its index.
func (f format) numbers() []float64 {
	var all []float64
	for bits := uint16(0); ; bits++ {
		v := f.value(bits)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return all
		}
		all = append(all, v)
	}
}

// round finds the nearest number, the even one of two that are equally near.
func (f format) round(v float32, all []float64) uint16 {
	last := len(all) - 1
	if v != v {
		return f.nan
	}
	sign := uint16(0)
	if math.Signbit(float64(v)) {
		sign = f.sign()
	}
	x := math.Abs(float64(v))
	i := sort.SearchFloat64s(all, x)
	switch {
	case i > last && (f.clamp || !math.IsInf(x, 1) && x < all[last]+(all[last]-all[last-1])/2):
		return sign | uint16(last)
	case i > last:
		return sign | uint16(last+1)
	case x == all[i]:
		return sign | uint16(i)
	}
	below, above := x-all[i-1], all[i]-x
	if below < above || below == above && i%2 == 1 {
		i--
	}
	return sign | uint16(i)
}

func TestWiden(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for bits := range uint32(f.sign()) {
				want := f.value(uint16(bits))
				got, negative := f.widen(uint16(bits)), f.widen(uint16(bits)|f.sign())
				if want != want {
					require.True(t, got != got && negative != negative, "%#x", bits)
					continue
				}
				require.Equal(t, want, float64(got), "%#x", bits)
				require.Equal(t, math.Float64bits(-want), math.Float64bits(float64(negative)), "-%#x", bits)
				if math.IsInf(want, 0) && f.clamp {
					continue
				}
				require.Equal(t, uint16(bits), f.narrow(got), "there and back")
			}
		})
	}
}

// TestNarrow converts each number of the type, the value halfway to the next number, and the float32s next to both.
// Conversion is monotone, so all other values are right too.
func TestNarrow(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			all := f.numbers()
			last := all[len(all)-1]
			beyond := append(all, last+(last-all[len(all)-2]))
			try := func(v float32) {
				for _, v := range []float32{v, -v} {
					if want, got := f.round(v, all), f.narrow(v); want != got {
						require.Failf(t, "rounding", "%g (%#x) is %#x, want %#x", v, math.Float32bits(v), got, want)
					}
				}
			}
			for i := range beyond[:len(beyond)-1] {
				half := float32((beyond[i] + beyond[i+1]) / 2)
				for _, v := range []float32{float32(all[i]), half} {
					try(v)
					try(math.Nextafter32(v, 0))
					try(math.Nextafter32(v, math.MaxFloat32))
				}
			}
			for _, bits := range []uint32{0, 1, 1<<23 - 1, 1 << 23, 0x7f7fffff, infF32, infF32 + 1, 0x7fc00000, nanF32,
				0xffc00001} {
				try(math.Float32frombits(bits))
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 200_000 {
				try(math.Float32frombits(r.Uint32()))
			}
		})
	}
}

func ExampleNewBF16() {
	h := NewBF16(1 + 1.0/256) // halfway between 1 and the next
	fmt.Println(h.Float32())
	fmt.Println(NewF8E4M3(1000).Float32())
	// Output:
	// 1
	// 448
}
