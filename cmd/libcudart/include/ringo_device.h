/* ringo_device.h is what kernels use: the index of a thread, barriers, shuffles, votes, atomics, fences,
   bits and mathematics, by clang's builtins and by PTX. It is a part of cuda_runtime.h. */
#ifndef RINGO_DEVICE_H
#define RINGO_DEVICE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <__clang_cuda_builtin_vars.h>

extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = 0);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
__device__ int vprintf(const char *, const char *);
__device__ int printf(const char *, ...);
inline __device__ void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }
inline __device__ void *memset(void *to, int value, size_t n) { return __builtin_memset(to, value, n); }
__device__ void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t size);
static inline __device__ void __assert_fail(const char *message, const char *file, unsigned line, const char *function)
{
	__assertfail(message, file, line, function, 1);
}
}

#define RINGO_D static inline __device__ __attribute__((always_inline))

#define RINGO_INDEX(type)                                                                                   \
	inline __device__ __cuda_builtin_##type##_t::operator dim3() const { return dim3(x, y, z); }      \
	inline __device__ __cuda_builtin_##type##_t::operator uint3() const { return uint3{x, y, z}; }
RINGO_INDEX(threadIdx)
RINGO_INDEX(blockIdx)
RINGO_INDEX(blockDim)
RINGO_INDEX(gridDim)
#undef RINGO_INDEX

/* The body of a function is for devices: the host's compiler sees a declaration that nothing calls. */
#ifdef __CUDA_ARCH__
#define RINGO_BODY(...) { __VA_ARGS__ }
#else
#define RINGO_BODY(...) { __builtin_trap(); }
#endif

/* Barriers and fences */
extern "C" __device__ void __syncthreads(void); /* a builtin */
RINGO_D int __syncthreads_count(int p) RINGO_BODY(return __nvvm_bar0_popc(p);)
RINGO_D int __syncthreads_and(int p) RINGO_BODY(return __nvvm_bar0_and(p);)
RINGO_D int __syncthreads_or(int p) RINGO_BODY(return __nvvm_bar0_or(p);)
RINGO_D void __syncwarp(unsigned mask = 0xffffffff) RINGO_BODY(__nvvm_bar_warp_sync(mask);)
RINGO_D void __threadfence_block(void) RINGO_BODY(__nvvm_membar_cta();)
RINGO_D void __threadfence(void) RINGO_BODY(__nvvm_membar_gl();)
RINGO_D void __threadfence_system(void) RINGO_BODY(__nvvm_membar_sys();)
RINGO_D void __nanosleep(unsigned ns) RINGO_BODY(asm volatile("nanosleep.u32 %0;" ::"r"(ns));)
RINGO_D void __trap(void) RINGO_BODY(asm volatile("trap;");)
RINGO_D long long clock64(void) RINGO_BODY(long long v; asm volatile("mov.u64 %0, %%clock64;" : "=l"(v)); return v;)
RINGO_D clock_t clock(void) RINGO_BODY(return (clock_t)clock64();)

RINGO_D size_t __cvta_generic_to_shared(const void *p) RINGO_BODY(size_t at; asm("cvta.to.shared.u64 %0, %1;" : "=l"(at) : "l"(p)); return at;)

/* Votes and shuffles */
RINGO_D unsigned __activemask(void) RINGO_BODY(unsigned v; asm volatile("activemask.b32 %0;" : "=r"(v)); return v;)
RINGO_D int __all_sync(unsigned mask, int p) RINGO_BODY(return __nvvm_vote_all_sync(mask, p);)
RINGO_D int __any_sync(unsigned mask, int p) RINGO_BODY(return __nvvm_vote_any_sync(mask, p);)
RINGO_D unsigned __ballot_sync(unsigned mask, int p) RINGO_BODY(return __nvvm_vote_ballot_sync(mask, p);)
RINGO_D unsigned __match_any_sync(unsigned mask, unsigned v) RINGO_BODY(unsigned d; asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(d) : "r"(v), "r"(mask)); return d;)
RINGO_D unsigned __match_any_sync(unsigned mask, int v) RINGO_BODY(return __match_any_sync(mask, (unsigned)v);)
RINGO_D unsigned __match_any_sync(unsigned mask, unsigned long long v) RINGO_BODY(unsigned d; asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(d) : "l"(v), "r"(mask)); return d;)
RINGO_D unsigned __reduce_add_sync(unsigned mask, unsigned v) RINGO_BODY(unsigned d; asm volatile("redux.sync.add.u32 %0, %1, %2;" : "=r"(d) : "r"(v), "r"(mask)); return d;)

#define RINGO_SHUFFLE(name, builtin, second, fill, kind)                                                                                                    \
	RINGO_D int name(unsigned mask, int v, second by, int width = 32) RINGO_BODY(return builtin##i32(mask, v, by, ((32 - width) << 8) | fill);)         \
	RINGO_D unsigned name(unsigned mask, unsigned v, second by, int width = 32) RINGO_BODY(return (unsigned)name(mask, (int)v, by, width);)              \
	RINGO_D float name(unsigned mask, float v, second by, int width = 32) RINGO_BODY(return builtin##f32(mask, v, by, ((32 - width) << 8) | fill);)     \
	RINGO_D long long name(unsigned mask, long long v, second by, int width = 32)                                                                       \
	RINGO_BODY(int low = name(mask, (int)v, by, width); int high = name(mask, (int)(v >> 32), by, width); return (long long)high << 32 | (unsigned)low;) \
	RINGO_D unsigned long long name(unsigned mask, unsigned long long v, second by, int width = 32)                                                     \
	RINGO_BODY(return (unsigned long long)name(mask, (long long)v, by, width);)                                                                         \
	RINGO_D long name(unsigned mask, long v, second by, int width = 32) RINGO_BODY(return (long)name(mask, (long long)v, by, width);)                    \
	RINGO_D unsigned long name(unsigned mask, unsigned long v, second by, int width = 32) RINGO_BODY(return (unsigned long)name(mask, (long long)v, by, width);) \
	RINGO_D double name(unsigned mask, double v, second by, int width = 32)                                                                             \
	RINGO_BODY(return __builtin_bit_cast(double, name(mask, __builtin_bit_cast(long long, v), by, width));)
RINGO_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_, int, 31, )
RINGO_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_, int, 31, )
RINGO_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_, unsigned, 31, )
RINGO_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_, unsigned, 0, )
#undef RINGO_SHUFFLE

/* Atomics: of the device, and with _block and _system of another scope */
#define RINGO_ATOMIC(name, op, type, register, c)                                                                                            \
	RINGO_D type name(type *p, type v)                                                                                                   \
	RINGO_BODY(type old; asm volatile("atom.gpu." op "." register " %0, [%1], %2;" : "=" c(old) : "l"(p), c(v) : "memory"); return old;) \
	RINGO_D type name##_block(type *p, type v)                                                                                           \
	RINGO_BODY(type old; asm volatile("atom.cta." op "." register " %0, [%1], %2;" : "=" c(old) : "l"(p), c(v) : "memory"); return old;) \
	RINGO_D type name##_system(type *p, type v)                                                                                          \
	RINGO_BODY(type old; asm volatile("atom.sys." op "." register " %0, [%1], %2;" : "=" c(old) : "l"(p), c(v) : "memory"); return old;)
RINGO_ATOMIC(atomicAdd, "add", int, "s32", "r")
RINGO_ATOMIC(atomicAdd, "add", unsigned, "u32", "r")
RINGO_ATOMIC(atomicAdd, "add", unsigned long long, "u64", "l")
RINGO_ATOMIC(atomicAdd, "add", float, "f32", "f")
RINGO_ATOMIC(atomicAdd, "add", double, "f64", "d")
RINGO_ATOMIC(atomicExch, "exch", int, "b32", "r")
RINGO_ATOMIC(atomicExch, "exch", unsigned, "b32", "r")
RINGO_ATOMIC(atomicExch, "exch", unsigned long long, "b64", "l")
RINGO_ATOMIC(atomicExch, "exch", float, "b32", "f")
RINGO_ATOMIC(atomicMin, "min", int, "s32", "r")
RINGO_ATOMIC(atomicMin, "min", unsigned, "u32", "r")
RINGO_ATOMIC(atomicMin, "min", long long, "s64", "l")
RINGO_ATOMIC(atomicMin, "min", unsigned long long, "u64", "l")
RINGO_ATOMIC(atomicMax, "max", int, "s32", "r")
RINGO_ATOMIC(atomicMax, "max", unsigned, "u32", "r")
RINGO_ATOMIC(atomicMax, "max", long long, "s64", "l")
RINGO_ATOMIC(atomicMax, "max", unsigned long long, "u64", "l")
RINGO_ATOMIC(atomicAnd, "and", int, "b32", "r")
RINGO_ATOMIC(atomicAnd, "and", unsigned, "b32", "r")
RINGO_ATOMIC(atomicAnd, "and", unsigned long long, "b64", "l")
RINGO_ATOMIC(atomicOr, "or", int, "b32", "r")
RINGO_ATOMIC(atomicOr, "or", unsigned, "b32", "r")
RINGO_ATOMIC(atomicOr, "or", unsigned long long, "b64", "l")
RINGO_ATOMIC(atomicXor, "xor", int, "b32", "r")
RINGO_ATOMIC(atomicXor, "xor", unsigned, "b32", "r")
RINGO_ATOMIC(atomicXor, "xor", unsigned long long, "b64", "l")
RINGO_ATOMIC(atomicInc, "inc", unsigned, "u32", "r")
RINGO_ATOMIC(atomicDec, "dec", unsigned, "u32", "r")
#undef RINGO_ATOMIC
RINGO_D int atomicSub(int *p, int v) RINGO_BODY(return atomicAdd(p, -v);)
RINGO_D int atomicSub_system(int *p, int v) RINGO_BODY(return atomicAdd_system(p, -v);)
RINGO_D unsigned atomicSub_system(unsigned *p, unsigned v) RINGO_BODY(return atomicAdd_system(p, 0u - v);)
RINGO_D unsigned atomicSub(unsigned *p, unsigned v) RINGO_BODY(return atomicAdd(p, 0u - v);)
#define RINGO_CAS(type, register, c)                                                                                                                           \
	RINGO_D type atomicCAS(type *p, type old, type v)                                                                                                      \
	RINGO_BODY(type was; asm volatile("atom.gpu.cas." register " %0, [%1], %2, %3;" : "=" c(was) : "l"(p), c(old), c(v) : "memory"); return was;)           \
	RINGO_D type atomicCAS_block(type *p, type old, type v)                                                                                                \
	RINGO_BODY(type was; asm volatile("atom.cta.cas." register " %0, [%1], %2, %3;" : "=" c(was) : "l"(p), c(old), c(v) : "memory"); return was;)           \
	RINGO_D type atomicCAS_system(type *p, type old, type v)                                                                                               \
	RINGO_BODY(type was; asm volatile("atom.sys.cas." register " %0, [%1], %2, %3;" : "=" c(was) : "l"(p), c(old), c(v) : "memory"); return was;)
RINGO_CAS(int, "b32", "r")
RINGO_CAS(unsigned, "b32", "r")
RINGO_CAS(unsigned long long, "b64", "l")
#undef RINGO_CAS

/* Loads that nothing changes meanwhile */
template <class T> RINGO_D T __ldg(const T *p) RINGO_BODY(
	static_assert(sizeof(T) <= 16 && !(sizeof(T) & (sizeof(T) - 1)), "__ldg loads 1, 2, 4, 8 or 16 bytes");
	unsigned long long v[2] = {};
	unsigned w;
	unsigned short h;
	T t;
	switch (sizeof(T)) {
	case 1: asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(w) : "l"(p)); v[0] = w; break;
	case 2: asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(h) : "l"(p)); v[0] = h; break;
	case 4: asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(w) : "l"(p)); v[0] = w; break;
	case 8: asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(v[0]) : "l"(p)); break;
	default: asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(v[0]), "=l"(v[1]) : "l"(p));
	}
	__builtin_memcpy(&t, v, sizeof t);
	return t;)
template <class T> RINGO_D T __ldcg(const T *p) RINGO_BODY(return *p;)
template <class T> RINGO_D T __ldcs(const T *p) RINGO_BODY(return *p;)

/* Bits */
RINGO_D int __popc(unsigned v) RINGO_BODY(return __builtin_popcount(v);)
RINGO_D int __popcll(unsigned long long v) RINGO_BODY(return __builtin_popcountll(v);)
RINGO_D int __clz(int v) RINGO_BODY(return v ? __builtin_clz((unsigned)v) : 32;)
RINGO_D int __clzll(long long v) RINGO_BODY(return v ? __builtin_clzll((unsigned long long)v) : 64;)
RINGO_D int __ffs(int v) RINGO_BODY(return v ? __builtin_ctz((unsigned)v) + 1 : 0;)
RINGO_D int __ffsll(long long v) RINGO_BODY(return v ? __builtin_ctzll((unsigned long long)v) + 1 : 0;)
RINGO_D unsigned __brev(unsigned v) RINGO_BODY(return __builtin_bitreverse32(v);)
RINGO_D unsigned long long __brevll(unsigned long long v) RINGO_BODY(return __builtin_bitreverse64(v);)
RINGO_D unsigned __byte_perm(unsigned a, unsigned b, unsigned s) RINGO_BODY(unsigned d; asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(s)); return d;)
RINGO_D unsigned umin(unsigned a, unsigned b) RINGO_BODY(return a < b ? a : b;)
RINGO_D unsigned umax(unsigned a, unsigned b) RINGO_BODY(return a > b ? a : b;)
RINGO_D unsigned __umulhi(unsigned a, unsigned b) RINGO_BODY(return (unsigned)((unsigned long long)a * b >> 32);)
RINGO_D int __mulhi(int a, int b) RINGO_BODY(return (int)((long long)a * b >> 32);)
RINGO_D unsigned long long __umul64hi(unsigned long long a, unsigned long long b) RINGO_BODY(return (unsigned long long)((unsigned __int128)a * b >> 64);)
RINGO_D int __mul24(int a, int b) RINGO_BODY(return (a << 8 >> 8) * (b << 8 >> 8);)
RINGO_D unsigned __umul24(unsigned a, unsigned b) RINGO_BODY(return (a & 0xffffff) * (b & 0xffffff);)
RINGO_D int __float_as_int(float v) RINGO_BODY(return __builtin_bit_cast(int, v);)
RINGO_D unsigned __float_as_uint(float v) RINGO_BODY(return __builtin_bit_cast(unsigned, v);)
RINGO_D float __int_as_float(int v) RINGO_BODY(return __builtin_bit_cast(float, v);)
RINGO_D float __uint_as_float(unsigned v) RINGO_BODY(return __builtin_bit_cast(float, v);)
RINGO_D long long __double_as_longlong(double v) RINGO_BODY(return __builtin_bit_cast(long long, v);)
RINGO_D double __longlong_as_double(long long v) RINGO_BODY(return __builtin_bit_cast(double, v);)
RINGO_D int __float2int_rn(float v) RINGO_BODY(int d; asm("cvt.rni.s32.f32 %0, %1;" : "=r"(d) : "f"(v)); return d;)
RINGO_D int __float2int_rz(float v) RINGO_BODY(return (int)v;)
RINGO_D float __int2float_rn(int v) RINGO_BODY(return (float)v;)
RINGO_D float __fadd_rn(float a, float b) RINGO_BODY(float d; asm("add.rn.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d;)
RINGO_D float __fmul_rn(float a, float b) RINGO_BODY(float d; asm("mul.rn.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d;)
RINGO_D float __fmaf_rn(float a, float b, float c) RINGO_BODY(return __builtin_fmaf(a, b, c);)
RINGO_D float __fdividef(float a, float b) RINGO_BODY(return a / b;)
RINGO_D float __saturatef(float v) RINGO_BODY(float d; asm("cvt.sat.f32.f32 %0, %1;" : "=f"(d) : "f"(v)); return d;)

/* Mathematics: what the hardware has. Exponentials, logarithms and angles are the hardware's approximations, less exact
   than NVIDIA's library. */
#define RINGO_ONE(name, single, twice)                        \
	RINGO_D float name##f(float x) RINGO_BODY(return single;) \
	RINGO_D float name(float x) RINGO_BODY(return single;)    \
	RINGO_D double name(double x) RINGO_BODY(return twice;)
RINGO_D float ringo_f32(float x) RINGO_BODY(return x;)
#define RINGO_PTX(op, x) ({ float d_; asm(op " %0, %1;" : "=f"(d_) : "f"(x)); d_; })
RINGO_ONE(sqrt, __builtin_sqrtf(x), __builtin_sqrt(x))
RINGO_ONE(fabs, __builtin_fabsf(x), __builtin_fabs(x))
RINGO_ONE(floor, __builtin_floorf(x), __builtin_floor(x))
RINGO_ONE(ceil, __builtin_ceilf(x), __builtin_ceil(x))
RINGO_ONE(trunc, __builtin_truncf(x), __builtin_trunc(x))
RINGO_ONE(rint, __builtin_rintf(x), __builtin_rint(x))
RINGO_D float rsqrtf(float x) RINGO_BODY(return 1 / __builtin_sqrtf(x);)
RINGO_D float expf(float x) RINGO_BODY(return RINGO_PTX("ex2.approx.f32", x * 1.4426950408889634f);)
RINGO_D float exp(float x) RINGO_BODY(return expf(x);)
RINGO_D float exp2f(float x) RINGO_BODY(return RINGO_PTX("ex2.approx.f32", x);)
RINGO_D float logf(float x) RINGO_BODY(return RINGO_PTX("lg2.approx.f32", x) * 0.6931471805599453f;)
RINGO_D float log(float x) RINGO_BODY(return logf(x);)
RINGO_D float log2f(float x) RINGO_BODY(return RINGO_PTX("lg2.approx.f32", x);)
RINGO_D float sinf(float x) RINGO_BODY(return RINGO_PTX("sin.approx.f32", x);)
RINGO_D float sin(float x) RINGO_BODY(return sinf(x);)
RINGO_D float cosf(float x) RINGO_BODY(return RINGO_PTX("cos.approx.f32", x);)
RINGO_D float cos(float x) RINGO_BODY(return cosf(x);)
RINGO_D float tanhf(float x) RINGO_BODY(return 1 - 2 / (expf(2 * x) + 1);)
RINGO_D float powf(float x, float y) RINGO_BODY(return exp2f(y * log2f(x));)
RINGO_D float __expf(float x) RINGO_BODY(return expf(x);)
RINGO_D float __logf(float x) RINGO_BODY(return logf(x);)
RINGO_D float __sinf(float x) RINGO_BODY(return sinf(x);)
RINGO_D float __cosf(float x) RINGO_BODY(return cosf(x);)
RINGO_D float __powf(float x, float y) RINGO_BODY(return powf(x, y);)
RINGO_D float fmaf(float a, float b, float c) RINGO_BODY(return __builtin_fmaf(a, b, c);)
RINGO_D float fma(float a, float b, float c) RINGO_BODY(return __builtin_fmaf(a, b, c);)
RINGO_D double fma(double a, double b, double c) RINGO_BODY(return __builtin_fma(a, b, c);)
RINGO_D float fminf(float a, float b) RINGO_BODY(return __builtin_fminf(a, b);)
RINGO_D float fmaxf(float a, float b) RINGO_BODY(return __builtin_fmaxf(a, b);)
RINGO_D float fmin(float a, float b) RINGO_BODY(return __builtin_fminf(a, b);)
RINGO_D float fmax(float a, float b) RINGO_BODY(return __builtin_fmaxf(a, b);)
RINGO_D double fmin(double a, double b) RINGO_BODY(return __builtin_fmin(a, b);)
RINGO_D double fmax(double a, double b) RINGO_BODY(return __builtin_fmax(a, b);)
#undef RINGO_ONE

#define RINGO_LESS(type)                                                                \
	static inline __host__ __device__ type min(type a, type b) { return b < a ? b : a; } \
	static inline __host__ __device__ type max(type a, type b) { return a < b ? b : a; }
RINGO_LESS(int)
RINGO_LESS(unsigned)
RINGO_LESS(long)
RINGO_LESS(unsigned long)
RINGO_LESS(long long)
RINGO_LESS(unsigned long long)
RINGO_LESS(float)
RINGO_LESS(double)
#undef RINGO_LESS

#endif
