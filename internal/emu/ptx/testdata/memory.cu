// Memory operations through inline assembly, in blocks with their own names.
#include "base.h"

GLOBAL void accesses(u32 *p, u64 *q) {
	u32 a, b, c, d;
	u64 x, y;
	asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(p) : "memory");
	asm volatile("st.volatile.global.v4.u32 [%4+16], {%0,%1,%2,%3};" ::"r"(a), "r"(b), "r"(c), "r"(d), "l"(p) : "memory");
	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(q) : "memory");
	asm volatile("ld.acquire.gpu.global.u64 %0, [%1+-8];" : "=l"(y) : "l"(q + 1) : "memory");
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(q), "l"(x + y) : "memory");
	asm volatile("st.relaxed.cta.global.u64 [%0], %1;" ::"l"(q), "l"(x ^ y) : "memory");
	asm volatile("ld.global.nc.v2.u64 {%0,%1}, [%2];" : "=l"(x), "=l"(y) : "l"(q));
	asm volatile("st.global.cg.v2.u64 [%0], {%1,%2};" ::"l"(q), "l"(y), "l"(x) : "memory");
	asm volatile("ld.global.cs.u32 %0, [%1];" : "=r"(a) : "l"(p));
	asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p), "r"(a) : "memory");
	asm volatile("membar.gl; fence.acq_rel.sys; fence.sc.gpu; membar.sys;" ::: "memory");
	asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

GLOBAL void atomics(u32 *p, u64 *q, float *f) {
	u32 a;
	u64 x;
	asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(a) : "l"(p) : "memory");
	asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(a) : "l"(p), "r"(a), "r"(a + 1) : "memory");
	asm volatile("atom.relaxed.sys.global.exch.b64 %0, [%1], %2;" : "=l"(x) : "l"(q), "l"((u64)a) : "memory");
	asm volatile("atom.global.inc.u32 %0, [%1], 7;" : "=r"(a) : "l"(p) : "memory");
	asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(a) : "memory");
	asm volatile("red.global.add.f32 [%0], 0f3F800000;" ::"l"(f) : "memory");
	asm volatile("red.global.max.s64 [%0], %1;" ::"l"(q), "l"(x) : "memory");
}

GLOBAL void wait(const u32 *flag, u32 want, u32 *spins) {
	u32 n;
	asm volatile("{\n\t"
	             ".reg .pred done, late;\n\t"
	             ".reg .b32 v, n;\n\t"
	             "mov.u32 n, 0;\n"
	             "again:\n\t"
	             "ld.acquire.sys.global.u32 v, [%1];\n\t"
	             "setp.eq.u32 done|late, v, %2;\n\t"
	             "add.u32 n, n, 1;\n\t"
	             "@done bra.uni out;\n\t"
	             "@late bra.uni again;\n"
	             "out:\n\t"
	             "mov.u32 %0, n;\n\t"
	             "}"
	             : "=r"(n) : "l"(flag), "r"(want) : "memory");
	asm volatile("{\n\t"
	             ".reg .pred done;\n\t"
	             "again:\n\t"
	             "{ .reg .b32 v; ld.volatile.global.u32 v, [%0]; setp.ge.u32 done, v, %1; }\n\t"
	             "@!done bra again;\n\t"
	             "}" ::"l"(flag), "r"(want) : "memory");
	*spins = n;
}
