// What the headers of PyTorch's symmetric memory use of ATen, for kernels alone.
#pragma once
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <tuple>
#include <type_traits>

namespace at {
struct BFloat16 {
	uint16_t bits;
	BFloat16() = default;
	__host__ __device__ explicit BFloat16(float f)
	{
		uint32_t b;
		memcpy(&b, &f, 4);
		bits = (b + 0x7fff + (b >> 16 & 1)) >> 16;
	}
	__host__ __device__ explicit operator float() const
	{
		uint32_t b = uint32_t(bits) << 16;
		float f;
		memcpy(&f, &b, 4);
		return f;
	}
};
template <typename T>
__host__ __device__ constexpr T round_up(T a, T b) { return (a + b - 1) / b * b; }
} // namespace at
#define CUDA_KERNEL_ASSERT(c) assert(c)
