package simt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// productKernel loads the fragments of A, row by row, of B, column by column, and of C, row by row, as the manual lays
// them out, and stores that of D.
func productKernel(name string, s ptx.Shape, in *ptx.Instr) string {
	var t strings.Builder
	version := "7.8"
	if in.Types[1] == ptx.E4M3 || in.Types[1] == ptx.E5M2 {
		version = "8.7"
	}
	t.WriteString(".version " + version + `
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{
.reg .b32 %a<16>, %b<16>, %c<16>, %d<16>, %r<4>;
.reg .f64 %fa<16>, %fb<16>, %fc<16>, %fd<16>;
.reg .b64 %rd<9>;
mov.u32 %r0, %laneid;
shr.u32 %r1, %r0, 2;   // the group
and.b32 %r2, %r0, 3;   // the thread in it
`)
	reg, bits, bytes := "%", 32, 4 // of a register
	if in.Types[0] == ptx.F64 {
		reg, bits, bytes = "%f", 64, 8
	}
	// base gives the thread's address in a matrix: of a row of so many bytes its group's, there so many bytes on.
	base := func(matrix string, row, each int) {
		fmt.Fprintf(&t, "ld.param.u64 %%rd0, [%s];\nmad.wide.u32 %%rd0, %%r1, %d, %%rd0;\nmad.wide.u32 %%rd0, %%r2, %d, "+
			"%%rd0;\n", matrix, row, each)
	}
	rowA, rowC := s.K*in.Types[1].Size(), s.N*in.Types[3].Size()
	list := func(matrix string, n int) string {
		var regs []string
		for i := range n {
			regs = append(regs, fmt.Sprint(reg, matrix, i))
		}
		return "{" + strings.Join(regs, ", ") + "}"
	}
	base("a", rowA, bytes)
	na, nb := rowA*s.M/32/bytes, rowA*s.N/32/bytes
	for i := range na {
		row, col := 8*(i%(s.M/8)), i/(s.M/8)
		fmt.Fprintf(&t, "ld.global.b%d %sa%d, [%%rd0+%d];\n", bits, reg, i, row*rowA+4*bytes*col)
	}
	base("b", rowA, bytes)
	for i := range nb {
		fmt.Fprintf(&t, "ld.global.b%d %sb%d, [%%rd0+%d];\n", bits, reg, i, 4*bytes*i)
	}
	// c0 and c1 are neighbours, then come those of the row 8 further on.
	pair, nc := 2*in.Types[3].Size(), rowC*s.M/32/bytes
	each := pair / bytes
	offset := func(i int) int { return i/each*8*rowC + i%each*bytes }
	base("c", rowC, pair)
	for i := range nc {
		fmt.Fprintf(&t, "ld.global.b%d %sc%d, [%%rd0+%d];\n", bits, reg, i, offset(i))
	}
	fmt.Fprintf(&t, "%s %s, %s, %s, %s;\n", name, list("d", nc), list("a", na), list("b", nb), list("c", nc))
	base("d", rowC, pair)
	for i := range nc {
		fmt.Fprintf(&t, "st.global.b%d [%%rd0+%d], %sd%d;\n", bits, offset(i), reg, i)
	}
	t.WriteString("ret;\n}\n")
	return t.String()
}

// limits are the least and the greatest number of a type that products here have.
var limits = map[ptx.Type][2]int{ptx.S8: {-128, 127}, ptx.U8: {0, 255}, ptx.S32: {-1 << 20, 1 << 20},
	ptx.F32: {-1000, 1000}, ptx.F64: {-1000, 1000}}

func TestProduct(t *testing.T) {
	for _, form := range []string{
		"m16n8k8 f32.f16.f16.f32", "m16n8k16 f32.f16.f16.f32", "m16n8k8 f16.f16.f16.f16", "m16n8k16 f16.f16.f16.f16",
		"m16n8k8 f32.bf16.bf16.f32", "m16n8k16 f32.bf16.bf16.f32", "m16n8k4 f32.tf32.tf32.f32", "m16n8k8 f32.tf32.tf32.f32",
		"m16n8k16 f32.e4m3.e4m3.f32", "m16n8k32 f32.e4m3.e5m2.f32", "m16n8k32 f16.e5m2.e4m3.f16",
		"m8n8k16 s32.s8.s8.s32", "m16n8k16 s32.s8.u8.s32", "m16n8k32 s32.u8.s8.s32", "m16n8k32 s32.u8.u8.s32",
		"m16n8k32 satfinite.s32.s8.s8.s32",
		"m8n8k4 f64.f64.f64.f64", "m16n8k4 f64.f64.f64.f64", "m16n8k8 f64.f64.f64.f64", "m16n8k16 f64.f64.f64.f64",
	} {
		t.Run(form, func(t *testing.T) {
			shape, types, _ := strings.Cut(form, " ")
			name := "mma.sync.aligned." + shape + ".row.col." + types
			s, ok := ptx.ShapeOf([]string{shape})
			require.True(t, ok)
			in := &ptx.Instr{}
			for _, n := range strings.Split(strings.TrimPrefix(types, "satfinite."), ".") {
				in.Types = append(in.Types, typeOf(t, n))
			}
			text := productKernel(name, s, in)
			r := rand.New(rand.NewPCG(1, uint64(len(form))))
			random := func(rows, cols int, t ptx.Type) table {
				l, ok := limits[t]
				if !ok {
					l = [2]int{-3, 3}
				}
				return newTable(r, rows, cols, l[0], l[1])
			}
			for seed := range uint64(3) {
				a, b := random(s.M, s.K, in.Types[1]), random(s.K, s.N, in.Types[2])
				c := random(s.M, s.N, in.Types[3])
				d := product(a, b, c).words(in.Types[0])
				got := run{file: text, kernel: "k", threads: 32, words: [][]uint32{a.words(in.Types[1]),
					b.turned().words(in.Types[2]), c.words(in.Types[3]), make([]uint32, len(d))}}.do(t, options{seed: seed})
				require.Equal(t, d, got[3])
			}
		})
	}
}

// typeOf is a type by its name.
func typeOf(t *testing.T, name string) ptx.Type {
	for typ := ptx.B8; typ <= ptx.Pred; typ++ {
		if typ.String() == name {
			return typ
		}
	}
	t.Fatal(name)
	return ptx.NoType
}

const halves = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r1, %r1}, {%r1}, {%r1, %r1};\n"

// All threads of a warp carry out what is aligned, and those that come first wait.
func TestAligned(t *testing.T) {
	emulated(t)
	for seed := range uint64(20) {
		got := result(t, options{seed: seed}, 64, `
and.b32 %r5, %r0, 5;
setp.eq.u32 %p1, %r5, 0;
mov.b32 %r1, 0x3c003c00;
@%p1 bra A;
mov.b32 %r1, 0x40004000;
A:
`+halves+`st.global.u32 [%rd1], %r3;`)
		held := func(lane int) int { return 1 + min(1, lane&5) } // twice
		for lane := range 64 {
			var want [2]int
			for i := range want {
				want[i] = held(lane)
				for k := range 4 {
					want[i] += 2 * held(lane&28+k) * held(8*(lane&3)+4*i+k)
				}
			}
			require.Equal(t, uint32(encode(ptx.F16, want[1])<<16|encode(ptx.F16, want[0])), got[lane], "%d", lane)
		}
	}
	for _, c := range []struct {
		name, body string
		threads    int
		kind       weakmem.FaultKind
		detail     string
	}{
		{"some have ended", "setp.gt.u32 %p1, %r0, 29; @%p1 exit;" + halves, 32, bad, "of this warp only 30 live"},
		{"some end later", "setp.gt.u32 %p1, %r0, 29; @!%p1 bra A; bar.warp.sync 0xc0000000; exit; A:" + halves, 32, bad,
			"of this warp only 30 live"},
		{"some never were", halves, 40, bad, "of this warp only 8 live"},
		{"at different instructions", "setp.gt.u32 %p1, %r0, 29; @%p1 bra A;" + halves + "bra B; A:" + halves + "B:", 32, bad,
			"instead, in mma.sync.aligned.m16n8k8"},
		{"a guard", "setp.gt.u32 %p1, %r0, 29; @%p1 " + halves + "bar.sync 0;", 32, stuck,
			"wait for threads 0x3fffffff of their warp at mma.sync.aligned"},
		{"others at another", "setp.gt.u32 %p1, %r0, 29; @%p1 bra A;" + halves +
			"bra B; A: movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r1; B:", 32, stuck, "at movmatrix.sync.aligned.m8n8.trans.b16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(8) {
				m := boot(t, hand(c.body), options{seed: seed, stall: 10_000})
				g := m.grid("k", 1, c.threads, m.words(sequence(64, 1)...), 5)
				m.start(g)
				require.NotNil(t, g.Fault())
				require.Equal(t, c.kind, g.Fault().Kind, "%v", g.Fault())
				require.Contains(t, g.Fault().Detail, c.detail)
			}
		})
	}
}
