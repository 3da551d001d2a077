// vec_t as FlashInfer's kernels use it, for compilers without the types of 8 bits that its own header wants: 16 bytes, moved at
// once.
#pragma once
#include <stdint.h>

namespace flashinfer {
template <typename T, unsigned N>
struct vec_t {
	static_assert(N * sizeof(T) == 16, "16 bytes");
	alignas(16) T data[N];
	__device__ T &operator[](int i) { return data[i]; }
	__device__ const T &operator[](int i) const { return data[i]; }
	__device__ void fill(T v)
	{
		for (unsigned i = 0; i < N; i++)
			data[i] = v;
	}
	__device__ void load(const T *p) { *(int4 *)data = *(const int4 *)p; }
	__device__ void store(T *p) const { *(int4 *)p = *(const int4 *)data; }
	template <typename P>
	__device__ void load_global_volatile(const P *p)
	{
		int4 &v = *(int4 *)data;
		asm volatile("ld.volatile.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
	}
	template <typename P>
	__device__ void store_global_volatile(P *p) const
	{
		const int4 &v = *(const int4 *)data;
		asm volatile("st.volatile.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
	}
};
} // namespace flashinfer
