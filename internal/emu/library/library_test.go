package library_test

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/library"
)

// documented is the greatest error of each function of float64, in ulps.
//
// Source: CUDA C++ Programming Guide 13.0, table of the double-precision functions.
var documented = map[string]float64{
	"acos": 2, "acosh": 3, "asin": 2, "asinh": 3, "atan": 2, "atanh": 2, "cbrt": 1, "rcbrt": 1, "rsqrt": 1, "sin": 2,
	"cos": 2, "tan": 2, "sinpi": 2, "cospi": 2, "sinh": 2, "cosh": 1, "tanh": 1, "exp": 1, "exp2": 1,
	"exp10": 1, "expm1": 1,
	"log": 1, "log2": 1, "log10": 1, "log1p": 1, "erf": 2, "erfc": 5, "erfinv": 5, "erfcinv": 6, "erfcx": 4, "normcdf": 5,
	"normcdfinv": 8, "lgamma": 4, "tgamma": 10, "cyl_bessel_i0": 6, "cyl_bessel_i1": 6, "atan2": 2, "pow": 2, "hypot": 2,
	"rhypot": 1, "norm3d": 2, "rnorm4d": 1,
}

// absolute is the greatest error of functions for which CUDA gives no ulps.
const absolute = 5e-12

func call(t *testing.T, name string, args ...uint64) uint64 {
	f, ok := library.Find(name)
	require.True(t, ok, name)
	return f.Run(args, nil, nil)
}

// TestErrors: functions of float64 are within CUDA's ulps of the exact results, those of float32 within one.
func TestErrors(t *testing.T) {
	file, err := os.Open("testdata/exact.txt")
	require.NoError(t, err)
	defer file.Close()
	worst, lines := map[string]float64{}, bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "#" {
			continue
		}
		name, args, small := words[0], []uint64{}, []uint64{}
		for _, w := range words[1:] {
			v, err := strconv.ParseUint(w, 16, 64)
			require.NoError(t, err)
			args = append(args, v)
			small = append(small, uint64(math.Float32bits(float32(math.Float64frombits(v)))))
		}
		want := math.Float64frombits(args[len(args)-1])
		got := math.Float64frombits(call(t, "__nv_"+name, args[:len(args)-1]...))
		e := math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
		limit, ulps := documented[name]
		if !ulps {
			e, limit = math.Abs(got-want), absolute
		}
		if math.IsInf(want, 0) || want == 0 {
			e = 0
			assert.Equal(t, want, got, "%s", lines.Text())
		}
		worst[name] = math.Max(worst[name], e)
		assert.LessOrEqual(t, e, limit, "%s gives %v, want %v", lines.Text(), got, want)

		rounded := small[:len(small)-1] // the float32s that the arguments are nearest to
		for i, v := range rounded {
			args[i] = math.Float64bits(float64(math.Float32frombits(uint32(v))))
		}
		exact := float32(math.Float64frombits(call(t, "__nv_"+name, args[:len(args)-1]...)))
		single := math.Float32frombits(uint32(call(t, "__nv_"+name+"f", rounded...)))
		if exact == exact || single == single {
			assert.Equal(t, exact, single, "%sf of %x", name, rounded)
		}
	}
	t.Log(worst)
	for name := range documented {
		assert.Contains(t, worst, name)
	}
}

// TestSpecialValues: those of C's standard.
func TestSpecialValues(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		name string
		want float64
		args []float64
	}{
		{"exp", 0, []float64{-inf}}, {"exp", inf, []float64{inf}}, {"exp", inf, []float64{710}}, {"exp10", 1000,
			[]float64{3}},
		{"log", -inf, []float64{0}}, {"log2", nan, []float64{-1}}, {"log10", 3, []float64{1000}}, {"log2", 10,
			[]float64{1024}},
		{"sin", zero, []float64{zero}}, {"cos", nan, []float64{inf}}, {"tan", nan, []float64{-inf}},
		{"sinpi", 0, []float64{3}}, {"cospi", -1, []float64{5}}, {"acos", 0, []float64{1}}, {"acos", nan, []float64{1.5}},
		{"pow", 1, []float64{nan, 0}}, {"pow", 1, []float64{1, nan}}, {"pow", -8, []float64{-2, 3}}, {"pow",
			nan, []float64{-2, .5}},
		{"pow", inf, []float64{0, -1}}, {"pow", 0, []float64{.5, inf}}, {"pow", 0, []float64{2, -2000}}, {"pow",
			9, []float64{3, 2}},
		{"hypot", inf, []float64{nan, inf}}, {"rhypot", 0, []float64{inf, 1}}, {"fmax", 3, []float64{nan, 3}},
		{"fmin", -1, []float64{-1, nan}}, {"fdim", 0, []float64{1, 2}}, {"fmod", 1, []float64{7, 3}},
		{"remainder", -1, []float64{5, 3}},
		{"erfcinv", inf, []float64{0}}, {"erfcx", 0, []float64{inf}}, {"normcdf", 0, []float64{-100}},
		{"normcdf", 1, []float64{100}},
		{"tgamma", 24, []float64{5}}, {"lgamma", inf, []float64{0}}, {"round", 3, []float64{2.5}}, {"rint", 2,
			[]float64{2.5}},
		{"tanh", 1, []float64{inf}}, {"sinh", -inf, []float64{-inf}}, {"asin", zero, []float64{zero}}, {"logb",
			3, []float64{9}},
	} {
		var args []uint64
		for _, a := range c.args {
			args = append(args, math.Float64bits(a))
		}
		got := math.Float64frombits(call(t, "__nv_"+c.name, args...))
		if c.want == c.want || got == got {
			assert.Equal(t, c.want, got, "%s%v", c.name, c.args)
			assert.Equal(t, math.Signbit(c.want), math.Signbit(got), "%s%v", c.name, c.args)
		}
	}
}

// TestMemory: functions that take pointers write and read there.
func TestMemory(t *testing.T) {
	bits := math.Float64bits
	for _, c := range []struct {
		name   string
		args   []uint64
		want   uint64
		memory map[uint64]uint64
	}{
		{"sincospi", []uint64{bits(.5), 8, 16}, 0, map[uint64]uint64{8: bits(1), 16: bits(0)}},
		{"frexp", []uint64{bits(12), 8}, bits(.75), map[uint64]uint64{8: 4}},
		{"modf", []uint64{bits(-2.5), 8}, bits(-.5), map[uint64]uint64{8: bits(-2)}},
		{"remquo", []uint64{bits(29), bits(3), 8}, bits(-1), map[uint64]uint64{8: 2}},
		{"norm", []uint64{2, 100}, bits(5), map[uint64]uint64{}},
	} {
		f, ok := library.Find("__nv_" + c.name)
		require.True(t, ok)
		memory := map[uint64]uint64{}
		got := f.Run(c.args, func(addr uint64, _ int) uint64 { return map[uint64]uint64{100: bits(3), 108: bits(4)}[addr] },
			func(addr uint64, _ int, v uint64) { memory[addr] = v })
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.memory, memory, c.name)
	}
}

// TestConversions: names of roundings become those of instructions.
func TestConversions(t *testing.T) {
	f := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	assert.Equal(t, uint64(3), call(t, "__nv_float2int_ru", f(2.1)))
	assert.Equal(t, uint64(0xfffffffe), call(t, "__nv_float2int_rz", f(-2.9)))
	assert.Equal(t, f(0x1.fffffep-1), call(t, "__nv_fadd_rd", f(1), f(-0x1p-30)))
	assert.Equal(t, uint64(32), call(t, "__nv_ffs", 1<<31))
	assert.Equal(t, uint64(0), call(t, "__nv_ffs", 0))
	assert.Equal(t, uint64(0xffffffff), call(t, "__nv_hadd", 0xfffffffe, 0)) // -1
	assert.Equal(t, f(.25), call(t, "__nv_fast_fdividef", f(1), f(4)))
	assert.Equal(t, f(8), call(t, "__nv_fast_powf", f(2), f(3)))
	assert.Equal(t, f(1), call(t, "__nv_fast_expf", f(0)))
	assert.Equal(t, f(7), call(t, "__nv_fmaf", f(2), f(3), f(1)))
}
