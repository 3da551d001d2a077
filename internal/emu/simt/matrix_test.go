package simt_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// halfProduct is a product of 16 × 16 and 16 × 8 halves by one warp, whose fragments go through shared memory. The
// input is A, row by row, from word 0 on and B from word 128 on, and the tile holds the same.
const halfProduct = `
mad.wide.u32 %rd4, %r0, 16, %rd2;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4];
mov.u32 %r2, tile;
mad.lo.u32 %r3, %r0, 16, %r2;
st.shared.v4.u32 [%r3], {%r10, %r11, %r12, %r13};
setp.gt.u32 %p1, %r0, 15;
@%p1 bra STORED;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4+512];
st.shared.v4.u32 [%r3+512], {%r10, %r11, %r12, %r13};
STORED:
bar.warp.sync 0xffffffff;
and.b32 %r4, %r0, 15;       // row of A
shr.u32 %r5, %r0, 4;        // half of it
mad.lo.u32 %r6, %r4, 32, %r2;
mad.lo.u32 %r6, %r5, 16, %r6;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r6];
LOADB
mov.b32 %r16, 0;
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r17, %r18}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r16, %r16};
bar.warp.sync 0xffffffff;
STORED
bar.warp.sync 0xffffffff;
ld.shared.u32 %r20, [%r1];
st.global.u32 [%rd1], %r20;
ld.shared.u32 %r20, [%r1+128];
st.global.u32 [%rd1+128], %r20;
`

// The parts of halfProduct that load B, held column by column or row by row, and that store D in either way.
const (
	loadColumns = `and.b32 %r4, %r0, 7;
shr.u32 %r5, %r0, 3;
and.b32 %r5, %r5, 1;
mad.lo.u32 %r6, %r4, 32, %r2;
mad.lo.u32 %r6, %r5, 16, %r6;
ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%r14, %r15}, [%r6+512];`
	loadRows = `cvt.u64.u32 %rd5, %r2;
cvta.shared.u64 %rd5, %rd5;
and.b32 %r4, %r0, 7;
mad.wide.u32 %rd5, %r4, 16, %rd5;
ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r14}, [%rd5+512];
ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r15}, [%rd5+640];`
	storeRows = `and.b32 %r4, %r0, 15;
mad.lo.u32 %r6, %r4, 16, %r2;
stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r6], {%r17, %r18};`
	storeColumns = `and.b32 %r4, %r0, 7;
shr.u32 %r5, %r0, 3;
and.b32 %r5, %r5, 1;
mad.lo.u32 %r6, %r4, 32, %r2;
mad.lo.u32 %r6, %r5, 16, %r6;
stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r6], {%r17, %r18};`
	moveColumns = `movmatrix.sync.aligned.m8n8.trans.b16 %r17, %r17;
movmatrix.sync.aligned.m8n8.trans.b16 %r18, %r18;
and.b32 %r4, %r0, 7;
mad.lo.u32 %r6, %r4, 32, %r2;
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r17};
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6+16], {%r18};`
)

func TestMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := newTable(r, 16, 16, -3, 3), newTable(r, 16, 8, -3, 3)
	d := product(a, b, newTable(r, 16, 8, 0, 0))
	for _, c := range []struct {
		name, load, store string
		b, d              table
	}{
		{"columns, rows", loadColumns, storeRows, b.turned(), d},
		{"rows, columns", loadRows, storeColumns, b, d.turned()},
		{"columns, moved", loadColumns, moveColumns, b.turned(), d.turned()},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := halfKernel(c.load, c.store)
			in := append(a.words(ptx.F16), c.b.words(ptx.F16)...)
			row := "mad.lo.u32 %r6, %r4, 32, %r2;\n"
			faults := []planted{
				{"nothing before the loads", []edit{{"STORED:\nbar.warp.sync 0xffffffff;", "STORED:"}}, kinds(raced, unset),
					"load of 16 bytes"},
				{"not all before the loads", []edit{{"STORED:\nbar.warp.sync 0xffffffff;",
					"STORED: setp.lt.u32 %p1, %r0, 7; @%p1 bra ONE; bar.warp.sync 0xffffff80; bra TWO; ONE: bar.warp.sync 0x7f; TWO:"}},
					kinds(raced, unset), "load of 16 bytes"},
				{"nothing between loads and stores", []edit{{"{%r16, %r16};\nbar.warp.sync 0xffffffff;", "{%r16, %r16};"}},
					kinds(raced), "store of 16 bytes"},
				{"nothing behind the stores", []edit{{"bar.warp.sync 0xffffffff;\nld.shared", "ld.shared"}}, kinds(raced),
					"store of 16 bytes"},
				{"misaligned", []edit{{row, row + "add.u32 %r6, %r6, 8;\n"}}, kinds(weakmem.Misaligned), "16"},
				{"beyond", []edit{{row, row + "add.u32 %r6, %r6, 4096;\n"}}, kinds(weakmem.OutOfBounds), "load of 16 bytes"},
				{"unset", []edit{{row, row + "add.u32 %r6, %r6, 1024;\n"}}, kinds(unset), "load of 16 bytes"},
			}
			if c.name == "rows, columns" {
				faults = append(faults, planted{"elsewhere", []edit{{"cvta.shared.u64 %rd5, %rd5;", "add.u64 %rd5, %rd2, 0;"}},
					kinds(bad), "the address is not in shared memory"})
			}
			find(t, text, run{threads: 32, words: [][]uint32{make([]uint32, 64), in, {0}}}, c.d.words(ptx.F16), faults)
		})
	}
}

func halfKernel(load, store string) string {
	text := strings.Replace(halfProduct, "LOADB", load, 1)
	return strings.Replace(text, "\nSTORED\n", "\n"+store+"\n", 1)
}

// Of x1 and x2 only the first threads have addresses; others may hold anything.
func TestMatrixAddresses(t *testing.T) {
	for _, c := range []struct{ num, regs, lanes string }{{"x1", "{%r2}", "8"}, {"x2", "{%r2, %r3}", "16"}} {
		got := result(t, options{}, 32, `.shared .align 16 .b8 s[512];
mov.u32 %r4, s;
mad.lo.u32 %r4, %r0, 16, %r4;
st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};
bar.warp.sync -1;
setp.lt.u32 %p1, %r0, `+c.lanes+`;
@!%p1 mov.b32 %r4, 12345;
mov.b32 %r3, 0;
ldmatrix.sync.aligned.m8n8.`+c.num+`.shared.b16 `+c.regs+`, [%r4];
mad.lo.u32 %r2, %r3, 1000, %r2;
st.global.u32 [%rd1], %r2;`)
		for lane := range uint32(32) {
			want := lane / 4
			if c.num == "x2" {
				want += 1000 * (lane/4 + 8)
			}
			require.Equal(t, want, got[lane])
		}
	}
}
