// ranks.h is what the programs of this folder share: GPUs of one process that reach each other's memory, a stream on each,
// values to add up, and their check. Every program takes -made (a kernel in the stream writes the input of each round, as
// a model's layer does) or -copied (the host writes it, and waits for it on all GPUs), and -rounds N.
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                     \
	do {                                                                                                            \
		cudaError_t result = (call);                                                                            \
		if (result != cudaSuccess) {                                                                            \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(result));      \
			exit(2);                                                                                        \
		}                                                                                                       \
	} while (0)

static int rounds = 2;
static bool made;

// value is what rank adds to element i in a round: a small whole number, so that all types add exactly.
__host__ __device__ inline int value(int rank, int round, int i) { return (i * 7 + rank * 3 + round * 5) % 11; }

// fill writes the values of a rank and round. A layer of a model writes its output so, before the all-reduce.
template <typename T>
__global__ void fill(T *data, int n, int rank, int round)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = T(float(value(rank, round, i)));
}

static void options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-made"))
			made = true;
		else if (!strcmp(argv[i], "-copied"))
			made = false;
		else if (!strcmp(argv[i], "-rounds") && i + 1 < argc)
			rounds = atoi(argv[++i]);
		else {
			fprintf(stderr, "usage: %s [-made | -copied] [-rounds N]\n", argv[0]);
			exit(2);
		}
	}
}

// Ranks are the GPUs 0 to N-1 of this process, a stream each.
template <int N>
struct Ranks {
	cudaStream_t stream[N];

	Ranks()
	{
		for (int r = 0; r < N; r++) {
			CHECK(cudaSetDevice(r));
			for (int peer = 0; peer < N; peer++)
				if (peer != r)
					CHECK(cudaDeviceEnablePeerAccess(peer, 0));
			CHECK(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking));
		}
	}

	// memory is zeroed memory of rank r's GPU.
	void *memory(int r, size_t bytes)
	{
		void *p;
		CHECK(cudaSetDevice(r));
		CHECK(cudaMalloc(&p, bytes));
		CHECK(cudaMemset(p, 0, bytes));
		CHECK(cudaDeviceSynchronize());
		return p;
	}

	// wait returns when all that was asked for has ended on all GPUs.
	void wait()
	{
		for (int r = 0; r < N; r++) {
			CHECK(cudaSetDevice(r));
			CHECK(cudaDeviceSynchronize());
		}
	}

	// input writes the values of a round into the buffers of all ranks, in the way that the options say.
	template <typename T>
	void input(T *(&buffer)[N], int n, int round)
	{
		if (made) {
			for (int r = 0; r < N; r++) {
				CHECK(cudaSetDevice(r));
				fill<<<2, 32, 0, stream[r]>>>(buffer[r], n, r, round);
			}
			return;
		}
		wait();
		T *host = (T *)malloc(n * sizeof(T));
		for (int r = 0; r < N; r++) {
			for (int i = 0; i < n; i++)
				host[i] = T(float(value(r, round, i)));
			CHECK(cudaSetDevice(r));
			CHECK(cudaMemcpy(buffer[r], host, n * sizeof(T), cudaMemcpyHostToDevice));
		}
		free(host);
		wait();
	}

	// wrong counts the elements of rank r's output that are not the sum of all ranks' values.
	template <typename T>
	int wrong(int r, const T *output, int n, int round)
	{
		T *host = (T *)malloc(n * sizeof(T));
		int bad = 0;
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamSynchronize(stream[r]));
		CHECK(cudaMemcpy(host, output, n * sizeof(T), cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++) {
			int want = 0;
			for (int peer = 0; peer < N; peer++)
				want += value(peer, round, i);
			bad += float(host[i]) != float(want);
		}
		free(host);
		return bad;
	}

	void close()
	{
		wait();
		for (int r = 0; r < N; r++) {
			CHECK(cudaSetDevice(r));
			CHECK(cudaStreamDestroy(stream[r]));
		}
	}
};

static int verdict(int wrong)
{
	printf("%d rounds, %d wrong values\n", rounds, wrong);
	return wrong != 0;
}
