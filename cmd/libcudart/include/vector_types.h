/* vector_types.h has the short vectors and dim3. */
#ifndef RINGO_VECTOR_TYPES_H
#define RINGO_VECTOR_TYPES_H

#include "host_defines.h"

#define RINGO_VECTORS(name, type, a2, a4)                                    \
	struct name##1 { type x; };                                          \
	struct __attribute__((aligned(a2))) name##2 { type x, y; };          \
	struct name##3 { type x, y, z; };                                    \
	struct __attribute__((aligned(a4))) name##4 { type x, y, z, w; };    \
	typedef struct name##1 name##1;                                      \
	typedef struct name##2 name##2;                                      \
	typedef struct name##3 name##3;                                      \
	typedef struct name##4 name##4;

RINGO_VECTORS(char, signed char, 2, 4)
RINGO_VECTORS(uchar, unsigned char, 2, 4)
RINGO_VECTORS(short, short, 4, 8)
RINGO_VECTORS(ushort, unsigned short, 4, 8)
RINGO_VECTORS(int, int, 8, 16)
RINGO_VECTORS(uint, unsigned int, 8, 16)
RINGO_VECTORS(long, long, 16, 16)
RINGO_VECTORS(ulong, unsigned long, 16, 16)
RINGO_VECTORS(longlong, long long, 16, 16)
RINGO_VECTORS(ulonglong, unsigned long long, 16, 16)
RINGO_VECTORS(float, float, 8, 16)
RINGO_VECTORS(double, double, 16, 16)

struct dim3 {
	unsigned int x, y, z;
#ifdef __cplusplus
	__host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
	__host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
	__host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;

#endif
