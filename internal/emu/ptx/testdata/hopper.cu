// What needs sm_90.
#include "base.h"

GLOBAL void float8(u32 *p, float *f) {
	u16 h;
	u32 c;
	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(f[0]), "f"(f[1]));
	p[0] = h;
	asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(h) : "r"(p[1]));
	p[2] = h;
	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(c) : "h"(h));
	p[3] = c;
	asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(c), "r"(p[4]));
	p[5] = c;
}

GLOBAL void bulk(const char *src, char *dst, u32 bytes) {
	SHARED static u64 full;
	extern SHARED char tile[];
	u32 bar = (u32)(u64)(__attribute__((address_space(3))) u64 *)&full;
	u32 to = (u32)(u64)(__attribute__((address_space(3))) char *)tile;
	if (TID == 0) {
		asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
		asm volatile("fence.proxy.async;" ::: "memory");
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(src), "r"(bytes), "r"(bar) : "memory");
	}
	__syncthreads();
	asm volatile("{ .reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra done; bra wait; done: }" ::"r"(bar) : "memory");
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(to), "r"(bytes) : "memory");
	asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}
