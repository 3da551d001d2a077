package alu_test

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// instr is an instruction of a name without operands.
func instr(name string) *ptx.Instr {
	words := strings.Split(name, ".")
	in := &ptx.Instr{Op: words[0], Mods: words[1:], Guard: -1}
	for _, w := range in.Mods {
		for t := ptx.B8; t <= ptx.Pred; t++ {
			if t.String() == w {
				in.Types = append(in.Types, t)
			}
		}
	}
	return in
}

// run computes an instruction for a single thread.
func run(t testing.TB, name string, args ...uint64) uint64 {
	op, err := alu.Lookup(instr(name))
	require.NoError(t, err)
	require.Len(t, args, op.Srcs)
	var d alu.Lanes
	src := make([]*alu.Lanes, len(args))
	for i, a := range args {
		src[i] = &alu.Lanes{a}
	}
	op.Run(1, []*alu.Lanes{&d}, src)
	return d[0]
}

// value is the number of an operand, by the type at the end of the name.
func value(name string, a uint64) float64 {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "f64":
		return math.Float64frombits(a)
	case "f32":
		return float64(math.Float32frombits(uint32(a)))
	case "bf16":
		return float64(math.Float32frombits(uint32(a) << 16))
	}
	x := math.Ldexp(float64(a&0x3ff+0x400), int(a>>10&31)-25)
	switch a >> 10 & 31 {
	case 0:
		x = math.Ldexp(float64(a&0x3ff), -24)
	case 31:
		x = math.Inf(1)
		if a&0x3ff != 0 {
			x = math.NaN()
		}
	}
	return math.Copysign(x, float64(1-2*int(a>>15)))
}

// A bound is the error that the manual allows, in powers of two: an absolute one of inputs whose size is in a range,
// and else a relative one, or none for 0.
type bound struct {
	relative, absolute float64
	from, to           float64
}

// manual are the errors of each operation and type.
//
// Source: PTX ISA 8.8, sections 9.7.3 and 9.7.4. An ulp is a relative error of 2^-23 at most.
var manual = map[string]bound{
	"rcp f32": {relative: -23}, "rcp f64": {relative: -19}, "sqrt f32": {relative: -23}, "rsqrt f32": {relative: -22.9},
	"rsqrt f64": {relative: -19}, "div f32": {relative: -22}, "ex2 f32": {relative: -22.5}, "ex2 f16": {relative: -9.9},
	"ex2 bf16": {relative: -7}, "lg2 f32": {-22, -22, 0.5, 2}, "sin f32": {0, -20.5, 0, 2 * math.Pi},
	"cos f32":  {0, -20.4, 0, 2 * math.Pi}, // an H100 has 2^-20.43
	"tanh f32": {relative: -11}, "tanh f16": {0, -10.987, 0, math.MaxFloat64}, "tanh bf16": {0, -8, 0, math.MaxFloat64},
}

// exact are the functions that instructions approximate.
var exact = map[string]func(x, y float64) float64{
	"rcp": func(x, _ float64) float64 { return 1 / x }, "rsqrt": func(x, _ float64) float64 { return 1 / math.Sqrt(x) },
	"sqrt": func(x, _ float64) float64 { return math.Sqrt(x) }, "div": func(x, y float64) float64 { return x / y },
	"ex2": func(x, _ float64) float64 { return math.Exp2(x) }, "lg2": func(x, _ float64) float64 { return math.Log2(x) },
	"sin": func(x, _ float64) float64 { return math.Sin(x) }, "cos": func(x, _ float64) float64 { return math.Cos(x) },
	"tanh": func(x, _ float64) float64 { return math.Tanh(x) },
}

// allows reports whether a result is within the bound, which says nothing of numbers that are not normal.
func (b *bound) allows(x, want, got, least float64) bool {
	switch size := math.Abs(x); {
	case size < least || math.Abs(want) < least || math.IsInf(want, 0) || math.IsInf(got, 0):
		return true
	case want != want || got != got:
		return want != want && got != got
	case b.absolute != 0 && size > b.from && size < b.to:
		return math.Abs(got-want) <= math.Exp2(b.absolute)
	case b.relative != 0:
		return math.Abs(got-want) <= math.Exp2(b.relative)*math.Abs(want)
	}
	return true
}

// ordinary reports whether bits are of a number that is neither zero nor infinite, nor a NaN.
func ordinary(name string, a uint64) bool {
	x := value(name, a)
	return x != 0 && x-x == 0
}

// TestApproximate: results are within the manual's error of the exact ones, as an H100's are. Zeros, infinities and
// NaNs are an H100's bit for bit, and most other results are.
func TestApproximate(t *testing.T) {
	file, err := os.Open("testdata/approx.txt")
	require.NoError(t, err)
	defer file.Close()
	same, all := map[string]int{}, map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] == "#" {
			continue
		}
		name, args := words[0], []uint64{}
		for _, w := range words[1:] {
			v, err := strconv.ParseUint(w, 16, 64)
			require.NoError(t, err)
			args = append(args, v)
		}
		want := args[len(args)-1]
		args = args[:len(args)-1]
		got := run(t, name, args...)
		all[name]++
		if got == want {
			same[name]++
		}
		in := instr(name)
		b, ok := manual[in.Op+" "+in.Types[0].String()]
		require.True(t, ok, name)
		x, y, least := value(name, args[0]), 1.0, 0x1p-126
		if len(args) > 1 {
			y = value(name, args[1])
			if math.Abs(y) < 0x1p-126 || math.Abs(y) > 0x1p126 { // div.approx promises nothing
				continue
			}
		}
		switch in.Types[0] {
		case ptx.F16:
			least = 0x1p-14
		case ptx.F64:
			least = 0x1p-1022
			if in.Has("ftz") { // the lower word does not count
				x = value(name, args[0]&^(1<<32-1))
			}
		}
		right := exact[in.Op](x, y)
		assert.True(t, b.allows(x, right, value(name, got), least), "%s gives %x", lines.Text(), got)
		assert.True(t, b.allows(x, right, value(name, want), least), "%s: the H100", lines.Text())
		if !ordinary(name, want) || !ordinary(name, got) {
			assert.Equal(t, want, got, "%s gives %x", lines.Text(), got)
		}
	}
	for name, n := range all {
		t.Logf("%s: %d of %d are an H100's", name, same[name], n)
	}
	for _, name := range []string{"rcp.approx.ftz.f32", "ex2.approx.ftz.f32", "rsqrt.approx.f32", "sqrt.approx.f32",
		"div.full.f32"} {
		assert.Greater(t, same[name]*10, all[name]*8, name)
	}
}

// TestIntegers: mul24, mad24 and fns are an H100's bit for bit.
func TestIntegers(t *testing.T) {
	text, err := os.ReadFile("testdata/integers.txt")
	require.NoError(t, err)
	names := []string{"mul24.lo.u32", "mul24.hi.u32", "mul24.lo.s32", "mul24.hi.s32", "mad24.lo.u32", "mad24.hi.u32",
		"mad24.lo.s32", "mad24.hi.s32", "fns.b32"}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		var v []uint64
		for _, w := range strings.Fields(strings.Replace(line, ":", "", 1)) {
			x, err := strconv.ParseUint(w, 16, 64)
			require.NoError(t, err)
			v = append(v, x)
		}
		for i, name := range names {
			args := v[:2+i/4]
			if name == "fns.b32" {
				args = []uint64{v[0], v[1] % 32, uint64(uint32(int32(v[2]%67) - 33))}
			}
			assert.Equal(t, v[3+i], run(t, name, args...), "%s of %x", name, args)
		}
	}
	assert.Equal(t, uint64(0x7fffffff), run(t, "mad24.hi.sat.s32", 0x7fffff, 0x7fffff, 0x7fffffff))
}
