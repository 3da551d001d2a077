// What needs sm_80.
#include "base.h"

GLOBAL void bfloat16(u32 *p, float *f) {
	u32 a = p[0], b = p[1], c;
	u16 h;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(c) : "f"(f[0]), "f"(f[1]));
	p[2] = c;
	asm("cvt.rn.relu.bf16.f32 %0, %1;" : "=h"(h) : "f"(f[2]));
	p[3] = h;
	asm("fma.rn.bf16x2 %0, %1, %2, %1;" : "=r"(c) : "r"(a), "r"(b));
	p[4] = c;
	asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
	p[5] = c;
	asm("redux.sync.add.u32 %0, %1, -1;" : "=r"(c) : "r"(a));
	p[6] = c;
}

GLOBAL void copy(const char *src, char *dst) {
	SHARED static char tile[4096];
	u32 to = (u32)(u64)(__attribute__((address_space(3))) char *)tile + 16 * TID;
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(src + 16 * TID) : "memory");
	asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
	__syncthreads();
	dst[TID] = tile[TID];
}
