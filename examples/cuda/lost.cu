// lost has a fault that no race detector sees: each of two blocks adds to a counter by a load and a store, both volatile and
// so strong, and what the one adds between the two is lost. The program mostly prints the right count.
//
//	build/cuda/bin/nvcc -o lost examples/cuda/lost.cu && ringo emulate -seeds 20 -shrink -- ./lost
#include <cuda_runtime.h>

#include "check.h"

__global__ void count(volatile int *counter)
{
	int was = *counter;
	*counter = was + 1;
}

int main()
{
	int *counter, got = 0;
	CHECK(cudaMalloc(&counter, sizeof(int)));
	CHECK(cudaMemset(counter, 0, sizeof(int)));
	count<<<2, 1>>>(counter);
	CHECK(cudaMemcpy(&got, counter, sizeof got, cudaMemcpyDeviceToHost));
	printf("counted %d of 2\n", got);
	CHECK(cudaFree(counter));
	return got != 2;
}
