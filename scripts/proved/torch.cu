// torch runs PyTorch's all-reduces in symmetric memory, kernels as they are: HEADER is CUDASymmetricMemory-inl.h, KERNELS the
// kernels that "proved" cuts out of CUDASymmetricMemoryOps.cu, whose other lines need PyTorch.
//
//	-DSHOTS=1, or 2 (which adds up in place), -DRANKS=2 or 4, -DTYPE=float or at::BFloat16
#include <array>
#include <atomic>
#include <stdio.h>

#include <cuda_runtime.h>
#include HEADER
using namespace c10d::symmetric_memory;
#include KERNELS

#include "ranks.h"

#ifndef RANKS
#define RANKS 4
#endif
#ifndef TYPE
#define TYPE float
#endif

int main(int argc, char **argv)
{
	options(argc, argv);
	Ranks<RANKS> ranks;
	constexpr int n = 1200, blocks = 2;
	TYPE *in[RANKS], *out[RANKS];
	uint32_t *pads[RANKS];
	TYPE **buffers[RANKS];
	uint32_t **signals[RANKS];
	for (int r = 0; r < RANKS; r++) {
		in[r] = (TYPE *)ranks.memory(r, n * sizeof(TYPE));
		out[r] = (TYPE *)ranks.memory(r, n * sizeof(TYPE));
		pads[r] = (uint32_t *)ranks.memory(r, blocks * RANKS * sizeof(uint32_t));
	}
	for (int r = 0; r < RANKS; r++) {
		buffers[r] = (TYPE **)ranks.memory(r, sizeof in);
		signals[r] = (uint32_t **)ranks.memory(r, sizeof pads);
		CHECK(cudaMemcpy(buffers[r], in, sizeof in, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(signals[r], pads, sizeof pads, cudaMemcpyHostToDevice));
	}
	ranks.wait();
	int bad = 0;
	for (int round = 0; round < rounds; round++) {
		ranks.input(in, n, round);
		for (int r = 0; r < RANKS; r++) {
			CHECK(cudaSetDevice(r));
#if SHOTS == 2
			two_shot_all_reduce_kernel<TYPE, 16, RANKS><<<blocks, 64, 0, ranks.stream[r]>>>(buffers[r], 0, n, signals[r], r, RANKS);
#else
			one_shot_all_reduce_kernel<TYPE, 16, RANKS><<<blocks, 64, 0, ranks.stream[r]>>>(buffers[r], out[r], 0, n, signals[r], r, RANKS);
#endif
			CHECK(cudaGetLastError());
		}
#if SHOTS == 2
		for (int r = 0; r < RANKS; r++)
			bad += ranks.wrong(r, in[r], n, round);
#else
		if (round == rounds - 1)
			for (int r = 0; r < RANKS; r++)
				bad += ranks.wrong(r, out[r], n, round);
#endif
	}
	ranks.close();
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		for (void *p : {(void *)in[r], (void *)out[r], (void *)pads[r], (void *)buffers[r], (void *)signals[r]})
			CHECK(cudaFree(p));
	}
	return verdict(bad);
}
