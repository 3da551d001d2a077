package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// hand is a kernel written by hand: registers are declared, the first parameter is
// a pointer in %rd0, its element for the thread is at %rd1 and %r0 is the thread.
func hand(body string) string {
	return `.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 unused[64];
.visible .entry k(.param .u64 out, .param .u32 n)
{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
.reg .f32 %f<9>;
ld.param.u64 %rd0, [out];
ld.param.u32 %r9, [n];
mov.u32 %r0, %tid.x;
mad.wide.u32 %rd1, %r0, 4, %rd0;
` + body + `
ret;
}
`
}

// result runs a kernel by hand in one block and gives what each thread wrote.
func result(t *testing.T, o options, threads int, body string) []uint32 {
	return compute(t, o, hand(body), "k", threads, sequence(threads, 1), 5)
}

func TestWarp(t *testing.T) {
	all := func(v uint32) func(int) uint32 { return func(int) uint32 { return v } }
	for _, c := range []struct {
		name, body string
		threads    int
		want       func(i int) uint32
	}{
		{"ballot", "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; vote.sync.ballot.b32 %r2, %p1, 0xffffffff;", 32,
			all(0x55555555)},
		{"all", "setp.lt.u32 %p1, %r0, 31; vote.sync.all.pred %p2, %p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;", 32, all(0)},
		{"not any", "setp.lt.u32 %p1, %r0, 99; vote.sync.any.pred %p2, !%p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;",
			32, all(0)},
		{"uni", "setp.lt.u32 %p1, %r0, 99; vote.sync.uni.pred %p2, %p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;", 32, all(1)},
		{"bfly", "shfl.sync.bfly.b32 %r2, %r0, 5, 31, 0xffffffff;", 32, func(i int) uint32 { return uint32(i ^ 5) }},
		{"idx in segments of 8", "shfl.sync.idx.b32 %r2, %r0, 3, 0x181f, 0xffffffff;", 32,
			func(i int) uint32 { return uint32(i&^7 | 3) }},
		{"up", "shfl.sync.up.b32 %r2|%p1, %r0, 4, 0, 0xffffffff; @!%p1 mov.b32 %r2, 77;", 32, func(i int) uint32 {
			if i < 4 {
				return 77
			}
			return uint32(i - 4)
		}},
		{"down keeps its own at the end", "shfl.sync.down.b32 %r2, %r0, 30, 31, 0xffffffff;", 32, func(i int) uint32 {
			if i < 2 {
				return uint32(i + 30)
			}
			return uint32(i)
		}},
		{"match.any", "and.b32 %r1, %r0, 3; match.any.sync.b32 %r2, %r1, 0xffffffff;", 32,
			func(i int) uint32 { return 0x11111111 << (i & 3) }},
		{"match.all", "match.all.sync.b32 %r2|%p1, %r9, 0xffffffff;", 32, all(0xffffffff)},
		{"redux", "sub.s32 %r1, %r0, 40; redux.sync.max.s32 %r2, %r1, 0xffffffff; redux.sync.add.u32 %r3, %r0, 0xffffffff; " +
			"add.s32 %r2, %r2, %r3;", 32, all(31*16 - 9)},
		{"elect", "mov.b32 %r2, 0; elect.sync %r1|%p1, 0xffffffff; @%p1 mov.b32 %r2, 9;", 32, func(i int) uint32 {
			if i == 0 {
				return 9
			}
			return 0
		}},
		{"threads that ended are not waited for",
			"setp.lt.u32 %p1, %r0, 7; @%p1 exit; setp.eq.u32 %p1, %r0, %r0; vote.sync.ballot.b32 %r2, %p1, 0xffffffff;", 20,
			func(i int) uint32 {
				if i < 7 {
					return uint32(i)
				}
				return 0xfff80
			}},
		{"both sides of a branch", `setp.lt.u32 %p1, %r0, 7; mov.b32 %r2, 0;
			@%p1 bra A;
			shfl.sync.idx.b32 %r2, %r0, 2, 31, 0xffffffff; bra.uni B;
		A:	add.u32 %r3, %r0, 100;
			shfl.sync.idx.b32 %r2, %r3, 30, 31, 0xffffffff;
		B:`, 32, func(i int) uint32 {
			if i < 7 {
				return 30
			}
			return 102
		}},
		{"masks that differ", `setp.lt.u32 %p1, %r0, 8; selp.b32 %r3, 0xff, 0xffffff00, %p1;
			shfl.sync.idx.b32 %r2, %r0, %r9, 31, %r3; @%p1 bra A; mov.b32 %r2, 1; A:`, 32, func(i int) uint32 {
			if i < 8 {
				return 5
			}
			return 1
		}},
		{"predicated, then waited for", `setp.lt.u32 %p1, %r0, 8; mov.b32 %r2, 0;
			@%p1 bar.warp.sync 0xff; @!%p1 bar.warp.sync 0xffffff00; bar.warp.sync 0xffffffff; mov.b32 %r2, 3;`, 32, all(3)},
		{"member masks that differ at one instruction", `and.b32 %r1, %r0, 3; mov.b32 %r3, 0x11111111; shl.b32 %r3, %r3, %r1;
			bar.warp.sync %r3; mov.b32 %r2, 3;`, 32, all(3)},
		{"activemask", "activemask.b32 %r2;", 17, all(0x1ffff)},
		{"special registers", `mov.u32 %r1, %ntid.x; mov.u32 %r3, %laneid; mov.u32 %r4, %warpid; mov.u32 %r5, %lanemask_lt; mov.u32 %r6, %nctaid.y;
			mad.lo.u32 %r2, %r4, 1000, %r1; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6; mov.u32 %r7, %clock; mov.u64 %rd2, %globaltimer;`, 64, func(i int) uint32 {
			return uint32(i/32*1000 + 64 + i%32 + 1<<(i%32) - 1 + 1)
		}},
		{"numbers of the warp and its device", `mov.u32 %r2, %nwarpid; mov.u32 %r3, %nsmid; mad.lo.u32 %r2, %r3, 1000, %r2; mov.u32 %r3, %smid; setp.ge.u32 %p1, %r3, 2; @%p1 mov.b32 %r2, 1;
			mov.u32 %r3, %tid.y; add.u32 %r2, %r2, %r3; mov.u32 %r3, %ctaid.x; add.u32 %r2, %r2, %r3; mov.u32 %r3, WARP_SZ; mad.lo.u32 %r2, %r3, 100000, %r2;`, 32, all(3202064)},
		{"shared memory of the block",
			`.shared .align 4 .b8 s[256]; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 1; mov.u32 %r2, %total_smem_size; mov.u32 %r3, %dynamic_smem_size; mad.lo.u32 %r2, %r3, 1000, %r2;`, 32, all(256)},
		{"reserved shared memory", `.shared .align 4 .b8 s[100]; mov.u32 %r3, %reserved_smem_offset_1; setp.eq.u32 %p1, %r0, 0;
			@%p1 atom.shared.add.u32 %r2, [%r3], 7; bar.sync 0; ld.shared.u32 %r2, [%r3]; mov.u32 %r4, %reserved_smem_offset_begin;
			mov.u32 %r5, %reserved_smem_offset_end; sub.u32 %r5, %r5, %r4; mov.u32 %r6, %reserved_smem_offset_cap; sub.u32 %r5, %r5, %r6;
			mov.u32 %r6, %reserved_smem_offset_0; sub.u32 %r6, %r6, %r4; @%p1 st.shared.u32 [s], 1; mad.lo.u32 %r2, %r4, 100, %r2;
			mad.lo.u32 %r2, %r5, 1000000, %r2; mad.lo.u32 %r2, %r6, 10000000, %r2;`, 32, all(38407)},
		{"lanemask_eq", "mov.u32 %r2, %lanemask_eq;", 40, func(i int) uint32 { return 1 << (i % 32) }},
		{"lanemask_le", "mov.u32 %r2, %lanemask_le;", 40, func(i int) uint32 { return 2<<(i%32) - 1 }},
		{"lanemask_ge", "mov.u32 %r2, %lanemask_ge;", 40, func(i int) uint32 { return ^uint32(0) << (i % 32) }},
		{"lanemask_gt", "mov.u32 %r2, %lanemask_gt;", 40, func(i int) uint32 { return ^uint32(0) << (i % 32) << 1 }},
		{"clocks go on", `mov.u64 %rd2, %clock64; mov.u32 %r3, %clock; mov.u64 %rd3, %globaltimer; mov.u32 %r4, %globaltimer_lo; mov.u64 %rd4, %clock64;
			mov.u32 %r5, %clock_hi; mov.u32 %r6, %globaltimer_hi; setp.lt.u64 %p1, %rd2, %rd3; setp.lt.u64 %p2, %rd3, %rd4; setp.lt.u32 %p3, %r3, %r4;
			selp.u32 %r2, 1, 0, %p1; @%p2 add.u32 %r2, %r2, 2; @%p3 add.u32 %r2, %r2, 4; add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6;`, 32, all(7)},
		{"carries", "add.cc.u32 %r1, %r0, 0xffffffff; addc.u32 %r2, %r0, 100; sub.cc.u32 %r3, 5, %r0; subc.u32 %r3, 0, 0; " +
			"mad.lo.u32 %r2, %r3, 1000, %r2;", 32, func(i int) uint32 {
			v := uint32(i + 100)
			if i > 0 {
				v++
			}
			if i > 5 {
				v -= 1000
			}
			return v
		}},
		{"match.all of different values",
			"and.b32 %r1, %r0, 16; match.all.sync.b32 %r2|%p1, %r1, 0xffffffff; @%p1 mov.b32 %r2, 7;", 32, all(0)},
		{"redux and", "or.b32 %r1, %r0, 0xf0; redux.sync.and.b32 %r2, %r1, 0xffffffff;", 32, all(0xf0)},
		{"redux or", "redux.sync.or.b32 %r2, %r0, 0xffffffff;", 32, all(31)},
		{"redux xor", "mul.lo.u32 %r1, %r0, %r0; redux.sync.xor.b32 %r2, %r1, 0xffffffff;", 32, func(int) (x uint32) {
			for i := range uint32(32) {
				x ^= i * i
			}
			return x
		}},
		{"redux of some", "setp.gt.u32 %p1, %r0, 3; @%p1 bra A; redux.sync.add.u32 %r2, %r0, 0xf; bra B; A: " +
			"redux.sync.add.s32 %r2, %r0, 0xfffffff0; B:", 32, func(i int) uint32 {
			if i < 4 {
				return 6
			}
			return 490
		}},
		{"redux min and max", `sub.s32 %r1, %r0, 16; redux.sync.min.s32 %r2, %r1, 0xffffffff; redux.sync.max.s32 %r3, %r1, 0xffffffff; redux.sync.min.u32 %r4, %r1, 0xffffffff; redux.sync.max.u32 %r5, %r1, 0xffffffff;
			mad.lo.s32 %r2, %r2, 1000, %r5; mad.lo.s32 %r2, %r3, 100, %r2; mad.lo.s32 %r2, %r4, 10, %r2;`, 32, func(int) uint32 { x := int32(-16*1000 - 1 + 15*100); return uint32(x) }},
		{"fences, hints and sleep", `membar.cta; membar.gl; membar.sys; fence.acq_rel.sys; fence.sc.cta; fence.proxy.async;
			prefetch.global.L2 [%rd1]; nanosleep.u32 20; mov.b32 %r2, 6;`, 32, all(6)},
		{"generic addresses", `.shared .align 4 .b8 s[4]; .local .align 4 .b8 l[4];
			mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; mov.u64 %rd3, l; cvta.local.u64 %rd3, %rd3; cvta.to.local.u64 %rd4, %rd3;
			st.local.u32 [%rd4], 11; ld.u32 %r3, [%rd3];
			setp.eq.u32 %p1, %r0, 0; @%p1 st.u32 [%rd2], 100; bar.warp.sync 0xffffffff; ld.shared.u32 %r4, [s]; add.u32 %r2, %r3, %r4;
			isspacep.shared %p1, %rd2; selp.u32 %r3, 1000, 0, %p1; add.u32 %r2, %r2, %r3;
			isspacep.local %p1, %rd3; selp.u32 %r3, 2000, 0, %p1; add.u32 %r2, %r2, %r3;
			isspacep.global %p1, %rd0; selp.u32 %r3, 4000, 0, %p1; add.u32 %r2, %r2, %r3;
			isspacep.global %p1, %rd2; selp.u32 %r3, 8000, 0, %p1; add.u32 %r2, %r2, %r3;`, 32, all(7111)},
		{"immediates of floats", `mov.f32 %f1, 0f3FC00000; add.rn.f32 %f1, %f1, 0d3FE0000000000000; mov.b32 %r2, %f1;`, 32,
			all(0x40000000)},
		{"a guard on a load", `mov.b32 %r2, 1; setp.gt.u32 %p1, %r0, 15; @!%p1 ld.global.u32 %r2, [%rd1+64]; bar.sync 0;`, 32,
			func(i int) uint32 {
				if i < 16 {
					return uint32(i + 16)
				}
				return 1
			}},
		{"table of branches", `L: .branchtargets A, B, C; and.b32 %r1, %r0, 3; min.u32 %r1, %r1, 2; brx.idx %r1, L;
		A:	mov.b32 %r2, 10; bra D;
		B:	mov.b32 %r2, 20; bra D;
		C:	mov.b32 %r2, 30;
		D:`, 32, func(i int) uint32 { return []uint32{10, 20, 30, 30}[i&3] }},
		{"vectors and signs", `and.b32 %r1, %r0, 28; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd0;
			ld.global.v4.u32 {%r3, %r4, _, %r6}, [%rd2]; ld.global.s8 %r7, [%rd1]; ld.global.u16 %r8, [%rd1+2]; bar.sync 0;
			add.u32 %r2, %r3, %r4; add.u32 %r2, %r2, %r6; add.u32 %r2, %r2, %r7; add.u32 %r2, %r2, %r8;`, 32, func(i int) uint32 { return uint32(i&^3*3 + 4 + i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				var want []uint32
				for i := range c.threads {
					want = append(want, c.want(i))
				}
				require.Equal(t, want, result(t, options{seed: seed}, c.threads, c.body+"st.global.u32 [%rd1], %r2;"))
			}
		})
	}
}
