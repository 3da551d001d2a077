// peers copies from each GPU to the next one, and has a kernel on one GPU read the memory of another.
//
//	build/cuda/bin/nvcc -o peers examples/cuda/peers.cu && ringo emulate -g 2 -- ./peers
#include <cuda_runtime.h>

#include <vector>

#include "check.h"

__global__ void fill(int *v, int n, int first)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		v[i] = first + i;
}

__global__ void fetch(int *to, const int *from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		to[i] += from[i];
}

int main()
{
	enum { n = 1000, bytes = n * sizeof(int) };
	int count, can;
	CHECK(cudaGetDeviceCount(&count));
	WANT(count >= 2);
	std::vector<int *> v(count), w(count);
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		for (int p = 0; p < count; p++)
			if (p != d) {
				CHECK(cudaDeviceCanAccessPeer(&can, d, p));
				WANT(can);
				CHECK(cudaDeviceEnablePeerAccess(p, 0));
			}
		CHECK(cudaMalloc(&v[d], bytes));
		CHECK(cudaMalloc(&w[d], bytes));
		fill<<<4, 256>>>(v[d], n, 1000 * d);
		CHECK(cudaDeviceSynchronize());
	}
	for (int d = 0; d < count; d++) {
		int next = (d + 1) % count;
		CHECK(cudaMemcpyPeer(w[next], next, v[d], d, bytes));
	}
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaDeviceSynchronize());
	}
	std::vector<int> got(n);
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		fetch<<<4, 256>>>(w[d], v[(d + 1) % count], n);
		CHECK(cudaMemcpy(got.data(), w[d], bytes, cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++)
			WANT(got[i] == 1000 * ((d + count - 1) % count) + 1000 * ((d + 1) % count) + 2 * i);
	}
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaDeviceSynchronize());
	}
	for (int d = 0; d < count; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaFree(v[d]));
		CHECK(cudaFree(w[d]));
	}
	printf("%d GPUs have what they want\n", count);
}
