/* cuda_fp16.h is the type half for C++, by the compiler's _Float16: conversions, arithmetic, comparisons. */
#ifndef RINGO_CUDA_FP16_H
#define RINGO_CUDA_FP16_H

#include "cuda_runtime.h"

#define __CUDA_FP16_TYPES_EXIST__
#define RINGO_HD static inline __host__ __device__

struct __half_raw {
	unsigned short x;
};
struct __half {
	_Float16 v;
	__half() = default;
	__host__ __device__ constexpr __half(__half_raw r) : v(__builtin_bit_cast(_Float16, r.x)) {}
	__host__ __device__ __half(float x) : v((_Float16)x) {}
	__host__ __device__ __half(double x) : v((_Float16)x) {}
	__host__ __device__ __half(int x) : v((_Float16)x) {}
	__host__ __device__ __half(unsigned x) : v((_Float16)x) {}
	__host__ __device__ __half(long long x) : v((_Float16)x) {}
	__host__ __device__ __half(unsigned long long x) : v((_Float16)x) {}
	__host__ __device__ __half(long x) : v((_Float16)x) {}
	__host__ __device__ __half(unsigned long x) : v((_Float16)x) {}
	__host__ __device__ operator float() const { return (float)v; }
};
typedef __half half;
struct __align__(4) __half2 {
	__half x, y;
};
typedef __half2 half2;

RINGO_HD __half ringo_half(_Float16 v)
{
	__half h;
	h.v = v;
	return h;
}
RINGO_HD __half __float2half(float x) { return __half(x); }
RINGO_HD __half __float2half_rn(float x) { return __half(x); }
RINGO_HD __half __double2half(double x) { return __half(x); }
RINGO_HD __half __int2half_rn(int x) { return __half(x); }
RINGO_HD __half __uint2half_rn(unsigned x) { return __half(x); }
RINGO_HD __half __ll2half_rn(long long x) { return __half(x); }
RINGO_HD __half __ull2half_rn(unsigned long long x) { return __half(x); }
RINGO_HD float __half2float(__half h) { return (float)h.v; }
RINGO_HD int __half2int_rz(__half h) { return (int)h.v; }
RINGO_HD unsigned short __half_as_ushort(__half h) { return __builtin_bit_cast(unsigned short, h.v); }
RINGO_HD __half __ushort_as_half(unsigned short b) { return ringo_half(__builtin_bit_cast(_Float16, b)); }

#define RINGO_OPS(type, make)                                                                          \
	RINGO_HD type operator+(type a, type b) { return make(+); }                                    \
	RINGO_HD type operator-(type a, type b) { return make(-); }                                    \
	RINGO_HD type operator*(type a, type b) { return make(*); }                                    \
	RINGO_HD type operator/(type a, type b) { return make(/); }                                    \
	RINGO_HD type &operator+=(type &a, type b) { return a = a + b; }                               \
	RINGO_HD type &operator*=(type &a, type b) { return a = a * b; }                               \
	RINGO_HD type __hadd(type a, type b) { return a + b; }                                         \
	RINGO_HD type __hsub(type a, type b) { return a - b; }                                         \
	RINGO_HD type __hmul(type a, type b) { return a * b; }                                         \
	RINGO_HD type __hdiv(type a, type b) { return a / b; }                                         \
	RINGO_HD bool __hlt(type a, type b) { return (float)a < (float)b; }                            \
	RINGO_HD bool __hgt(type a, type b) { return (float)a > (float)b; }                            \
	RINGO_HD bool __hle(type a, type b) { return (float)a <= (float)b; }                           \
	RINGO_HD bool __hge(type a, type b) { return (float)a >= (float)b; }                           \
	RINGO_HD bool __heq(type a, type b) { return (float)a == (float)b; }                           \
	RINGO_HD bool __hisnan(type a) { return (float)a != (float)a; }                                \
	RINGO_HD type __hmin(type a, type b) { return __hisnan(a) || __hlt(b, a) ? __hisnan(b) ? a : b : a; } \
	RINGO_HD type __hmax(type a, type b) { return __hisnan(a) || __hgt(b, a) ? __hisnan(b) ? a : b : a; }
#define RINGO_HALF(op) ringo_half(a.v op b.v)
RINGO_OPS(__half, RINGO_HALF)
#undef RINGO_HALF
RINGO_HD __half __hfma(__half a, __half b, __half c) { return __half(__builtin_fma((double)a.v, (double)b.v, (double)c.v)); }
RINGO_HD __half __hneg(__half a) { return ringo_half(-a.v); }

/* Pairs: each operation is that of both elements. */
#define RINGO_PAIRS(pair)                                                                              \
	RINGO_HD pair operator+(pair a, pair b) { return {a.x + b.x, a.y + b.y}; }                     \
	RINGO_HD pair operator-(pair a, pair b) { return {a.x - b.x, a.y - b.y}; }                     \
	RINGO_HD pair operator*(pair a, pair b) { return {a.x * b.x, a.y * b.y}; }                     \
	RINGO_HD pair operator/(pair a, pair b) { return {a.x / b.x, a.y / b.y}; }                     \
	RINGO_HD pair &operator+=(pair &a, pair b) { return a = a + b; }                               \
	RINGO_HD pair &operator*=(pair &a, pair b) { return a = a * b; }                               \
	RINGO_HD pair __hadd2(pair a, pair b) { return a + b; }                                        \
	RINGO_HD pair __hsub2(pair a, pair b) { return a - b; }                                        \
	RINGO_HD pair __hmul2(pair a, pair b) { return a * b; }                                        \
	RINGO_HD pair __h2div(pair a, pair b) { return a / b; }                                        \
	RINGO_HD pair __hfma2(pair a, pair b, pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
	RINGO_HD pair __hmin2(pair a, pair b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }         \
	RINGO_HD pair __hmax2(pair a, pair b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }         \
	RINGO_HD pair __hneg2(pair a) { return {__hneg(a.x), __hneg(a.y)}; }
RINGO_PAIRS(__half2)
RINGO_HD __half2 __halves2half2(__half a, __half b) { return {a, b}; }
RINGO_HD __half2 make_half2(__half a, __half b) { return {a, b}; }
RINGO_HD __half2 __half2half2(__half a) { return {a, a}; }
RINGO_HD __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
RINGO_HD __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
RINGO_HD __half2 __float22half2_rn(float2 a) { return {__half(a.x), __half(a.y)}; }
RINGO_HD float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
RINGO_HD __half __low2half(__half2 a) { return a.x; }
RINGO_HD __half __high2half(__half2 a) { return a.y; }
RINGO_HD float __low2float(__half2 a) { return (float)a.x; }
RINGO_HD float __high2float(__half2 a) { return (float)a.y; }

#endif
