package alu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Each element of each matrix lies in one place, and no place has two.
func TestCells(t *testing.T) {
	for _, s := range []ptx.Shape{{M: 8, N: 8, K: 4}, {M: 8, N: 8, K: 16}, {M: 16, N: 8, K: 4}, {M: 16, N: 8, K: 8},
		{M: 16, N: 8, K: 16}, {M: 16, N: 8, K: 32}, {M: 16, N: 16, K: 16}, {M: 32, N: 8, K: 16}, {M: 8, N: 32, K: 16}} {
		for _, typ := range []ptx.Type{ptx.S8, ptx.F16, ptx.TF32, ptx.F64} {
			if s.K < 4*32/min(32, typ.Bits()) {
				continue
			}
			for matrix, size := range map[byte][2]int{'A': {s.M, s.K}, 'B': {s.K, s.N}, 'C': {s.M, s.N}} {
				elements, places := map[[2]int]bool{}, map[[3]int]bool{}
				for _, c := range Cells(s, matrix, typ) {
					require.True(t, c.Row >= 0 && c.Row < size[0] && c.Col >= 0 && c.Col < size[1], "%v %c %v", s, matrix, c)
					elements[[2]int{c.Row, c.Col}] = true
					places[[3]int{c.Lane, c.Reg, c.Shift}] = true
				}
				require.Len(t, elements, size[0]*size[1], "%v %c", s, matrix)
				require.Len(t, places, size[0]*size[1], "%v %c", s, matrix)
			}
		}
	}
}

// TestProductRounds: one element of a product, with numbers whose sums have to be rounded once.
func TestProductRounds(t *testing.T) {
	const one, inf, nan = 0x3f800000, 0x7f800000, nanF32
	bits := func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
	for _, c := range []struct {
		p    Product
		a, b []uint64 // of row 0 and column 0
		c    uint64
		want uint64
	}{
		{Product{D: ptx.F32, A: ptx.F16, B: ptx.F16, C: ptx.F32}, []uint64{0x3c00, 0x3c00}, []uint64{0x3c00, 0x4000},
			bits(0.5), bits(3.5)},
		{Product{D: ptx.F32, A: ptx.F16, B: ptx.F16, C: ptx.F32}, []uint64{0x3c00, 0x0001}, []uint64{0x3c00, 0x0001}, 0,
			one}, // 1 + 2^-48
		{Product{D: ptx.F32, A: ptx.F16, B: ptx.F16, C: ptx.F32}, []uint64{0x3c00, 0x0001}, []uint64{0xbc00, 0x0001},
			one, bits(0x1p-48)}, // nothing is lost between
		{Product{D: ptx.F32, A: ptx.BF16, B: ptx.BF16, C: ptx.F32}, []uint64{0x7f7f, 0x7f7f}, []uint64{0x7f7f, 0xff7f},
			one, 0}, // products larger than float32s, beside which 1 is lost
		{Product{D: ptx.F32, A: ptx.BF16, B: ptx.BF16, C: ptx.F32}, []uint64{0x7f7f}, []uint64{0x7f7f}, one, inf},
		{Product{D: ptx.F32, A: ptx.BF16, B: ptx.BF16, C: ptx.F32}, []uint64{0x7f80}, []uint64{0}, one, nan},
		{Product{D: ptx.F32, A: ptx.TF32, B: ptx.TF32, C: ptx.F32}, []uint64{one | 0x1fff}, []uint64{one}, 0, one},
		{Product{D: ptx.F16, A: ptx.F16, B: ptx.F16, C: ptx.F16}, []uint64{0x3c00}, []uint64{0x3c00}, 0x6800, 0x6800},
		{Product{D: ptx.F16, A: ptx.F16, B: ptx.F16, C: ptx.F16}, []uint64{0x7bff}, []uint64{0x7bff}, 0, 0x7c00},
		{Product{D: ptx.F16, A: ptx.F16, B: ptx.F16, C: ptx.F16}, []uint64{0x7e00}, []uint64{0x3c00}, 0, nanF16},
		{Product{D: ptx.F32, A: ptx.E4M3, B: ptx.E5M2, C: ptx.F32}, []uint64{0x7e, 0x7e}, []uint64{0x3c, 0xbc},
			bits(7), bits(7)},
		{Product{D: ptx.F32, A: ptx.E4M3, B: ptx.E5M2, C: ptx.F32}, []uint64{0x7e}, []uint64{0x7b}, 0, bits(448 * 57344)},
		{Product{D: ptx.F32, A: ptx.E5M2, B: ptx.E5M2, C: ptx.F32}, []uint64{0x7c}, []uint64{0x3c}, 0, inf},
		{Product{D: ptx.S32, A: ptx.S8, B: ptx.U8, C: ptx.S32}, []uint64{0x80}, []uint64{0xff}, 1, 0xffff8081},
		{Product{D: ptx.S32, A: ptx.U8, B: ptx.U8, C: ptx.S32}, []uint64{2}, []uint64{1}, 0x7fffffff, 0x80000001},
		{Product{D: ptx.S32, A: ptx.U8, B: ptx.U8, C: ptx.S32, Satfinite: true}, []uint64{2}, []uint64{1}, 0x7fffffff,
			0x7fffffff},
		{Product{D: ptx.S32, A: ptx.S8, B: ptx.U8, C: ptx.S32, Satfinite: true}, []uint64{0xff}, []uint64{1}, 0x80000000,
			0x80000000},
		{Product{D: ptx.F64, A: ptx.F64, B: ptx.F64, C: ptx.F64}, []uint64{0x3ff0000000000001}, []uint64{0x3ff0000000000001},
			0xbff0000000000002, 0x3970000000000000}, // by fma
	} {
		c.p.Shape = ptx.Shape{M: 16, N: 8, K: 16}
		regs := func() (list []*Lanes) {
			for range 8 {
				list = append(list, &Lanes{})
			}
			return list
		}
		set := func(regs []*Lanes, matrix byte, typ ptx.Type, row, col int, v uint64) {
			for _, e := range Cells(c.p.Shape, matrix, typ) {
				if e.Row == row && e.Col == col {
					regs[e.Reg][e.Lane] |= v << e.Shift
				}
			}
		}
		d, x, y, z := regs(), regs(), regs(), regs()
		for i := range c.a {
			set(x, 'A', c.p.A, 0, i, c.a[i])
			set(y, 'B', c.p.B, i, 0, c.b[i])
		}
		set(z, 'C', c.p.C, 0, 0, c.c)
		c.p.Run()(d, x, y, z)
		got := d[0][0]
		if c.p.D == ptx.F16 {
			got &= 0xffff
		}
		require.Equal(t, c.want, got, "%v", c)
	}
}

func BenchmarkProduct(b *testing.B) {
	p := Product{Shape: ptx.Shape{M: 16, N: 8, K: 16}, D: ptx.F32, A: ptx.F16, B: ptx.F16, C: ptx.F32}
	var regs [4]Lanes
	r := rand.New(rand.NewPCG(1, 1))
	for i := range regs {
		for lane := range regs[i] {
			regs[i][lane] = uint64(r.Uint32() & 0x3bff3bff)
		}
	}
	v := []*Lanes{&regs[0], &regs[1], &regs[2], &regs[3]}
	var d [4]Lanes
	run := p.Run()
	for b.Loop() {
		run([]*Lanes{&d[0], &d[1], &d[2], &d[3]}, v, v[:2], v)
	}
}
