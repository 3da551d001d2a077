// What the threads of a warp and a block do together, and arithmetic that C does not have.
#include "base.h"

GLOBAL void together(u32 *p) {
	u32 x = p[TID], y;
	asm volatile("shfl.sync.bfly.b32 %0, %1, 16, 31, -1;" : "=r"(y) : "r"(x));
	x += y;
	asm volatile("{ .reg .pred q; shfl.sync.down.b32 %0|q, %1, 1, 0x1f, 0xffffffff; @!q mov.b32 %0, 0; }" : "=r"(y) : "r"(x));
	x += y;
	asm volatile("{ .reg .pred q, r; setp.ne.u32 q, %1, 0; vote.sync.any.pred r, !q, -1; selp.u32 %0, 1, 0, r; }" : "=r"(y) : "r"(x));
	x ^= y;
	asm volatile("{ .reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, -1; }" : "=r"(y) : "r"(x));
	x ^= y;
	asm volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(y) : "r"(x));
	x ^= y;
	asm volatile("match.all.sync.b32 %0|_, %1, -1;" : "=r"(y) : "r"(x));
	x ^= y;
	asm volatile("activemask.b32 %0;" : "=r"(y));
	x ^= y;
	asm volatile("bar.warp.sync -1; bar.sync 1, 64; barrier.sync 2; bar.arrive 3, 128; nanosleep.u32 100;" ::: "memory");
	asm volatile("{ .reg .pred q, r; setp.eq.u32 q, %1, 3; bar.red.or.pred r, 0, q; selp.u32 %0, 1, 0, r; bar.red.popc.u32 %0, 0, 64, !q; }" : "=r"(y) : "r"(x));
	p[TID] = x ^ y;
}

GLOBAL void arithmetic(u32 *p, u16 *h, float *f) {
	u32 a = p[0], b = p[1], c;
	asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(c) : "r"(a), "r"(b));
	p[2] = c;
	asm("bfe.u32 %0, %1, 4, 8;" : "=r"(c) : "r"(a));
	p[3] = c;
	asm("bfi.b32 %0, %1, %2, 4, 8;" : "=r"(c) : "r"(a), "r"(b));
	p[4] = c;
	asm("shf.l.wrap.b32 %0, %1, %2, 7;" : "=r"(c) : "r"(a), "r"(b));
	p[5] = c;
	asm("lop3.b32 %0, %1, %2, %1, 0x96;" : "=r"(c) : "r"(a), "r"(b));
	p[6] = c;
	p[7] = __builtin_popcount(a) + __builtin_clz(b) + __builtin_bitreverse32(a);
	asm("dp4a.s32.u32 %0, %1, %2, %1;" : "=r"(c) : "r"(a), "r"(b));
	p[8] = c;
	asm("bfind.shiftamt.u32 %0, %1;" : "=r"(c) : "r"(a));
	p[9] = c;
	asm("add.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
	p[10] = c;
	asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(c) : "r"(a), "r"(b));
	p[11] = c;
	asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }" : "=r"(c) : "r"(a));
	p[12] = c;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h[0]) : "f"(f[0]));
	asm("cvt.f32.f16 %0, %1;" : "=f"(f[1]) : "h"(h[1]));
	asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(c) : "f"(f[2]));
	p[13] = c;
	f[3] = __builtin_fmaf(f[0], f[1], -2.5f) + (float)(int)a + (float)(double)b;
	asm("add.rz.ftz.sat.f32 %0, %1, 0f3F000000;" : "=f"(f[4]) : "f"(f[5]));
}
