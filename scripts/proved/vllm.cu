// vllm runs the kernels of vLLM's custom all-reduce as they are, SOURCE being its custom_all_reduce.cuh at some commit:
//
//	nvcc -DSOURCE='"custom_all_reduce.cuh"' -DKERNEL=cross_device_reduce_2stage -DRANKS=4 vllm.cu
//
// -DMETADATA is for commits before #2760, whose flags lie in Metadata; -DTYPE=float or half.
#include <array>
#include <string>

#include SOURCE

#include "ranks.h"

#ifndef RANKS
#define RANKS 4
#endif
#ifndef KERNEL
#define KERNEL cross_device_reduce_2stage
#endif
#ifndef TYPE
#define TYPE half
#endif
#ifdef METADATA
using Flags = vllm::Metadata;
#define SIGNAL(flags) (&(flags)->sg)
#else
using Flags = vllm::Signal;
#define SIGNAL(flags) (flags)
#endif

int main(int argc, char **argv)
{
	options(argc, argv);
	Ranks<RANKS> ranks;
	constexpr int packs = 150, n = packs * vllm::packed_t<TYPE>::P::size; // the last rank's part is larger
	TYPE *in[RANKS], *out[2][RANKS];
	Flags *flags[RANKS];
	vllm::RankData *table[RANKS], data;
	vllm::RankSignals signals;
	for (int r = 0; r < RANKS; r++) {
		in[r] = (TYPE *)ranks.memory(r, n * sizeof(TYPE));
		out[0][r] = (TYPE *)ranks.memory(r, n * sizeof(TYPE));
		out[1][r] = (TYPE *)ranks.memory(r, n * sizeof(TYPE));
		flags[r] = (Flags *)ranks.memory(r, sizeof(Flags) + n * sizeof(TYPE));
		table[r] = (vllm::RankData *)ranks.memory(r, sizeof(vllm::RankData));
		data.ptrs[r] = in[r];
		signals.signals[r] = SIGNAL(flags[r]);
	}
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaMemcpy(table[r], &data, sizeof data, cudaMemcpyHostToDevice));
	}
	ranks.wait();
	int bad = 0;
	for (int round = 0; round < rounds; round++) {
		ranks.input(in, n, round);
		for (int r = 0; r < RANKS; r++) {
			CHECK(cudaSetDevice(r));
			vllm::KERNEL<TYPE, RANKS><<<2, 64, 0, ranks.stream[r]>>>(table[r], signals, flags[r], out[round % 2][r], r, packs);
			CHECK(cudaGetLastError());
		}
		if (round % 2 == 1 || round == rounds - 1)
			for (int r = 0; r < RANKS; r++) {
				if (round % 2 == 1)
					bad += ranks.wrong(r, out[0][r], n, round - 1);
				bad += ranks.wrong(r, out[round % 2][r], n, round);
			}
	}
	ranks.close();
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		for (void *p : {(void *)in[r], (void *)out[0][r], (void *)out[1][r], (void *)flags[r], (void *)table[r]})
			CHECK(cudaFree(p));
	}
	return verdict(bad);
}
