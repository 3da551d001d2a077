// vectoradd adds two vectors, and a kernel prints one of the sums.
//
//	build/cuda/bin/nvcc -o vectoradd examples/cuda/vectoradd.cu && ringo emulate -- ./vectoradd 1000000
#include <cuda_runtime.h>

#include <vector>

#include "check.h"

__global__ void add(const float *a, const float *b, float *sum, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		sum[i] = a[i] + b[i];
	if (i == 7)
		printf("thread %d: %.1f + %.1f = %.1f\n", i, a[i], b[i], sum[i]);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10000;
	std::vector<float> a(n), b(n), sum(n);
	for (int i = 0; i < n; i++)
		a[i] = i % 1000, b[i] = 2 * (i % 777);
	float *da, *db, *dsum;
	CHECK(cudaMalloc(&da, n * sizeof(float)));
	CHECK(cudaMalloc(&db, n * sizeof(float)));
	CHECK(cudaMalloc(&dsum, n * sizeof(float)));
	CHECK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
	add<<<(n + 255) / 256, 256>>>(da, db, dsum, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(sum.data(), dsum, n * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		WANT(sum[i] == a[i] + b[i]);
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dsum));
	printf("%d sums are right\n", n);
}
