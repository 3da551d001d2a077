// race has a fault between two GPUs: one writes data and then a flag into the other's memory, and the other waits for
// the flag and reads the data. __threadfence is a fence of one device: another GPU may see the flag before the data.
// Only __threadfence_system (-DRIGHT) orders them. Even with the fault the program mostly prints the right sum.
//
//	build/cuda/bin/nvcc -o race examples/cuda/race.cu && ringo emulate -g 2 -- ./race
//	build/cuda/bin/nvcc -DRIGHT -o race examples/cuda/race.cu && ringo emulate -g 2 -- ./race
#include <cuda_runtime.h>

#include "check.h"

#ifdef RIGHT
#define FENCE __threadfence_system
#else
#define FENCE __threadfence
#endif

__global__ void produce(int *data, int *flag, int n)
{
	data[threadIdx.x] = threadIdx.x + 1; // THE STORE
	__syncthreads();
	if (threadIdx.x == 0) {
		FENCE();
		atomicExch_system(flag, 1);
	}
}

__global__ void consume(const int *data, int *flag, int *sum, int n)
{
	while (atomicAdd_system(flag, 0) == 0) {
	}
	FENCE();
	int s = 0;
	for (int i = 0; i < n; i++)
		s += data[i]; // THE LOAD
	*sum = s;
}

int main()
{
	enum { n = 64 };
	int *data, *flag, *sum, got = 0;
	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&data, n * sizeof(int)));
	CHECK(cudaMalloc(&flag, sizeof(int)));
	CHECK(cudaMalloc(&sum, sizeof(int)));
	CHECK(cudaMemset(flag, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	consume<<<1, 1>>>(data, flag, sum, n);
	CHECK(cudaSetDevice(0));
	CHECK(cudaDeviceEnablePeerAccess(1, 0));
	produce<<<1, n>>>(data, flag, n);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaSetDevice(1));
	CHECK(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
	printf("sum %d, want %d\n", got, n * (n + 1) / 2);
	CHECK(cudaFree(data));
	CHECK(cudaFree(flag));
	CHECK(cudaFree(sum));
}
