// What of CUDA the kernels here use, without its headers.
#define GLOBAL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device))
#define NOINLINE __attribute__((noinline))
#define SHARED static __attribute__((shared))
typedef unsigned u32;
typedef unsigned long long u64;

DEVICE inline int tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE inline int ntid() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE inline int bid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE inline int nbid() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE inline int gid() { return bid() * ntid() + tid(); }
DEVICE inline void sync() { __syncthreads(); }
DEVICE inline void syncwarp(u32 m) { asm volatile("bar.warp.sync %0;" ::"r"(m) : "memory"); }

#define LOAD(NAME, OP) \
	DEVICE inline u32 NAME(u32 *p) { u32 v; asm volatile(OP " %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
#define STORE(NAME, OP) \
	DEVICE inline void NAME(u32 *p, u32 v) { asm volatile(OP " [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
LOAD(loadAcquire, "ld.acquire.gpu.global.u32")
LOAD(loadAcquireSys, "ld.acquire.sys.global.u32")
LOAD(loadRelaxed, "ld.relaxed.gpu.global.u32")
LOAD(loadVolatile, "ld.volatile.global.u32")
STORE(storeRelease, "st.release.gpu.global.u32")
STORE(storeReleaseSys, "st.release.sys.global.u32")
STORE(storeRelaxed, "st.relaxed.gpu.global.u32")
DEVICE inline void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
DEVICE inline u32 atomicAdd(u32 *p, u32 v) {
	u32 o; asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(o) : "l"(p), "r"(v) : "memory"); return o;
}
DEVICE inline u32 atomicCAS(u32 *p, u32 a, u32 b) {
	u32 o; asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(o) : "l"(p), "r"(a), "r"(b) : "memory"); return o;
}
