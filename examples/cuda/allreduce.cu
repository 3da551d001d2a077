// allreduce is a program with NCCL: one process all-reduces, over all GPUs, data that kernels have written.
//
//	build/cuda/bin/nvcc -o allreduce examples/cuda/allreduce.cu -lnccl && ringo emulate -g 4 -- ./allreduce
#include <cuda_runtime.h>
#include <nccl.h>

#include <vector>

#include "check.h"

#define NCCL(call)                                                                                              \
	do {                                                                                                    \
		ncclResult_t result_ = (call);                                                                  \
		if (result_ != ncclSuccess) {                                                                   \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, ncclGetErrorString(result_)); \
			exit(1);                                                                                \
		}                                                                                               \
	} while (0)

__global__ void fill(float *v, int n, float value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		v[i] = value * (i % 10);
}

int main()
{
	enum { n = 3000 };
	int count;
	CHECK(cudaGetDeviceCount(&count));
	std::vector<ncclComm_t> comms(count);
	std::vector<float *> in(count), out(count);
	std::vector<cudaStream_t> streams(count);
	NCCL(ncclCommInitAll(comms.data(), count, nullptr));
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaStreamCreate(&streams[d]));
		CHECK(cudaMalloc(&in[d], n * sizeof(float)));
		CHECK(cudaMalloc(&out[d], n * sizeof(float)));
		fill<<<(n + 127) / 128, 128, 0, streams[d]>>>(in[d], n, d + 1);
	}
	NCCL(ncclGroupStart());
	for (int d = 0; d < count; d++)
		NCCL(ncclAllReduce(in[d], out[d], n, ncclFloat, ncclSum, comms[d], streams[d]));
	NCCL(ncclGroupEnd());
	std::vector<float> got(n);
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaMemcpyAsync(got.data(), out[d], n * sizeof(float), cudaMemcpyDeviceToHost, streams[d]));
		CHECK(cudaStreamSynchronize(streams[d]));
		for (int i = 0; i < n; i++)
			WANT(got[i] == count * (count + 1) / 2 * (i % 10));
	}
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		NCCL(ncclCommDestroy(comms[d]));
		CHECK(cudaStreamDestroy(streams[d]));
		CHECK(cudaFree(in[d]));
		CHECK(cudaFree(out[d]));
	}
	printf("%d GPUs have the sum\n", count);
}
