// deepep runs DeepEP's dispatch and combine within a host, kernels and launches as they are: SOURCE is
// csrc/kernels/legacy/intranode.cu, compiled with -DDISABLE_SM90_FEATURES, as DeepEP itself is for GPUs before Hopper.
//
// Each rank has tokens, and sends each to some ranks; their experts give back what they got, and a token's sum is its value
// times the ranks it was sent to.
#include <algorithm>
#include <cstdint>

#include SOURCE

#include "ranks.h"

#ifndef RANKS
#define RANKS 4
#endif

using namespace deep_ep::legacy;

constexpr int tokens = 32 * RANKS, hidden = 256, blocks = 4, channels = blocks / 2, experts = 2 * RANKS;
// Tokens that a sender puts at once, and the slots of a queue. Combine's 23 receiving warps take turns, and a slot is free
// when all of them are past it: with less than 22 slots besides those of the next tokens, it hangs once a queue is full.
constexpr int send = 2, queue = 22 + send;
constexpr int most = RANKS * tokens;

// goes says whether a rank sends a token to a peer: to one or two of them.
static bool goes(int rank, int token, int peer, int round)
{
	int a = (token * 5 + rank * 3 + round) % RANKS, b = (token * 7 + rank + 1) % RANKS;
	return peer == a || peer == b;
}

// same is what the experts do: they give back what they got.
__global__ void same(const __nv_bfloat16 *in, __nv_bfloat16 *out, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = in[i];
}

template <typename T>
static void copy(T *to, const T *from, size_t n) { CHECK(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyHostToDevice)); }

int main(int argc, char **argv)
{
	options(argc, argv);
	Ranks<RANKS> ranks;
	constexpr size_t room = 4 << 20;
	void *buffer[RANKS], **buffers[RANKS];
	int *barrier[RANKS], **barriers[RANKS], *per_rank[RANKS], *per_expert[RANKS], *counter[RANKS], *expert_counter[RANKS];
	int *channel[RANKS], *prefix[RANKS], *came_from[RANKS], *came_channel[RANKS], *head[RANKS];
	bool *in_rank[RANKS];
	__nv_bfloat16 *x[RANKS], *came[RANKS], *gave[RANKS], *sum[RANKS];
	for (int r = 0; r < RANKS; r++) {
		buffer[r] = ranks.memory(r, room);
		barrier[r] = (int *)ranks.memory(r, 8 * sizeof(int));
		per_rank[r] = (int *)ranks.memory(r, RANKS * sizeof(int));
		per_expert[r] = (int *)ranks.memory(r, experts * sizeof(int));
		channel[r] = (int *)ranks.memory(r, RANKS * channels * sizeof(int));
		prefix[r] = (int *)ranks.memory(r, RANKS * RANKS * sizeof(int));
		came_from[r] = (int *)ranks.memory(r, most * sizeof(int));
		came_channel[r] = (int *)ranks.memory(r, RANKS * channels * sizeof(int));
		head[r] = (int *)ranks.memory(r, tokens * RANKS * sizeof(int));
		in_rank[r] = (bool *)ranks.memory(r, tokens * RANKS);
		x[r] = (__nv_bfloat16 *)ranks.memory(r, tokens * hidden * 2);
		came[r] = (__nv_bfloat16 *)ranks.memory(r, most * hidden * 2);
		gave[r] = (__nv_bfloat16 *)ranks.memory(r, most * hidden * 2);
		sum[r] = (__nv_bfloat16 *)ranks.memory(r, tokens * hidden * 2);
		CHECK(cudaHostAlloc(&counter[r], sizeof(int), cudaHostAllocMapped));
		CHECK(cudaHostAlloc(&expert_counter[r], experts * sizeof(int), cudaHostAllocMapped));
	}
	for (int r = 0; r < RANKS; r++) {
		buffers[r] = (void **)ranks.memory(r, sizeof buffer);
		barriers[r] = (int **)ranks.memory(r, sizeof barrier);
		copy(buffers[r], buffer, RANKS);
		copy(barriers[r], barrier, RANKS);
	}
	int bad = 0;
	for (int round = 0; round < rounds; round++) {
		ranks.wait();
		int received[RANKS] = {};
		for (int r = 0; r < RANKS; r++) {
			bool to[tokens * RANKS];
			int counts[RANKS] = {}, at_experts[experts] = {};
			for (int t = 0; t < tokens; t++)
				for (int peer = 0; peer < RANKS; peer++) {
					to[t * RANKS + peer] = goes(r, t, peer, round);
					counts[peer] += to[t * RANKS + peer];
					at_experts[2 * peer + t % 2] += to[t * RANKS + peer];
					received[peer] += to[t * RANKS + peer];
				}
			CHECK(cudaSetDevice(r));
			copy(in_rank[r], to, tokens * RANKS);
			copy(per_rank[r], counts, RANKS);
			copy(per_expert[r], at_experts, experts);
		}
		ranks.wait();
		ranks.input(x, tokens * hidden, round);
		for (int r = 0; r < RANKS; r++) {
			CHECK(cudaSetDevice(r));
			intranode::notify_dispatch(per_rank[r], counter[r], RANKS, per_expert[r], expert_counter[r], experts, tokens, in_rank[r], channel[r],
				prefix[r], channels * RANKS * 4, 1, buffers[r], barriers[r], r, ranks.stream[r], channels);
			intranode::dispatch(came[r], nullptr, came_from[r], nullptr, nullptr, came_channel[r], head[r], x[r], nullptr, nullptr, nullptr,
				in_rank[r], channel[r], tokens, 0, hidden * 2 / 16, 0, experts, 0, 0, 0, buffers[r], r, RANKS, ranks.stream[r], blocks, send, queue);
			same<<<2, 32, 0, ranks.stream[r]>>>(came[r], gave[r], received[r] * hidden);
			intranode::cached_notify_combine(buffers[r], head[r], channels, tokens, channels * RANKS * 2, barriers[r], r, RANKS, ranks.stream[r]);
			intranode::combine(CUDA_R_16BF, sum[r], nullptr, gave[r], nullptr, nullptr, nullptr, came_from[r], prefix[r], came_channel[r], head[r],
				received[r], tokens, hidden, 0, buffers[r], r, RANKS, ranks.stream[r], blocks, send, queue);
		}
		ranks.wait();
		__nv_bfloat16 host[tokens * hidden];
		for (int r = 0; r < RANKS; r++) {
			bad += *counter[r] != received[r];
			CHECK(cudaSetDevice(r));
			CHECK(cudaMemcpy(host, sum[r], sizeof host, cudaMemcpyDeviceToHost));
			for (int i = 0; i < tokens * hidden; i++) {
				int times = 0;
				for (int peer = 0; peer < RANKS; peer++)
					times += goes(r, i / hidden, peer, round);
				bad += float(host[i]) != float(times * value(r, round, i));
			}
		}
	}
	ranks.close();
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		for (void *p : {buffer[r], (void *)barrier[r], (void *)per_rank[r], (void *)per_expert[r], (void *)channel[r], (void *)prefix[r],
			(void *)came_from[r], (void *)came_channel[r], (void *)head[r], (void *)in_rank[r], (void *)x[r], (void *)came[r], (void *)gave[r],
			(void *)sum[r], (void *)buffers[r], (void *)barriers[r]})
			CHECK(cudaFree(p));
		CHECK(cudaFreeHost(counter[r]));
		CHECK(cudaFreeHost(expert_counter[r]));
	}
	return verdict(bad);
}
