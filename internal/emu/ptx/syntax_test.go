package ptx

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

const header = ".version 7.0\n.target sm_70\n.address_size 64\n"

// in is a kernel with registers of all types, around an instruction.
func in(instruction string) string {
	return header + `.shared .align 16 .b8 tile[64];
.global .b8 space[64];
.visible .entry k(.param .u64 out) {
	.reg .pred %p<4>;
	.reg .b16 %rs<8>;
	.reg .f16 %h<4>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	.reg .f32 %f<8>;
	.reg .f64 %fd<8>;
	.reg .u32 %u<4>;
	.reg .s64 %sd<4>;
` + instruction + "\nL: ret;\n}\n"
}

// accepted are instructions that in can hold.
var accepted = []string{
	"add.s32 %r1, %r2, -3;", "add.u32 %u1, %r1, 0xffffffffU;", "@%p1 add.s32 %r1, %r1, 017;",
	"@!%p1 add.s32 %r1, %r1, 0b101;",
	"add.f32 %f1, %f2, 0f3F800000;", "add.rn.ftz.sat.f32 %f1, %f2, 1.5e-3;", "add.f64 %fd1, %fd1, 0d3FF0000000000000;",
	"add.f32 %f1, %f1, -1.0;",
	"add.f16 %h1, %h2, %rs1;", "fma.rn.f16x2 %r1, %r2, %r3, %r4;", "add.rn.bf16x2 %r1, %r2, %r3;",
	"mov.u32 %r1, %tid.x;", "mov.u64 %rd1, tile;", "mov.u64 %rd1, tile+16;", "mov.b64 %rd1, out;",
	"mov.b64 %rd1, {%r1, %r2};", "mov.b64 {%r1, _}, %rd1;",
	"mov.b32 %r1, {%rs1, %rs2};", "mov.b32 %r1, %f1;", "mov.b32 %r1, 0f3F800000;", "mov.pred %p1, %p2;",
	"mov.u64 %rd1, %clock64;", "mov.u32 %r1, WARP_SZ;",
	"mov.u32 %r1, (1 << 4) | 3 + 2 * ~5 % 7;", "mov.u32 %r1, %laneid;",
	"setp.lt.s32 %p1, %r1, %r2;", "setp.eq.and.u32 %p1|%p2, %r1, 0, !%p3;", "setp.neu.f32 %p1|_, %f1, 0f00000000;",
	"set.eq.u32.f32 %r1, %f1, %f2;",
	"selp.b32 %r1, 1, 0, %p1;", "selp.b32 %r1, 1, 0, !%p1;", "slct.u32.s32 %r1, %r2, %r3, %r4;",
	"ld.global.u32 %r1, [%rd1];", "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+16];", "ld.u8 %rs1, [%rd1 + -1];",
	"ld.global.s8 %rd2, [%rd1];",
	"ld.shared.u32 %r1, [tile+4];", "ld.shared.u32 %r1, [%r2];", "ld.param.u64 %rd1, [out];",
	"ld.volatile.shared.v2.f32 {%f1,_}, [tile];",
	"ld.global.L1::no_allocate.L2::128B.v2.u64 {%rd1,%rd2}, [%rd3];", "ld.global.nc.b8 %rs1, [%rd1];",
	"ld.relaxed.gpu.f64 %fd1, [%rd1];",
	"st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r1};", "st.release.sys.global.u64 [%rd1], 1;", "st.global.b8 [%rd1], 255;",
	"st.global.u8 [%rd1], %r1;",
	"atom.global.add.u32 %r1, [%rd1], 1;", "atom.add.u32 _, [%rd1], 1;",
	"atom.acq_rel.sys.global.cas.b64 %rd1, [%rd2], %rd3, %rd4;", "red.shared.add.u32 [tile], 1;",
	"bar.sync 0;", "bar.sync %r1, 64;", "bar.red.popc.u32 %r1, 0, %p1;", "bar.red.and.pred %p1, 0, 32, !%p2;",
	"barrier.sync 1;", "bar.warp.sync 0xffffffff;",
	"shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;", "vote.sync.all.pred %p1, !%p2, -1;",
	"match.all.sync.b64 %r1|%p1, %rd1, -1;", "activemask.b32 %r1;",
	"cvt.u64.u32 %rd1, %r1;", "cvt.rn.f32.s32 %f1, %r1;", "cvt.rzi.u32.f32 %r1, %f1;", "cvt.f32.f16 %f1, %h1;",
	"cvt.rn.f16.f32 %rs1, %f1;", "cvt.u8.u32 %rs1, %r1;",
	"cvt.rni.f32.f32 %f1, %f2;", "cvt.sat.f32.f32 %f1, %f1;", "cvt.f64.f32 %fd1, %f1;", "cvt.rn.f32.f64 %f1, %fd1;",
	"cvt.sat.s8.s32 %rs1, %r1;", "cvt.u32.u16 %r1, %rs1;",
	"cvt.rn.bf16x2.f32 %r1, %f1, %f2;", "cvt.rn.satfinite.relu.e5m2x2.f32 %rs1, %f1, %f2;",
	"cvt.rn.f16x2.e4m3x2 %r1, %rs1;", "cvt.rna.tf32.f32 %r1, %f1;",
	"mul.wide.u32 %rd1, %r1, %r2;", "mul.wide.s16 %r1, %rs1, -2;", "mad.lo.s32 %r1, %r2, %r3, %r4;",
	"mad.wide.u32 %rd1, %r1, %r2, %rd2;", "shl.b64 %rd1, %rd2, 3;", "shr.s64 %sd1, %rd2, %r1;",
	"and.pred %p1, %p2, %p3;", "not.pred %p1, %p1;", "lop3.b32 %r1, %r2, %r3, %r4, 0xe8;",
	"prmt.b32.b4e %r1, %r2, %r3, 1;", "popc.b64 %r1, %rd1;", "brev.b64 %rd1, %rd2;",
	"cvta.to.global.u64 %rd1, %rd2;", "cvta.shared.u64 %rd1, tile;", "isspacep.shared %p1, %rd1;",
	"dp4a.u32.s32 %r1, %r2, %r3, 0;",
	"bra L;", "@%p1 bra.uni L;", "exit;", "trap;", "brkpt;", "ret.uni;", "nanosleep.u32 100;", "membar.sys;",
	"fence.acq_rel.gpu;", "fence.acquire.sys;", "fence.release.cluster;", "prefetch.global.L1 [%rd1];",
	"atom.cas.relaxed.sys.b32 %r1, [%rd1], %r2, %r3;", "atom.add.release.gpu.global.u32 %r1, [%rd1], %r2;",
	"ld.global.acquire.sys.b32 %r1, [%rd1];", "st.global.release.sys.b32 [%rd1], %r1;",
	"cp.async.ca.shared.global [%r1], [%rd1], 4;", "cp.async.cg.shared::cta.global.L2::128B [%r1], [%rd1], 16, %r2;",
	"cp.async.wait_group 1;",
	"cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 4, %rd2;",
	"cp.async.mbarrier.arrive.noinc.shared.b64 [tile];",
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [tile+8];",
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [%rd1], 4096, [%r3], %rd2;",
	"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;", "cp.async.bulk.prefetch.L2.global [%rd1], 4096;",
	"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.s32 [%r1], [%r2], %r3, [tile];",
	"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%rd1], [%r1], %r2;",
	"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.min.s64 [%rd1], [%r1], %r2, %rd2;",
	"createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0;",
	"createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd1;", "cp.async.bulk.commit_group;",
	"cp.async.bulk.wait_group.read 1;", "fence.proxy.async.shared::cta;",
	"mbarrier.init.shared.b64 [%r1], 32;", "mbarrier.inval.shared.b64 [%r1];", "mbarrier.arrive.shared.b64 %rd1, [%r1];",
	"mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1], 2;",
	"mbarrier.arrive_drop.shared.b64 %rd1, [%r1];", "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r2;",
	"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;",
	"mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 1000;", "mbarrier.test_wait.acquire.cta.b64 %p1, [%rd1], %rd2;",
	"mbarrier.pending_count.b64 %r1, %rd1;", "redux.sync.xor.b32 %r1, %r2, -1;",
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, " +
		"{%f0,%f1,%f2,%f3};",
	"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r2,%r3}, {%r4}, {%r5,%r6};",
	"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2}, {%f0,%f1,%f2,%f3};",
	"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2}, {%f4,%f5,%f6,%f7};",
	"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r0,%r1}, " +
		"{%r0,%r1,%r2,%r3};",
	"mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%r0,%r1}, {%r2}, {%r3}, {%r4,%r5};",
	"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1}, {%fd2}, {%fd3}, {%fd0,%fd1};",
	"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [tile], 16;",
	"wmma.load.b.sync.aligned.col.m8n32k16.bf16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd1];",
	"wmma.store.d.sync.aligned.row.m32n8k16.global.f16 [%rd1], {%r0,%r1,%r2,%r3}, %r4;",
	"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, " +
		"{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, {%r0,%r1,%r2,%r3};",
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%r4];",
	"ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r0}, [%rd4];",
	"stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [tile+16], {%r0,%r1};",
	"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
	"red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%rd1], {%r0,%r1,%r2,%r3};",
	"red.global.max.noftz.v8.f16 [%rd1], {%h0,%h1,%h2,%h3,%h0,%h1,%h2,%h3};",
	"atom.global.add.v2.f32 {%f0,%f1}, [%rd1], {%f2,%f3};",
	"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r0], %r1, [tile];",
	"multimem.ld_reduce.global.add.f32 %f1, [%rd1];", "ld .global .u32 %r1, [%rd1];", "{ { } }", ".loc 1 2 3\n",
	".pragma \"nounroll\";", "/* a\n b */ ret;",
	".local .align 8 .b8 depot[16]; mov.u64 %rd1, depot;", ".shared .b8 a[4], b[8];",
}

func TestAccepted(t *testing.T) {
	for _, s := range accepted {
		m, err := Parse("k.ptx", []byte(in(s)))
		if !assertNoError(t, s, err) {
			continue
		}
		roundTrip(t, m)
	}
}

func assertNoError(t *testing.T, s string, err error) bool {
	if err != nil {
		t.Errorf("%s: %v", s, err)
	}
	return err == nil
}

// refused are others, with what the error says.
var refused = []struct{ text, want string }{
	{"add.s33 %r1, %r2, %r3;", ".s33 there, expected .u16"},
	{"frob.u32 %r1;", "unknown instruction frob"},
	{"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [%r1], 16;", "cp does not have .f16 there"},
	{"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16, %rd2;",
		"expected a cache policy as the last one with .L2::cache_hint"},
	{"mbarrier.init.shared.b64 [%r1];", "1 operands, expected 2"},
	{"add %r1, %r2, %r3;", "add lacks a modifier, expected .u16"},
	{"ld.globl.u32 %r1, [%rd1];", "ld does not have .globl there, expected .weak"},
	{"ld.relaxed.global.u32 %r1, [%rd1];", "ld does not have .global there, expected .cta, .gpu, .sys"},
	{"add.s32 %r1, %r2;", "2 operands, expected 3"},
	{"bar.sync 0, 1, 2;", "3 operands, expected 1 to 2"},
	{"add.s32 %r1, %r2, %f1;", "operand 3 is %f1 of type .f32, expected one that fits .s32"},
	{"add.s32 %rd1, %r2, %r1;", "operand 1 is %rd1 of type .b64"},
	{"add.f32 %f1, %f2, 1;", "operand 3 is an integer, expected a constant of type .f32"},
	{"add.s32 %r1, %r2, 1.0;", "operand 3 is a float, expected an integer"},
	{"add.f16 %h1, %h2, 0f00000000;", "operand 3 is a float"},
	{"add.s32 1, %r2, %r1;", "operand 1 is not a register"},
	{"add.s32 %r1, %r2, !%p1;", "operand 3 is negated"},
	{"add.s32 %r1, %r99, 1;", "“%r99” is not declared"},
	{"add.s32 %r1, %r2, L;", "“L” is not declared"},
	{"add.s32 _, %r2, 1;", "operand 1 is not a register"},
	{"ld.u8 %rs1, [%rd1-1];", "“-”, expected “]”"},
	{";", "“;”, expected an instruction, a label or a directive"},
	{"mov.b32 %r1, tile+1.5;", "a float, expected an offset"},
	{"mov.b64 %rd1, {%r1, %rd2};", "operand 2 is %rd2 of type .b64, expected one that fits .b32"},
	{"mov.b16 %rs1, tile;", "operand 2 is an address"},
	{"ld.global.u32 %r1, [tile];", "operand 2 is a variable in .shared, expected one in .global"},
	{"ld.global.u32 %r1, [%r2];", "operand 2 is an address of 32 bits, expected 64"},
	{"ld.global.u32 %r1, [%rs1];", "an address of type .b16"},
	{"ld.global.u32 %r1, %rd1;", "operand 2 is not an address in brackets"},
	{"ld.global.u32 %rs1, [%rd1];", "operand 1 is %rs1 of type .b16"},
	{"ld.global.v4.u32 {%r1,%r2}, [%rd1];", "operand 1 is not a vector of 4"},
	{"ld.global.v4.u64 {%rd1,%rd2,%rd3,%rd4}, [%rd1];", "a vector of 32 bytes, expected 16"},
	{"ld.global.f32 %r1, [%rd1;", "“;”, expected “]”"},
	{"@%r1 ret;", "a guard of type .b32, expected a predicate"},
	{"@%p9 ret;", "“%p9” is not declared"},
	{"setp.lo.f32 %p1, %f1, %f2;", "setp does not have .f32 there"},
	{"setp.eq.and.u32 %p1, %r1, %r2;", "3 operands, expected 4"},
	{"cvt.f32.s32 %f1, %r1;", "to .f32 from .s32 without rounding, expected .rn"},
	{"cvt.rn.s32.f32 %r1, %f1;", "without rounding to a whole number, expected .rni"},
	{"cvt.s32.f32 %r1, %f1;", "expected .rni"},
	{"cvt.f32.f64 %f1, %fd1;", "without rounding, expected .rn"},
	{"cvt.rn.f64.f32 %fd1, %f1;", "rounding to a wider type"},
	{"mov.f32 %f1, -0f3F800000;", "- before the bits of a float"},
	{"lop3.b32 %r1, %r2, %r3, %r4, %r5;", "operand 5 is not an integer constant"},
	{"bra nowhere;", "label “nowhere” is not in this function"},
	{"bra %r1;", "“%r1” is not a label"},
	{"bra {L};", "expected a register or a constant"},
	{"L: exit;", "“L” is declared already"},
	{"brx.idx %r1, L2; L2:", "“L2” is not declared"},
	{".reg .b32 %r1;", "“%r1” is declared already"},
	{".reg .b32 %laneid;", "“%laneid” is a special register"},
	{".reg .bf16 %x;", "expected the type of a register"},
	{".reg .b32 %x<99999999>;", "the number of registers is out of range"},
	{".shared .b8 x[4] = {1};", "an initialiser of a .shared variable"},
	{".shared .b8 x[];", "“x” has no size"},
	{".shared .align 3 .b8 x;", "expected a power of two"},
	{".frob;", "“.frob”, expected a directive"},
	{"mov.u32 %r1, 0f3F8;", "“0f3F8” is not a number"},
	{"mov.u32 %r1, 1/0;", "division by zero"},
	{"mov.u32 %r1, 0x1ffffffffffffffff;", "is not an integer"},
	{"mov.u32 %r1, " + strings.Repeat("(", 1000) + "1;", "nested deeper than"},
	{strings.Repeat("{", 1000), "nested deeper than"},
	{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
		"operand 1 is a fragment of 2 registers, expected 4"},
	{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %r4, {%f0,%f1,%f2,%f3};",
		"operand 2 is a fragment of 4 registers, expected 2"},
	{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, %r4, {%f0,%f1,%f2,%fd1};",
		"operand 4 is %fd1 of type .f64, expected one that fits .f32"},
	{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {_,%f1,%f2,%f3}, {%r0,%r1}, %r4, {%f0,%f1,%f2,%f3};",
		"operand 1 is not a register"},
	{"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 %f1;", "mma does not have .row there, expected .col"},
	{"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 %f1;", "mma does not have .bf16 there, expected .f16"},
	{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32 %f1;", "mma does not have .f32 there, expected .f16"},
	{"mma.sync.m16n8k16.row.col.f16.f16.f16.f16 %f1;", "mma does not have .m16n8k16 there, expected .aligned"},
	{"wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [tile];",
		"operand 1 is a fragment of 8 registers, expected 4"},
	{"wmma.load.d.sync.aligned.row.m16n16k16.f16 %r0, [%rd0];", "wmma does not have .d there"},
	{"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 %r0;", "wmma does not have .u8 there, expected .s8"},
	{"ldmatrix.sync.aligned.m8n8.x3.b16 {%r0}, [%rd0];", "ldmatrix does not have .x3 there, expected .x1, .x2, .x4"},
	{"ldmatrix.sync.aligned.m8n8.x2.b16 {%r0}, [%rd0];", "operand 1 is a fragment of 1 registers, expected 2"},
	{"ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%r0];", "operand 2 is an address of 32 bits, expected 64"},
	{"stmatrix.sync.aligned.m8n8.x1.global.b16 [%rd0], {%r0};", "stmatrix does not have .global there"},
	{"movmatrix.sync.aligned.m8n8.b16 %r0, %r1;", "movmatrix does not have .b16 there, expected .trans"},
	{"red.global.add.v2.f32 [%rd0], %f0;", "operand 2 is not a vector of 2"},
	{"red.global.add.noftz.v8.f16x2 [%rd0], {%r0,%r1};", "red does not have .f16x2 there, expected .f16, .bf16"},
	{"call k, (1);", "a call of kernel “k”"},
	{"call nothing;", "“nothing” is not declared, expected a function, or a register with the address of one"},
	{"/* open", "a comment without its end"},
	{".pragma \"open;\n", "a string without its end"},
	{"ret 1", "expected an operand, “,” or “;”"},
	{"@%p1 L:", "unknown instruction L"},
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		_, err := Parse("k.ptx", []byte(in(c.text)))
		if err == nil {
			t.Errorf("%s: accepted, expected an error with: %s", c.text, c.want)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "k.ptx:") {
			t.Errorf("%s:\n got  %v\n want %s", c.text, err, c.want)
		}
	}
}

func TestRefusedModule(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "k.ptx:1:1: the end of the file, expected “.version”"},
		{".version 7\n.target sm_70", "k.ptx:1:10: “7” is not a version"},
		{".version 7.0\n.target gfx90", "k.ptx:2:9: “gfx90” is not an architecture"},
		{".version 7.0\n.target sm_70\n.address_size 16", "expected 32 or 64"},
		{header + ".visible", "expected what .visible applies to"},
		{header + ".entry k(", "k.ptx:4:10: the end of the file, expected “.param”"},
		{header + ".entry k() {", "k.ptx:4:12: { without its }"},
		{header + ".entry k() {} .entry k() {}", "function “k” is defined already"},
		{header + ".func f(.param .u32 x); .func f(.param .u64 x) {}", "differs from its declaration"},
		{header + ".entry k() { .shared .b8 x; } .global .u32 x;", "“x” is a local name of a function already (line 4)"},
		{header + ".global .attribute(.managed) .u32 x;", "expected the type of a variable"},
		{header + ".global .u32 x = y;", "“y”, expected a number: an address is of 64 bits"},
		{header + ".global .u64 x = y;", "“y” is not declared"},
		{header + ".global .u32 x[2] = {1, 2, 3};", "too many values, expected 2"},
		{header + ".global .u32 x[2][2];", "an array of arrays"},
		{header + ".global .f32 x = 1;", "“1” does not fit .f32"},
		{header + ".global .u32 %x;", "begins with %"},
		{header + ".section .debug_info {", "a section without its end"},
		{header + ".func (.param .u32 r) f() {} .entry k() { call f; }", "0 results of “f”, expected 1"},
		{header + ".func f(.param .u32 a) {} .entry k() { .reg .b64 r; call f, (r); }", "or of another size"},
	} {
		require.ErrorContains(t, must.Err(Parse("k.ptx", []byte(c.text))), c.want, c.text)
	}
}

func TestConstants(t *testing.T) {
	for _, c := range []struct {
		text  string
		bits  uint64
		float Type
	}{
		{"10", 10, NoType}, {"-1", math.MaxUint64, NoType}, {"0x1F", 31, NoType}, {"0XfU", 15, NoType}, {"017", 15, NoType},
		{"0b110", 6, NoType},
		{"0f3F800000", 0x3f800000, F32}, {"0F3f800000", 0x3f800000, F32}, {"0d3FF0000000000000", 1023 << 52, F64},
		{"1.0", 1023 << 52, F64}, {".5", 1022 << 52, F64}, {"-1e0", 0xbff << 52, F64}, {"2.5e-1", 1021 << 52, F64},
		{"1.5E+3", math.Float64bits(1500), F64},
		{"1+2*3", 7, NoType}, {"(1+2)*3", 9, NoType}, {"10-3-2", 5, NoType}, {"1<<4|1", 17, NoType}, {"7&~2^1", 4, NoType},
		{"-7/2", math.MaxUint64 - 2, NoType},
		{"7 % 4", 3, NoType}, {"!0", 1, NoType}, {"!5", 0, NoType}, {"+3", 3, NoType}, {"WARP_SZ*2", 64, NoType},
		{"1 << 70", 0, NoType}, {"0xffffffffffffffff", math.MaxUint64, NoType},
	} {
		move := "mov.b64 %rd1, "
		if c.float == F32 {
			move = "mov.b32 %r1, "
		}
		m, err := Parse("k.ptx", []byte(in(move+c.text+";")))
		if !assertNoError(t, c.text, err) {
			continue
		}
		o := m.Func("k").Body[0].Operands[1]
		require.Equal(t, Operand{Kind: ImmOperand, Reg: -1, Imm: c.bits, Float: c.float}, o, c.text)
	}
}

func TestDebug(t *testing.T) {
	m, err := Parse("k.ptx", []byte(header+`
.file 1 "/src/k.cu"
.entry k() {
	.loc 1 3 5
	.loc 1 4 5, function_name $L__info, inlined_at 1 3 5
	ret;
}
.file 2 "other.cu", 12, 34
.section .debug_abbrev { .b8 1 { .b8 2 } }
.section	.debug_macinfo	{	}
`))
	require.NoError(t, err)
	require.Len(t, m.Func("k").Body, 1)
	require.Equal(t, 9, m.Func("k").Body[0].Line)
	for text, source := range map[string]string{`"/it's a \"folder/k.cu", 1, 2`: "k.cu:3", `"a \"\303\251\\.cu"`: `a "é\.cu:3`,
		`"C:\dir\k.cu"`: `C:\dir\k.cu:3`} {
		m := must.Get(Parse("k.ptx", []byte(header+".file 1 "+text+"\n.entry k() {\n.loc 1 3 5\nret;\n}")))
		require.Equal(t, source, m.Source(7), text)
	}
	for line, source := range map[int]string{6: "", 7: "k.cu:3", 8: "k.cu:4", 9: "k.cu:4"} {
		require.Equal(t, source, m.Source(line), line)
	}

	m, err = Parse("k.ptx", []byte(header+`
.entry k() {
	.loc 2 30 1
	ret;
}
.entry l() {
	ret;
}
.file 2 "other.cu", 12, 34
`))
	require.NoError(t, err)
	require.Equal(t, "other.cu:30", m.Source(m.Func("k").Body[0].Line))
	require.Empty(t, m.Source(m.Func("l").Body[0].Line))
	require.True(t, m.OnePlace(m.Func("k").Body[0].Line))
	require.False(t, m.OnePlace(m.Func("l").Body[0].Line))
}

func FuzzParse(f *testing.F) {
	f.Add(fixtures(f)["memory"]) // the others are so long that minimising them takes all the time
	f.Add([]byte(in("{ .reg .b32 a<3>; L: bra L; }")))
	for _, s := range accepted {
		f.Add([]byte(in(s)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("fuzz", text)
		if err != nil {
			require.Regexp(t, `(?s)^fuzz:\d+:\d+: .`, err.Error())
			return
		}
		roundTrip(t, m)
		Lint(m, Rules{})
	})
}

func BenchmarkParse(b *testing.B) {
	for name, text := range fixtures(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse(name, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
