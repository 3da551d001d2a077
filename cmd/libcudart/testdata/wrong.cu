// wrong makes one mistake, which the first argument names.
#include <cassert>
#include <cstring>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void beyond(int *v) { v[threadIdx.x] = 1; }
__global__ void unwritten(const int *v, int *sum) { *sum = v[0] + 1; }
__global__ void shared(int *v)
{
	__shared__ int tile[64];
	tile[threadIdx.x] = 0;
	__syncthreads();
	tile[threadIdx.x] = threadIdx.x;
	v[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void polls(volatile int *v)
{
	while (!*v) {
	}
}
__global__ void asserts(int n) { assert(n == 3 && "three"); }

int main(int, char **argv)
{
	int *v, *w;
	cudaMalloc(&v, 63 * sizeof(int));
	cudaMalloc(&w, 64 * sizeof(int));
	if (!strcmp(argv[1], "beyond"))
		beyond<<<1, 64>>>(v);
	if (!strcmp(argv[1], "unwritten"))
		unwritten<<<1, 1>>>(v, w);
	if (!strcmp(argv[1], "shared"))
		shared<<<1, 64>>>(w);
	if (!strcmp(argv[1], "assert"))
		asserts<<<1, 1>>>(4);
	if (!strcmp(argv[1], "wait")) {
		cudaMemset(v, 0, 4);
		polls<<<1, 1>>>(v);
	}
	if (!strcmp(argv[1], "fork") && !fork())
		exit(0); // which must neither hang nor report
	int result = cudaDeviceSynchronize();
	if (!strcmp(argv[1], "fork"))
		wait(nullptr);
	cudaFree(v);
	if (strcmp(argv[1], "leak"))
		cudaFree(w);
	return result != 0;
}
