// trtllm runs TensorRT-LLM's all-reduces as FlashInfer has them, kernels and launches as they are: SOURCE is
// include/flashinfer/comm/trtllm_allreduce.cuh.
//
//	-DSHOTS=1 or 2, -DPUSH=true (each rank writes into the others' memory) or false, -DRANKS=2 or 4
#include <array>
#include <string>

#include SOURCE

#include "ranks.h"
using namespace flashinfer::trtllm_allreduce;

#ifndef RANKS
#define RANKS 4
#endif
#ifndef PUSH
#define PUSH false
#endif
#if SHOTS == 2
constexpr auto shots = AllReduceStrategyType::TWOSHOT;
#else
constexpr auto shots = AllReduceStrategyType::ONESHOT;
#endif

int main(int argc, char **argv)
{
	options(argc, argv);
	Ranks<RANKS> ranks;
	// One shot takes 512 threads a block for its elements, two shots as many for a rank's part.
	constexpr int n = 2048 * (shots == AllReduceStrategyType::TWOSHOT ? RANKS : 4);
	constexpr size_t room = n * RANKS * sizeof(half), flags = 1 << 16;
	half *in[RANKS], *out[RANKS], *shared[2][RANKS];
	uint32_t *enter[RANKS], *leave[RANKS];
	for (int r = 0; r < RANKS; r++) {
		in[r] = (half *)ranks.memory(r, n * sizeof(half));
		out[r] = (half *)ranks.memory(r, n * sizeof(half));
		shared[0][r] = (half *)ranks.memory(r, room);
		shared[1][r] = (half *)ranks.memory(r, room);
		enter[r] = (uint32_t *)ranks.memory(r, flags);
		leave[r] = (uint32_t *)ranks.memory(r, flags);
	}
	int bad = 0;
	for (int round = 0; round < rounds; round++) {
		ranks.input(in, n, round);
		for (int r = 0; r < RANKS; r++) {
			AllReduceParams<half> p{};
			p.elts_total = n;
			p.ranks_per_node = RANKS;
			p.local_rank = r;
			p.barrier_flag = round + 1; // 0 is a released barrier
			for (int peer = 0; peer < RANKS; peer++) {
				p.peer_barrier_ptrs_in[peer] = enter[peer];
				p.peer_barrier_ptrs_out[peer] = leave[peer];
				p.peer_comm_buffer_ptrs[peer] = shared[p.barrier_flag % 2][peer];
			}
			p.local_input_buffer_ptr = in[r];
			p.local_output_buffer_ptr = out[r];
			CHECK(cudaSetDevice(r));
			CHECK((AllReduceDispatch<half, RANKS, PUSH, false>(shots, AllReduceFusionOp::NONE, p, false, ranks.stream[r])));
			CHECK(cudaGetLastError());
		}
		if (round == rounds - 1)
			for (int r = 0; r < RANKS; r++)
				bad += ranks.wrong(r, out[r], n, round);
	}
	ranks.close();
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		for (void *p : {(void *)in[r], (void *)out[r], (void *)shared[0][r], (void *)shared[1][r], (void *)enter[r], (void *)leave[r]})
			CHECK(cudaFree(p));
	}
	return verdict(bad);
}
