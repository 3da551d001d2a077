/* cooperative_groups.h has groups of threads that wait for each other: a block, a cluster, a grid of a cooperative launch,
   and tiles of a warp and of several. */
#ifndef RINGO_COOPERATIVE_GROUPS_H
#define RINGO_COOPERATIVE_GROUPS_H

#include "cuda_runtime.h"

#ifdef __CUDA__
namespace cooperative_groups {

struct thread_block {
	static __device__ void sync() { __syncthreads(); }
	static __device__ unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
	static __device__ unsigned num_threads() { return size(); }
	static __device__ unsigned thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
};
RINGO_D thread_block this_thread_block() { return thread_block(); }

/* What tiles of several warps share, of a block of at most N threads: where each warp has a value, and how many warps of
   each tile have come, in all rounds. */
template <unsigned N = 1024> struct block_tile_memory {
	ulonglong2 value[(N + 31) / 32];
	unsigned came[(N + 63) / 64];
};
struct ringo_tiled_block : thread_block {
	ulonglong2 *value;
	unsigned *came;
};
template <unsigned N> RINGO_D ringo_tiled_block this_thread_block(block_tile_memory<N> &memory)
{
	for (unsigned i = thread_block::thread_rank(); i < sizeof memory.came / sizeof *memory.came; i += thread_block::size())
		memory.came[i] = 0;
	__syncthreads();
	ringo_tiled_block b;
	b.value = memory.value, b.came = memory.came;
	return b;
}

struct grid_group {
	static __device__ unsigned num_blocks() { return gridDim.x * gridDim.y * gridDim.z; }
	static __device__ unsigned block_rank() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
	static __device__ unsigned long long size() { return (unsigned long long)num_blocks() * thread_block::size(); }
	static __device__ unsigned long long thread_rank() { return (unsigned long long)block_rank() * thread_block::size() + thread_block::thread_rank(); }
	static __device__ bool is_valid() { return workspace() != nullptr; }
	/* The driver's memory for the launch has the number of blocks that have come, in all rounds. */
	static __device__ unsigned *workspace()
	{
		unsigned high, low;
		asm("mov.u32 %0, %%envreg1;" : "=r"(high));
		asm("mov.u32 %0, %%envreg2;" : "=r"(low));
		return (unsigned *)((unsigned long long)high << 32 | low);
	}
	static __device__ void sync()
	{
		__syncthreads();
		if (thread_block::thread_rank() == 0) {
			unsigned *came = workspace();
			__threadfence();
			unsigned round = atomicAdd(came, 1) / num_blocks();
			while (atomicAdd(came, 0) / num_blocks() == round) {
			}
			__threadfence();
		}
		__syncthreads();
	}
};
RINGO_D grid_group this_grid() { return grid_group(); }
template <class G> RINGO_D void sync(const G &group) { group.sync(); }

/* A tile is N neighbouring threads of a warp, N a power of 2. */
template <unsigned N> struct thread_block_tile {
	static __device__ unsigned size() { return N; }
	static __device__ unsigned num_threads() { return N; }
	static __device__ unsigned thread_rank() { return thread_block::thread_rank() % N; }
	static __device__ unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
	static __device__ unsigned meta_group_rank() { return thread_block::thread_rank() / N; }
	static __device__ unsigned mask() { return (N == 32 ? 0xffffffff : (1u << N % 32) - 1) << thread_block::thread_rank() % 32 / N * N; }
	static __device__ void sync() { __syncwarp(mask()); }
#define RINGO_TILE_SHUFFLE(name, second)                                                       \
	template <class T> static __device__ T name(T v, second by)                            \
	{                                                                                      \
		if constexpr (__is_class(T)) {                                                 \
			unsigned words[(sizeof(T) + 3) / 4] = {};                              \
			__builtin_memcpy(words, &v, sizeof v);                                 \
			for (unsigned &w : words)                                              \
				w = __##name##_sync(mask(), w, by, N);                         \
			__builtin_memcpy(&v, words, sizeof v);                                 \
			return v;                                                              \
		} else                                                                         \
			return __##name##_sync(mask(), v, by, N);                              \
	}
	RINGO_TILE_SHUFFLE(shfl, int)
	RINGO_TILE_SHUFFLE(shfl_down, unsigned)
	RINGO_TILE_SHUFFLE(shfl_up, unsigned)
	RINGO_TILE_SHUFFLE(shfl_xor, int)
#undef RINGO_TILE_SHUFFLE
	static __device__ int any(int p) { return __any_sync(mask(), p); }
	static __device__ int all(int p) { return __all_sync(mask(), p); }
	static __device__ unsigned ballot(int p) { return (__ballot_sync(mask(), p) & mask()) >> thread_block::thread_rank() % 32 / N * N; }
};
template <unsigned N> struct ringo_wide_tile {
	ulonglong2 *value;
	unsigned *came;
	static __device__ unsigned size() { return N; }
	static __device__ unsigned num_threads() { return N; }
	static __device__ unsigned thread_rank() { return thread_block::thread_rank() % N; }
	static __device__ unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
	static __device__ unsigned meta_group_rank() { return thread_block::thread_rank() / N; }
	template <class T> __device__ T *values() const { return (T *)(value + thread_block::thread_rank() / N * (N / 32)); }
	__device__ void sync() const
	{
		__syncwarp();
		if (thread_block::thread_rank() % 32 == 0) {
			unsigned *mine = came + meta_group_rank(), warps = N / 32;
			__threadfence_block();
			unsigned round = atomicAdd(mine, 1) / warps;
			while (atomicAdd(mine, 0) / warps == round) {
			}
			__threadfence_block();
		}
		__syncwarp();
	}
};
template <> struct thread_block_tile<64> : ringo_wide_tile<64> {};
template <> struct thread_block_tile<128> : ringo_wide_tile<128> {};
template <> struct thread_block_tile<256> : ringo_wide_tile<256> {};
template <> struct thread_block_tile<512> : ringo_wide_tile<512> {};
template <unsigned N, class G> RINGO_D thread_block_tile<N> tiled_partition(const G &) { return thread_block_tile<N>(); }
template <unsigned N> RINGO_D thread_block_tile<N> tiled_partition(const ringo_tiled_block &b)
{
	thread_block_tile<N> tile;
	if constexpr (N > 32)
		tile.value = b.value, tile.came = b.came;
	return tile;
}

} // namespace cooperative_groups
#include "ringo_cluster.h"
#endif

#endif
