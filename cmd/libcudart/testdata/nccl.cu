// nccl makes the mistake that its argument names, around a message and an all-reduce between two GPUs.
#include <cstring>
#include <nccl.h>

__global__ void add(float *a, const float *b) { a[threadIdx.x] += b[threadIdx.x]; }

enum { ranks = 2, elements = 256 };

int main(int, char **argv)
{
	bool race = !strcmp(argv[1], "race");
	ncclComm_t comm[ranks];
	cudaStream_t stream[ranks], other[ranks];
	float *a[ranks], *b[ranks];
	void *memory;
	for (int i = 0; i < ranks; i++) {
		cudaSetDevice(i);
		cudaMalloc(&a[i], elements * 4);
		cudaMalloc(&b[i], elements * 4);
		cudaMemset(a[i], 0, elements * 4);
		cudaMemset(b[i], 0, elements * 4);
		cudaStreamCreate(&stream[i]);
		cudaStreamCreateWithFlags(&other[i], cudaStreamNonBlocking);
		cudaDeviceSynchronize();
	}
	ncclCommInitAll(comm, ranks, NULL); // THE COMMUNICATORS
	ncclGroupStart();
	for (int i = 0; i < ranks; i++) {
		ncclSend(a[i], elements, ncclFloat, 1 - i, comm[i], stream[i]); // THE SEND
		ncclRecv(b[i], elements, ncclFloat, 1 - i, comm[i], stream[i]); // THE RECV
	}
	ncclGroupEnd();
	for (int i = 0; i < ranks; i++) {
		cudaSetDevice(i);
		add<<<1, elements, 0, race ? other[i] : stream[i]>>>(a[i], b[i]);
	}
	ncclGroupStart();
	for (int i = 0; i < ranks; i++)
		ncclAllReduce(a[i], a[i], elements, ncclFloat, ncclSum, comm[i], stream[i]); // THE SUM
	ncclGroupEnd();
	for (int i = 0; i < ranks; i++) {
		cudaSetDevice(i);
		cudaDeviceSynchronize();
		cudaStreamDestroy(stream[i]);
		cudaStreamDestroy(other[i]);
		cudaFree(b[i]);
		if (i == 0 || strcmp(argv[1], "memory"))
			cudaFree(a[i]);
		if (i == 0 || strcmp(argv[1], "communicator"))
			ncclCommDestroy(comm[i]);
	}
	ncclMemAlloc(&memory, 1 << 20); // THE WINDOW
	if (strcmp(argv[1], "window"))
		ncclMemFree(memory);
}
