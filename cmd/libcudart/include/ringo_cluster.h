/* ringo_cluster.h has the group of a cluster's threads, for cooperative_groups.h. A cluster has as many blocks as the
   launch asks for by cudaLaunchAttributeClusterDimension. */
#ifndef RINGO_CLUSTER_H
#define RINGO_CLUSTER_H

#ifdef __CUDA__
namespace cooperative_groups {

#define RINGO_REGISTER(name)                                    \
	([] {                                                   \
		unsigned v;                                     \
		asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); \
		return v;                                       \
	}())

struct cluster_group {
	struct arrival_token {
		int none;
	};
	static __device__ arrival_token barrier_arrive()
	{
		asm volatile("barrier.cluster.arrive;" ::: "memory");
		return arrival_token{0};
	}
	static __device__ void barrier_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
	static __device__ void barrier_wait(arrival_token &&) { barrier_wait(); }
	static __device__ void sync()
	{
		barrier_arrive();
		barrier_wait();
	}
	/* The variable of another block that corresponds to one in this block's shared memory, and whose block an address is of. */
	template <class T> static __device__ T *map_shared_rank(T *p, int rank)
	{
		T *there;
		asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
		return there;
	}
	static __device__ unsigned query_shared_rank(const void *p)
	{
		unsigned rank;
		asm("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(p));
		return rank;
	}
	static __device__ dim3 dim_blocks() { return dim3(RINGO_REGISTER("cluster_nctaid.x"), RINGO_REGISTER("cluster_nctaid.y"), RINGO_REGISTER("cluster_nctaid.z")); }
	static __device__ dim3 block_index() { return dim3(RINGO_REGISTER("cluster_ctaid.x"), RINGO_REGISTER("cluster_ctaid.y"), RINGO_REGISTER("cluster_ctaid.z")); }
	static __device__ unsigned num_blocks() { return RINGO_REGISTER("cluster_nctarank"); }
	static __device__ unsigned block_rank() { return RINGO_REGISTER("cluster_ctarank"); }
	static __device__ dim3 dim_threads()
	{
		dim3 n = dim_blocks();
		return dim3(n.x * blockDim.x, n.y * blockDim.y, n.z * blockDim.z);
	}
	static __device__ dim3 thread_index()
	{
		dim3 at = block_index();
		return dim3(at.x * blockDim.x + threadIdx.x, at.y * blockDim.y + threadIdx.y, at.z * blockDim.z + threadIdx.z);
	}
	static __device__ unsigned num_threads() { return num_blocks() * thread_block::size(); }
	static __device__ unsigned size() { return num_threads(); }
	static __device__ unsigned thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
};
#undef RINGO_REGISTER
RINGO_D cluster_group this_cluster() { return cluster_group(); }

} // namespace cooperative_groups
#endif

#endif
