/* cooperative_groups/reduce.h has the threads of a tile reduce their values: each gets the result. */
#ifndef RINGO_COOPERATIVE_GROUPS_REDUCE_H
#define RINGO_COOPERATIVE_GROUPS_REDUCE_H

#include "../cooperative_groups.h"

#ifdef __CUDA__
namespace cooperative_groups {

#define RINGO_OPERATOR(name, result)                                               \
	template <class T> struct name {                                           \
		__device__ T operator()(T a, T b) const { return result; }         \
	};
RINGO_OPERATOR(plus, a + b)
RINGO_OPERATOR(less, b < a ? b : a)
RINGO_OPERATOR(greater, a < b ? b : a)
RINGO_OPERATOR(bit_and, a & b)
RINGO_OPERATOR(bit_or, a | b)
RINGO_OPERATOR(bit_xor, a ^ b)
#undef RINGO_OPERATOR

template <unsigned N, class T, class F> RINGO_D T reduce(const thread_block_tile<N> &tile, T v, F f)
{
	for (unsigned by = (N < 32 ? N : 32) / 2; by > 0; by /= 2)
		v = f(v, thread_block_tile<(N < 32 ? N : 32)>::shfl_xor(v, by));
	if constexpr (N > 32) {
		T *of = tile.template values<T>();
		if (thread_block::thread_rank() % 32 == 0)
			of[tile.thread_rank() / 32] = v;
		tile.sync();
		v = of[0];
		for (unsigned warp = 1; warp < N / 32; warp++)
			v = f(v, of[warp]);
		tile.sync();
	}
	return v;
}

} // namespace cooperative_groups
#endif

#endif
