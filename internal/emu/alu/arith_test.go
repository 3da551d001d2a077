package alu

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// instr is an instruction by its name.
func instr(name string) *ptx.Instr {
	words := strings.Split(name, ".")
	in := &ptx.Instr{Op: words[0], Mods: words[1:]}
	for _, w := range in.Mods {
		for t := ptx.B8; t <= ptx.Pred; t++ {
			if t.String() == w {
				in.Types = append(in.Types, t)
			}
		}
	}
	return in
}

// eval executes an instruction in one lane.
func eval(t require.TestingT, name string, src ...uint64) uint64 {
	op, err := Lookup(instr(name))
	require.NoError(t, err)
	require.Len(t, src, op.Srcs)
	dst := make([]*Lanes, op.Dsts)
	for i := range dst {
		dst[i] = new(Lanes)
	}
	lanes := make([]*Lanes, len(src))
	for i, v := range src {
		lanes[i] = &Lanes{5: v}
	}
	op.Run(1<<5, dst, lanes)
	return dst[0][5]
}

var names = map[rounding]string{nearest: "rn", zero: "rz", down: "rm", up: "rp"}

// between rounds x, given the nearest number of a type and a function that gives neighbours.
func between(x *big.Float, r rounding, next func(v, to float64) float64, near float64) float64 {
	lo, hi := near, near
	switch new(big.Float).SetPrec(5000).SetFloat64(near).Cmp(x) {
	case 0:
		return near
	case 1:
		lo = next(near, math.Inf(-1))
	default:
		hi = next(near, math.Inf(1))
	}
	switch {
	case r == down, r == zero && x.Sign() > 0:
		return lo
	case r == up, r == zero:
		return hi
	}
	return near
}

func next32(v, to float64) float64 { return float64(math.Nextafter32(float32(v), float32(to))) }

// anyFloat32 draws numbers whose sums, products and quotients are often halfway or denormal.
func anyFloat32(t *rapid.T, label string) float32 {
	bits := rapid.Uint32().Draw(t, label)
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0: // near one, few digits
		bits = bits&0x807f0000 | 0x3f800000
	case 1: // near one
		bits = bits&0x81ffffff | 0x3e000000
	case 2: // products are denormal
		bits = bits&0x807fffff | 0x1f800000
	}
	if bits>>23&0xff == 0xff {
		bits ^= 1 << 23
	}
	return math.Float32frombits(bits)
}

func TestFloat32AgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyFloat32(t, "a"), anyFloat32(t, "b"), anyFloat32(t, "c")
		num := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
		bits := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
		zero := new(big.Float).SetPrec(1000)
		results := map[string]*big.Float{
			"add": zero.Copy(zero).Add(num(a), num(b)), "mul": num(a).Mul(num(a), num(b)),
			"fma": num(c).Add(num(a).Mul(num(a), num(b)), num(c)), "sqrt": num(0),
		}
		if b != 0 {
			results["div"] = num(a).Quo(num(a), num(b))
		}
		results["sqrt"].Sqrt(num(max(a, -a)))
		for op, x := range results {
			if x.Sign() == 0 {
				continue // the sign of zero is in TestZeros
			}
			guess, _ := x.Float32()
			for r, name := range names {
				want := float32(between(x, r, next32, float64(guess)))
				src := map[string][]uint64{"fma": {bits(a), bits(b), bits(c)}, "sqrt": {bits(max(a, -a))}}[op]
				if src == nil {
					src = []uint64{bits(a), bits(b)}
				}
				got := eval(t, op+"."+name+".f32", src...)
				require.Equal(t, bits(want), got, "%s.%s of %x", op, name, src)
			}
		}
	})
}

func TestFloat64AgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) float64 {
			bits := rapid.Uint64().Draw(t, label)
			switch rapid.IntRange(0, 2).Draw(t, label+" kind") {
			case 0:
				bits = bits&(1<<63|1<<54-1) | 0x3fc<<52
			case 1:
				bits = bits&(1<<63|1<<52-1) | 0x1ff<<52
			}
			if bits>>52&0x7ff == 0x7ff {
				bits ^= 1 << 52
			}
			return math.Float64frombits(bits)
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		num := func(v float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(v) }
		bits := math.Float64bits
		results := map[string]*big.Float{
			"add": num(0).Add(num(a), num(b)), "mul": num(0).Mul(num(a), num(b)),
			"fma": num(0).Add(num(0).Mul(num(a), num(b)), num(c)), "div": num(0).Quo(num(a), num(b+1)),
		}
		for op, x := range results {
			if x.Sign() == 0 {
				continue
			}
			guess, _ := x.Float64()
			src := []uint64{bits(a), bits(b)}
			switch op {
			case "fma":
				src = append(src, bits(c))
			case "div":
				src[1] = bits(b + 1)
			}
			for r, name := range names {
				want := between(x, r, math.Nextafter, guess)
				require.Equal(t, bits(want), eval(t, op+"."+name+".f64", src...), "%s.%s of %x", op, name, src)
			}
		}
	})
}

func TestZeros(t *testing.T) {
	const minus32, minus64 = 1 << 31, 1 << 63
	for _, c := range []struct {
		name string
		src  []uint64
		want uint64
	}{
		{"add.rn.f32", []uint64{0x3f800000, 0xbf800000}, 0},
		{"add.rm.f32", []uint64{0x3f800000, 0xbf800000}, minus32},
		{"add.rm.f32", []uint64{0, minus32}, minus32},
		{"add.rm.f32", []uint64{0, 0}, 0},
		{"add.rp.f32", []uint64{minus32, minus32}, minus32},
		{"sub.rm.f64", []uint64{0x3ff << 52, 0x3ff << 52}, minus64},
		{"fma.rm.f64", []uint64{0x3ff << 52, 0x3ff << 52, 0xbff << 52}, minus64},
		{"fma.rm.f32", []uint64{0x3f800000, 0x3f800000, 0xbf800000}, minus32},
		{"fma.rn.f32", []uint64{0x3f800000, minus32, 0}, 0},
		{"fma.rm.f32", []uint64{0x3f800000, minus32, 0}, minus32},
		{"mul.rn.f32", []uint64{0x3f800000, minus32}, minus32},
		{"mul.rp.f64", []uint64{1, minus64 | 1}, minus64},
		{"mul.rm.f64", []uint64{1, minus64 | 1}, minus64 | 1},
	} {
		require.Equal(t, c.want, eval(t, c.name, c.src...), "%s of %x", c.name, c.src)
	}
}
