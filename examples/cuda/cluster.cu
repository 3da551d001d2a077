// cluster counts how often each byte occurs. The blocks of a cluster share the counts: each has some of them in its
// shared memory, and all add there.
//
//	build/cuda/bin/nvcc -o cluster examples/cuda/cluster.cu && ringo emulate -allow cudaLaunchKernelExC=cudaErrorInvalidClusterSize -- ./cluster
//
// With -DWRONG the last barrier is missing, so a block may end while others still add to its counts.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

enum { blocks = 4, threads = 64, each = 256 / blocks, n = 20000 };

__global__ void count(unsigned *counts, const unsigned char *data)
{
	__shared__ unsigned mine[each];
	cg::cluster_group cluster = cg::this_cluster();
	for (unsigned i = threadIdx.x; i < each; i += blockDim.x)
		mine[i] = 0;
	cluster.sync(); // all blocks have begun, and all counts are zero
	unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
	for (unsigned i = first; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(cluster.map_shared_rank(mine, data[i] / each) + data[i] % each, 1u);
#ifndef WRONG
	cluster.sync(); // all have added
#else
	__syncthreads();
#endif
	for (unsigned i = threadIdx.x; i < each; i += blockDim.x)
		atomicAdd(&counts[cluster.block_rank() * each + i], mine[i]); // THE SUM
}

int main()
{
	std::vector<unsigned char> data(n);
	std::vector<unsigned> want(256), got(256);
	for (int i = 0; i < n; i++)
		want[data[i] = i * i / 7]++;

	unsigned *counts;
	unsigned char *bytes;
	CHECK(cudaMalloc(&counts, 256 * sizeof(unsigned)));
	CHECK(cudaMalloc(&bytes, n));
	CHECK(cudaMemset(counts, 0, 256 * sizeof(unsigned)));
	CHECK(cudaMemcpy(bytes, data.data(), n, cudaMemcpyHostToDevice));

	cudaLaunchAttribute attribute;
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim = {blocks, 1, 1};
	cudaLaunchConfig_t config = {};
	config.gridDim = 2 * blocks;
	config.blockDim = threads;
	config.attrs = &attribute;
	config.numAttrs = 1;
	int most, active;
	CHECK(cudaOccupancyMaxPotentialClusterSize(&most, count, &config));
	CHECK(cudaOccupancyMaxActiveClusters(&active, count, &config));
	WANT(most >= blocks && active >= 1);
	CHECK(cudaLaunchKernelEx(&config, count, counts, (const unsigned char *)bytes));
	CHECK(cudaMemcpy(got.data(), counts, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
	WANT(got == want);

	config.gridDim = 2 * blocks + 1;
	WANT(cudaLaunchKernelEx(&config, count, counts, (const unsigned char *)bytes) == cudaErrorInvalidClusterSize);
	WANT(cudaGetLastError() == cudaErrorInvalidClusterSize);

	CHECK(cudaFree(counts));
	CHECK(cudaFree(bytes));
	printf("%d bytes are counted by clusters of %d blocks\n", n, blocks);
}
