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

// tileKernel computes D = A·B + 2C by wmma, of matrices of 512 words each at [%rd2]. B goes through shared memory.
func tileKernel(shape string, regs [4]int, t [4]ptx.Type, layout [4]string, stride int) string {
	list := func(matrix string, n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("%", matrix, i))
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	types, width := ".f32.tf32.tf32.f32", 32
	switch {
	case t[1] == ptx.F64:
		types, width = ".f64.f64.f64.f64", 64
	case t[1] == ptx.F16:
		types = fmt.Sprintf(".%v.%v", t[0], t[3])
	case t[1] != ptx.TF32:
		types = fmt.Sprintf(".%v.%v.%v.%v", t[0], t[1], t[2], t[3])
	}
	var s strings.Builder
	fmt.Fprintf(&s, `.reg .b%d %%a<8>, %%b<8>, %%c<8>, %%d<8>;
mov.b32 %%r2, 0;
COPY:
mad.lo.u32 %%r3, %%r2, 32, %%r0;
mad.wide.u32 %%rd4, %%r3, 4, %%rd2;
ld.global.u32 %%r4, [%%rd4+2048];
mov.u32 %%r5, tile;
mad.lo.u32 %%r5, %%r3, 4, %%r5;
st.shared.u32 [%%r5], %%r4;
add.u32 %%r2, %%r2, 1;
setp.lt.u32 %%p1, %%r2, 16;
@%%p1 bra COPY;
bar.sync 0;
mov.u64 %%rd5, tile;
cvta.shared.u64 %%rd6, %%rd5;
wmma.load.a.sync.aligned.%s.%s.global.%v %s, [%%rd2];
`, width, layout[1], shape, t[1], list("a", regs[1]))
	if layout[2] == "row" {
		fmt.Fprintf(&s, "wmma.load.b.sync.aligned.%s.%s.%v %s, [%%rd6];\n", layout[2], shape, t[2], list("b", regs[2]))
	} else {
		fmt.Fprintf(&s, "wmma.load.b.sync.aligned.%s.%s.shared.%v %s, [tile];\n", layout[2], shape, t[2], list("b", regs[2]))
	}
	fmt.Fprintf(&s, "wmma.load.c.sync.aligned.%s.%s.%v %s, [%%rd2+4096];\n", layout[3], shape, t[3], list("c", regs[3]))
	for i := range regs[3] {
		op := map[ptx.Type]string{ptx.F32: "add.f32", ptx.F16: "add.f16x2", ptx.S32: "add.s32",
			ptx.F64: "add.f64"}[t[3]]
		fmt.Fprintf(&s, "%s %%c%d, %%c%d, %%c%d;\n", op, i, i, i)
	}
	fmt.Fprintf(&s, "wmma.mma.sync.aligned.%s.%s.%s%s %s, %s, %s, %s;\n", layout[1], layout[2], shape, types,
		list("d", regs[0]), list("a", regs[1]), list("b", regs[2]), list("c", regs[3]))
	fmt.Fprintf(&s, "mov.u32 %%r6, %d;\nwmma.store.d.sync.aligned.%s.%s.global.%v [%%rd0], %s, %%r6;\n", stride, layout[0],
		shape, t[0], list("d", regs[0]))
	return s.String()
}

// The registers of D, A, B and C, and the kernel's types.
var tiles = []struct {
	shape, types string
	regs         [4]int
}{
	{"m16n16k16", "f32.f16.f16.f32", [4]int{8, 8, 8, 8}}, {"m32n8k16", "f16.f16.f16.f16", [4]int{4, 8, 8, 4}},
	{"m8n32k16", "f32.f16.f16.f16", [4]int{8, 8, 8, 4}}, {"m16n16k16", "f16.f16.f16.f32", [4]int{4, 8, 8, 8}},
	{"m16n16k16", "f32.bf16.bf16.f32", [4]int{8, 4, 4, 8}}, {"m32n8k16", "f32.bf16.bf16.f32", [4]int{8, 8, 2, 8}},
	{"m8n32k16", "f32.bf16.bf16.f32", [4]int{8, 2, 8, 8}}, {"m16n16k16", "s32.s8.s8.s32", [4]int{8, 2, 2, 8}},
	{"m32n8k16", "s32.u8.u8.s32", [4]int{8, 4, 1, 8}}, {"m8n32k16", "s32.s8.s8.s32", [4]int{8, 1, 4, 8}},
	{"m16n16k8", "f32.tf32.tf32.f32", [4]int{8, 4, 4, 8}}, {"m8n8k4", "f64.f64.f64.f64", [4]int{2, 1, 1, 2}},
}

func TestTile(t *testing.T) {
	for i, c := range tiles {
		for bits := range 4 {
			side := func(bit int) string { return []string{"row", "col"}[bits>>bit&1] }
			layout := [4]string{side(0), side(1), side(0), side(1)}
			t.Run(fmt.Sprint(c.shape, c.types, layout), func(t *testing.T) {
				s, _ := ptx.ShapeOf([]string{c.shape})
				var types [4]ptx.Type
				for k, name := range strings.Split(c.types, ".") {
					types[k] = typeOf(t, name)
				}
				r := rand.New(rand.NewPCG(uint64(i), uint64(bits)))
				low := -3
				if types[1] == ptx.U8 {
					low = 0
				}
				a, b := newTable(r, s.M, s.K, low, 3), newTable(r, s.K, s.N, low, 3)
				cc := newTable(r, s.M, s.N, -9, 9)
				d := table{s.M, s.N, make([]int, s.M*s.N)}
				for k := range d.v {
					d.v[k] = 2 * cc.v[k]
				}
				d = product(a, b, d)
				var in []uint32
				stride := 2 * s.N
				for k, m := range []table{a, b, cc} {
					if layout[1+k] == "col" {
						m = m.turned()
					}
					w := m.words(types[1+k])
					in = append(append(in, w...), make([]uint32, 512-len(w))...)
				}
				if layout[0] == "col" {
					d, stride = d.turned(), 2*s.M
				}
				spread := table{d.rows, stride, make([]int, d.rows*stride)}
				for k, v := range d.v {
					spread.v[k/d.cols*stride+k%d.cols] = v
				}
				want := spread.words(types[0])
				text := asynchronous(tileKernel(c.shape, c.regs, types, layout, stride))
				got := run{file: text, kernel: "k", threads: 32,
					words: [][]uint32{make([]uint32, len(want)), in, {0}}}.do(t, options{seed: uint64(bits)})
				require.Equal(t, want, got[0])
			})
		}
	}
}

func TestTileFaults(t *testing.T) {
	c := tiles[0]
	text := asynchronous(tileKernel(c.shape, c.regs, [4]ptx.Type{ptx.F32, ptx.F16, ptx.F16, ptx.F32},
		[4]string{"row", "row", "col", "row"}, 16))
	for _, p := range []planted{
		{"nothing before the load", []edit{{"bar.sync 0;", ""}}, kinds(raced), "load of 4 bytes"},
		{"nothing behind the store", []edit{{"[%rd0], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, %r6;",
			"[%rd0], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, %r6; ld.global.u32 %r2, [%rd1];"}}, kinds(raced), "store of 4 bytes"},
		{"misaligned", []edit{{"[%rd2+4096];", "[%rd2+4112];"}}, kinds(weakmem.Misaligned), "a multiple of 32"},
		{"a stride too small", []edit{{"mov.u32 %r6, 16;", "mov.u32 %r6, 8;"}}, kinds(bad),
			"a stride of 8 elements, where it has to be a multiple of 4 and 16 at least"},
		{"an odd stride", []edit{{"mov.u32 %r6, 16;", "mov.u32 %r6, 17;"}}, kinds(bad), "a stride of 17 elements"},
		{"strides that differ", []edit{{"mov.u32 %r6, 16;", "mad.lo.u32 %r6, %r0, 16, 16;"}}, kinds(bad),
			"give different strides"},
		{"addresses that differ", []edit{{"[%rd2+4096];", "[%rd4];"}}, kinds(bad), "give different addresses"},
		{"beyond", []edit{{"[%rd2+4096];", "[%rd2+6144];"}}, kinds(weakmem.OutOfBounds), "load of 4 bytes"},
	} {
		t.Run(p.name, func(t *testing.T) {
			text := p.edits[0].of(t, text)
			for seed := range uint64(6) {
				m := boot(t, text, options{seed: seed})
				g := m.grid("k", 1, 32, m.words(make([]uint32, 256)...), m.words(make([]uint32, 3*512)...), m.words(0))
				m.start(g)
				require.NotNil(t, g.Fault())
				require.Equal(t, p.kinds[0], g.Fault().Kind, "%v", g.Fault())
				require.Contains(t, g.Fault().Error(), p.detail)
			}
		})
	}
}
