/* cuda_bf16.h is the type __nv_bfloat16 for C++: a float's upper half, rounded to the nearest. */
#ifndef RINGO_CUDA_BF16_H
#define RINGO_CUDA_BF16_H

#include "cuda_fp16.h"

#define __CUDA_BF16_TYPES_EXIST__

RINGO_HD unsigned short ringo_bf16(float x)
{
	unsigned b = __builtin_bit_cast(unsigned, x);
	if ((b & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
/* ringo_odd is a float that rounds to bfloat16 as the double does: cut off, with a last bit of 1 if it is not exact. */
RINGO_HD float ringo_odd(double x)
{
	float f = (float)x;
	unsigned b = __builtin_bit_cast(unsigned, f);
	if ((double)f == x || f != f)
		return f;
	if (__builtin_fabs((double)f) > __builtin_fabs(x))
		b--;
	return __builtin_bit_cast(float, b | 1);
}

struct __nv_bfloat16_raw {
	unsigned short x;
};
struct __align__(2) __nv_bfloat16 {
	unsigned short bits;
	__nv_bfloat16() = default;
	__host__ __device__ constexpr __nv_bfloat16(__nv_bfloat16_raw r) : bits(r.x) {}
	__host__ __device__ __nv_bfloat16(float x) : bits(ringo_bf16(x)) {}
	__host__ __device__ __nv_bfloat16(double x) : bits(ringo_bf16(ringo_odd(x))) {}
	__host__ __device__ __nv_bfloat16(int x) : __nv_bfloat16((double)x) {}
	__host__ __device__ __nv_bfloat16(unsigned x) : __nv_bfloat16((double)x) {}
	__host__ __device__ operator float() const { return __builtin_bit_cast(float, (unsigned)bits << 16); }
};
typedef __nv_bfloat16 nv_bfloat16;
struct __align__(4) __nv_bfloat162 {
	__nv_bfloat16 x, y;
};

RINGO_HD __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
RINGO_HD __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
RINGO_HD __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
RINGO_HD __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16(x); }
RINGO_HD float __bfloat162float(__nv_bfloat16 x) { return (float)x; }

/* Sums and products of two are exact in a float as far as rounding them to 8 bits goes. */
#define RINGO_BF16(op) __nv_bfloat16((float)a op (float)b)
RINGO_OPS(__nv_bfloat16, RINGO_BF16)
#undef RINGO_BF16
/* The product of two is exact in a double; the sum is rounded to odd before it is rounded. */
RINGO_HD __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
	return __nv_bfloat16((double)(float)a * (double)(float)b + (double)(float)c);
}
RINGO_HD __nv_bfloat16 __ushort_as_bfloat16(unsigned short b) { return __builtin_bit_cast(__nv_bfloat16, b); }
RINGO_HD unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
RINGO_HD __nv_bfloat16 __hneg(__nv_bfloat16 a) { return __ushort_as_bfloat16(a.bits ^ 0x8000); }

RINGO_PAIRS(__nv_bfloat162)
typedef __nv_bfloat162 nv_bfloat162;
RINGO_HD __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
RINGO_HD __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
RINGO_HD __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
RINGO_HD __nv_bfloat162 __float2bfloat162_rn(float a) { return {__nv_bfloat16(a), __nv_bfloat16(a)}; }
RINGO_HD __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
RINGO_HD __nv_bfloat162 __float22bfloat162_rn(float2 a) { return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)}; }
RINGO_HD float2 __bfloat1622float2(__nv_bfloat162 a) { return {(float)a.x, (float)a.y}; }
RINGO_HD __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
RINGO_HD __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
RINGO_HD float __low2float(__nv_bfloat162 a) { return (float)a.x; }
RINGO_HD float __high2float(__nv_bfloat162 a) { return (float)a.y; }

#endif
