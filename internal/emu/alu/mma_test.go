package alu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A place is where element i of a thread's fragment lies, as the manual has it for each shape.
type place func(group, thread, i int) (row, column int)

// TestMMA multiplies random matrices whose fragments are laid out by the manual's formulas, in each shape and type.
func TestMMA(t *testing.T) {
	accumulators := func(group, thread, i int) (int, int) { return group + 8*(i/2), thread*2 + i%2 }
	for _, c := range []struct {
		shape, types   string
		m, k           int
		a, b           place
		countA, countB int // elements of a thread
	}{
		{"m16n8k16", "f32.f16.f16.f32", 16, 16,
			func(g, th, i int) (int, int) { return g + 8*(i/2%2), th*2 + i%2 + 8*(i/4) },
			func(g, th, i int) (int, int) { return th*2 + i%2 + 8*(i/2), g }, 8, 4},
		{"m16n8k8", "f32.f16.f16.f32", 16, 8,
			func(g, th, i int) (int, int) { return g + 8*(i/2), th*2 + i%2 },
			func(g, th, i int) (int, int) { return th*2 + i, g }, 4, 2},
		{"m16n8k16", "f16.f16.f16.f16", 16, 16,
			func(g, th, i int) (int, int) { return g + 8*(i/2%2), th*2 + i%2 + 8*(i/4) },
			func(g, th, i int) (int, int) { return th*2 + i%2 + 8*(i/2), g }, 8, 4},
		{"m16n8k16", "f32.bf16.bf16.f32", 16, 16,
			func(g, th, i int) (int, int) { return g + 8*(i/2%2), th*2 + i%2 + 8*(i/4) },
			func(g, th, i int) (int, int) { return th*2 + i%2 + 8*(i/2), g }, 8, 4},
		{"m16n8k8", "f32.tf32.tf32.f32", 16, 8,
			func(g, th, i int) (int, int) { return g + 8*(i%2), th + 4*(i/2) },
			func(g, th, i int) (int, int) { return th + 4*i, g }, 4, 2},
		{"m16n8k4", "f32.tf32.tf32.f32", 16, 4,
			func(g, th, i int) (int, int) { return g + 8*i, th },
			func(g, th, _ int) (int, int) { return th, g }, 2, 1},
		{"m16n8k32", "s32.s8.u8.s32", 16, 32,
			func(g, th, i int) (int, int) { return g + 8*(i/4%2), th*4 + i%4 + 16*(i/8) },
			func(g, th, i int) (int, int) { return th*4 + i%4 + 16*(i/4), g }, 16, 8},
		{"m16n8k16", "s32.u8.s8.s32", 16, 16,
			func(g, th, i int) (int, int) { return g + 8*(i/4), th*4 + i%4 },
			func(g, th, i int) (int, int) { return th*4 + i, g }, 8, 4},
		{"m8n8k4", "f64.f64.f64.f64", 8, 4,
			func(g, th, _ int) (int, int) { return g, th },
			func(g, th, _ int) (int, int) { return th, g }, 1, 1},
	} {
		t.Run(c.shape+"."+c.types, func(t *testing.T) {
			x := parseMMA(t, c.shape, c.types)
			random := func() int { return rand.IntN(15) - 7 }
			var a, sum [16][32]int
			for i := range a {
				for j := range a[i] {
					a[i][j], sum[i][j] = random(), random()
				}
			}
			var bt [32][8]int
			for k := range bt {
				for n := range bt[k] {
					bt[k][n] = random()
				}
			}
			if x.a == ptx.U8 {
				for i := range a {
					for j := range a[i] {
						a[i][j] += 7
					}
				}
			}
			if x.b == ptx.U8 {
				for k := range bt {
					for n := range bt[k] {
						bt[k][n] += 7
					}
				}
			}
			_, na, nb, nc := x.Registers()
			src := make([]*Lanes, na+nb+nc)
			for i := range src {
				src[i] = new(Lanes)
			}
			dst := make([]*Lanes, nc)
			for i := range dst {
				dst[i] = new(Lanes)
			}
			for lane := range 32 {
				g, th := lane/4, lane%4
				for i := range c.countA {
					row, k := c.a(g, th, i)
					put(src[i/packed(x.a)], lane, x.a, i%packed(x.a), a[row][k])
				}
				for i := range c.countB {
					k, n := c.b(g, th, i)
					put(src[na+i/packed(x.b)], lane, x.b, i%packed(x.b), bt[k][n])
				}
				for i := range c.m / 8 * 2 {
					row, col := accumulators(g, th, i)
					per := 1
					if x.acc == ptx.F16 {
						per = 2
					}
					put(src[na+nb+i/per], lane, x.acc, i%per, sum[row][col])
				}
			}
			x.Run(1<<32-1, dst, src)
			for lane := range 32 {
				g, th := lane/4, lane%4
				for i := range c.m / 8 * 2 {
					row, col := accumulators(g, th, i)
					want := sum[row][col]
					for k := range c.k {
						want += a[row][k] * bt[k][col]
					}
					per := 1
					if x.acc == ptx.F16 {
						per = 2
					}
					var one Lanes
					put(&one, lane, x.acc, i%per, want)
					mask := uint64(1)<<(elementBits(x.acc)%64) - 1
					if elementBits(x.acc) == 64 {
						mask = ^uint64(0)
					}
					shift := elementBits(x.acc) * (i % per)
					require.Equal(t, one[lane]>>shift&mask, dst[i/per][lane]>>shift&mask, "row %d, column %d", row, col)
				}
			}
		})
	}
}

// parseMMA makes the MMA of an instruction's text.
func parseMMA(t *testing.T, shape, types string) *MMA {
	t.Helper()
	text := ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n"
	text += "mma.sync.aligned." + shape + ".row.col." + types + " %r0, %r0, %r0, %r0;\nret;\n}\n"
	m, err := ptx.Parse("k.ptx", []byte(text))
	require.NoError(t, err)
	for _, f := range m.Funcs {
		for i := range f.Body {
			if in := &f.Body[i]; in.Op == "mma" {
				x, err := NewMMA(in)
				require.NoError(t, err)
				return x
			}
		}
	}
	t.Fatal("no mma")
	return nil
}

// put puts a small whole number into a part of a register.
func put(r *Lanes, lane int, t ptx.Type, part, v int) {
	var b uint64
	switch t {
	case ptx.F16:
		b = narrowF16(float32(v))
	case ptx.BF16:
		b = narrowBF16(float32(v))
	case ptx.TF32, ptx.F32:
		b = uint64(math.Float32bits(float32(v)))
	case ptx.F64:
		b = math.Float64bits(float64(v))
	case ptx.S8, ptx.U8:
		b = uint64(uint8(v))
	default:
		b = uint64(uint32(v))
	}
	r[lane] |= b << (elementBits(t) * part)
}
