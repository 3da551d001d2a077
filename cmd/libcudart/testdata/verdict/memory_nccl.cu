// CASE gather: none
// CASE sent: none
// CASE sum: read of unwritten memory
// CASE nothing: read of unwritten memory
// FLAGS -lnccl
// memory_nccl.cu sends structs with padding, and what nobody wrote.
#include "verdict.h"

#include <nccl.h>

struct P {
	char c;
	int i;
	short s;
};

static __global__ void fill(P *p) {
	P *q = p + threadIdx.x;
	q->c = 1, q->i = threadIdx.x, q->s = 3;
}

enum { ranks = 2, count = 32 };

int main(int, char **argv) {
	ncclComm_t c[ranks];
	P *from[ranks], *to[ranks], h[ranks * count];
	MUST(!ncclCommInitAll(c, ranks, nullptr));
	for (int r = 0; r < ranks; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaMalloc(&from[r], sizeof h));
		CHECK(cudaMalloc(&to[r], sizeof h));
		fill<<<1, count>>>(from[r]);
	}
	MUST(!ncclGroupStart());
	for (int r = 0; r < ranks; r++) {
		if (is(argv, "gather"))
			MUST(!ncclAllGather(from[r], to[r], count * sizeof(P), ncclInt8, c[r], 0));
		else if (is(argv, "sent")) {
			MUST(!ncclSend(from[r], count * sizeof(P), ncclInt8, 1 - r, c[r], 0));
			MUST(!ncclRecv(to[r], count * sizeof(P), ncclInt8, 1 - r, c[r], 0));
		} else if (is(argv, "sum")) // the second half is padding, and more that nobody wrote
			MUST(!ncclAllReduce(from[r], to[r], 2 * count * sizeof(P) / 4, ncclInt, ncclSum, c[r], 0));
		else if (is(argv, "nothing"))
			MUST(!ncclBroadcast(from[r] + count, to[r], count * sizeof(P), ncclInt8, 0, c[r], 0));
	}
	MUST(!ncclGroupEnd());
	for (int r = 0; r < ranks; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaDeviceSynchronize());
		if (is(argv, "gather") || is(argv, "sent")) {
			CHECK(cudaMemcpy(h, to[r], count * sizeof(P), cudaMemcpyDeviceToHost));
			MUST(h[5].c == 1 && h[5].i == 5 && h[5].s == 3);
		}
		CHECK(cudaFree(from[r]));
		CHECK(cudaFree(to[r]));
		MUST(!ncclCommDestroy(c[r]));
	}
}
