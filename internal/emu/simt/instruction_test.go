package simt_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Names that are no instruction are errors.
func TestLookupRefuses(t *testing.T) {
	for _, name := range []string{
		"", "bra", "ld.global.u32", "add", "add.b32", "add.pred", "add.e4m3x2", "add.u8", "mul.u32", "mul.wide.u64",
		"mad.wide.f32", "and.u32",
		"not.f32", "shl.u32", "min.b32", "min.relu.u32", "abs.u32", "neg.b16", "rcp.rn.f16", "setp.f32", "setp.lt",
		"set.lt.u32", "cvt.u32",
		"cvt.b32.u32", "cvt.rn.f16x2.u32", "mov", "slct.u32.u32", "lop3.b32", "testp.odd.f32", "copysign.f16", "dp4a.u32",
		"add.cc.u16", "clz.u32",
		"fma.rn.u32", "sqrt.rn.tf32", "bfe.b32", "prmt.b64", "szext.u64", "bmsk.b32", "selp",
		"ex2.f32", "ex2.rn.f32", "div.approx.f64", "sin.approx.u32", "mul24.u64", "mad24.sat.u32",
	} {
		_, err := alu.Lookup(instr(name))
		assert.Error(t, err, name)
	}
}

// TestMasksAndAliases: every Func leaves the lanes alone that are not in the
// mask, and may write to any of its sources.
func TestMasksAndAliases(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, family := range familyNames() {
		for _, f := range forms(family) {
			if f.atomic() {
				continue
			}
			op, err := alu.Lookup(f.instr())
			require.NoError(t, err, f.id())
			rows := cases(&f)
			src, dst, want := lanes(op.Srcs), lanes(op.Dsts), lanes(op.Dsts)
			for k := range f.src {
				for i := range 32 {
					src[k][i] = rows[r.IntN(len(rows))][k]
				}
			}
			op.Run(1<<32-1, want, src)
			mask := r.Uint32()
			before := lanes(op.Dsts)
			for k := range dst {
				dst[k] = src[(k+r.IntN(2))%len(src)]
				if slices.Contains(dst[:k], dst[k]) {
					dst[k] = new(alu.Lanes)
				}
				*before[k] = *dst[k]
			}
			op.Run(mask, dst, src)
			for k := range dst {
				for i := range 32 {
					w := before[k][i]
					if mask>>i&1 == 1 {
						w = want[k][i]
					}
					require.Equal(t, w, dst[k][i], "%s: destination %d, lane %d, mask %#x", f.id(), k, i, mask)
				}
			}
		}
	}
}

func lanes(n int) (list []*alu.Lanes) {
	for range n {
		list = append(list, new(alu.Lanes))
	}
	return list
}

func TestExtend(t *testing.T) {
	d := alu.Lanes{0: 0x80, 1: 0x7f, 2: 0x80}
	alu.Extend(1<<0|1<<1, &d, 8, 32)
	require.Equal(t, alu.Lanes{0: 0xffffff80, 1: 0x7f, 2: 0x80}, d)
}

// BenchmarkLanes counts lanes a second.
func BenchmarkLanes(b *testing.B) {
	for _, line := range []string{
		"add.u32 T = T T", "mad.lo.s32 T = T T T", "and.b32 T = T T", "shl.b32 T = T u32", "setp.lt.s32 pred = T T",
		"selp.b32 T = T T pred",
		"add.rn.f32 T = T T", "fma.rn.f32 T = T T T", "add.f16x2 T = T T", "fma.rn.bf16x2 T = T T T", "add.f64 T = T T",
		"cvt.f32.f16 D = T", "cvt.rn.f16.f32 D = T", "cvt.rn.bf16.f32 D = T", "cvt.rn.satfinite.e4m3x2.f32 D = T T",
		"max.f32 T = T T", "cvt.u64.u32 D = T",
	} {
		f := parseForm(line)
		b.Run(f.name, func(b *testing.B) {
			op := must.Get(alu.Lookup(f.instr()))
			dst, src := lanes(op.Dsts), lanes(op.Srcs)
			r := rand.New(rand.NewPCG(1, 2))
			for k, o := range f.src {
				for i := range 32 { // ordinary numbers
					v := uint64(r.IntN(100))
					if o.typ.Float() && o.typ.Bits() == 32 {
						v = uint64(0x3c003c00 + r.IntN(1<<16))
					} else if o.typ.Float() {
						v <<= o.typ.Bits() - 8
					}
					src[k][i] = v
				}
			}
			for b.Loop() {
				op.Run(1<<32-1, dst, src)
			}
			b.ReportMetric(float64(b.N)*32/b.Elapsed().Seconds()/1e6, "Mlanes/s")
		})
	}
}
