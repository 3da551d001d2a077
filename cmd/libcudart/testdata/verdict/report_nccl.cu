// CASE right: none
// CASE counts: failed communicator
// CASE operators: failed communicator
// CASE message: failed communicator
// CASE kinds: failed communicator
// CASE absent: failed communicator
// CASE circle: failed communicator
// CASE said: fails ncclAllReduce at report_nccl.cu:
// CASE null: failed call
// CASE type: failed call
// CASE root: failed call
// CASE destroyed: failed call
// CASE aborted: none
// FLAGS -lnccl
// EMULATE -g 2 -wait 5s
#include "verdict.h"
#include <nccl.h>

enum { ranks = 2, most = 100 };
static ncclComm_t comm[ranks];
static cudaStream_t stream[ranks];
static float *data[ranks], *more[ranks];

// call has a rank take part in what a case is about. None looks at results.
static void call(char **argv, int r) {
	ncclComm_t c = comm[r];
	cudaStream_t s = stream[r];
	float *p = data[r], *q = more[r];
	if (is(argv, "right") || is(argv, "aborted"))
		ncclAllReduce(p, q, most, ncclFloat, ncclSum, c, s);
	if (is(argv, "counts") || is(argv, "said"))
		ncclAllReduce(p, q, r ? most / 2 : most, ncclFloat, ncclSum, c, s);
	if (is(argv, "operators"))
		ncclAllReduce(p, q, most, ncclFloat, r ? ncclMax : ncclSum, c, s);
	if (is(argv, "kinds") && r)
		ncclBroadcast(p, q, most, ncclFloat, 0, c, s);
	if (is(argv, "kinds") && !r)
		ncclAllReduce(p, q, most, ncclFloat, ncclSum, c, s);
	if (is(argv, "message") && r)
		ncclRecv(q, most / 2, ncclFloat, 0, c, s);
	if (is(argv, "message") && !r)
		ncclSend(p, most, ncclFloat, 1, c, s);
	if (is(argv, "absent") && !r)
		ncclAllReduce(p, q, most, ncclFloat, ncclSum, c, s);
	if (is(argv, "circle"))
		ncclRecv(q, most, ncclFloat, 1 - r, c, s);
	if (is(argv, "type") && !r)
		ncclAllReduce(p, q, most, (ncclDataType_t)77, ncclSum, c, s);
	if (is(argv, "root") && !r)
		ncclBroadcast(p, q, most, ncclFloat, 7, c, s);
}

int main(int, char **argv) {
	for (int r = 0; r < ranks; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamCreate(&stream[r]));
		data[r] = device<float>(most), more[r] = device<float>(most);
	}
	ncclCommInitAll(comm, ranks, nullptr);
	bool group = !is(argv, "absent") && !is(argv, "type") && !is(argv, "root");
	if (group)
		ncclGroupStart();
	for (int r = 0; r < ranks; r++) {
		CHECK(cudaSetDevice(r));
		call(argv, r);
	}
	if (group)
		ncclGroupEnd();
	for (int r = 0; r < ranks; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamSynchronize(stream[r]));
	}
	if (is(argv, "null"))
		ncclCommInitAll(nullptr, ranks, nullptr);
	for (int r = 0; r < ranks; r++) {
		CHECK(cudaSetDevice(r));
		if (is(argv, "aborted"))
			ncclCommAbort(comm[r]);
		else
			ncclCommDestroy(comm[r]);
		CHECK(cudaFree(data[r]));
		CHECK(cudaFree(more[r]));
		CHECK(cudaStreamDestroy(stream[r]));
	}
	if (is(argv, "destroyed"))
		ncclAllReduce(data[0], more[0], most, ncclFloat, ncclSum, comm[0], nullptr);
}
