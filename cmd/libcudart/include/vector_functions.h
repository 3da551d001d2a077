/* vector_functions.h has make_float4 and its like. */
#ifndef RINGO_VECTOR_FUNCTIONS_H
#define RINGO_VECTOR_FUNCTIONS_H

#include "vector_types.h"

#define RINGO_MAKERS(name, type)                                                                                     \
	static inline __host__ __device__ name##1 make_##name##1(type x) { name##1 v; v.x = x; return v; }           \
	static inline __host__ __device__ name##2 make_##name##2(type x, type y)                                     \
	{                                                                                                            \
		name##2 v;                                                                                           \
		v.x = x, v.y = y;                                                                                    \
		return v;                                                                                            \
	}                                                                                                            \
	static inline __host__ __device__ name##3 make_##name##3(type x, type y, type z)                             \
	{                                                                                                            \
		name##3 v;                                                                                           \
		v.x = x, v.y = y, v.z = z;                                                                           \
		return v;                                                                                            \
	}                                                                                                            \
	static inline __host__ __device__ name##4 make_##name##4(type x, type y, type z, type w)                     \
	{                                                                                                            \
		name##4 v;                                                                                           \
		v.x = x, v.y = y, v.z = z, v.w = w;                                                                  \
		return v;                                                                                            \
	}

RINGO_MAKERS(char, signed char)
RINGO_MAKERS(uchar, unsigned char)
RINGO_MAKERS(short, short)
RINGO_MAKERS(ushort, unsigned short)
RINGO_MAKERS(int, int)
RINGO_MAKERS(uint, unsigned int)
RINGO_MAKERS(long, long)
RINGO_MAKERS(ulong, unsigned long)
RINGO_MAKERS(longlong, long long)
RINGO_MAKERS(ulonglong, unsigned long long)
RINGO_MAKERS(float, float)
RINGO_MAKERS(double, double)
#undef RINGO_MAKERS

#endif
