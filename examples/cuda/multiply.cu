// multiply multiplies matrices of halves by tensor cores. Each warp computes a tile of 16 × 8, whose factors go through
// shared memory. Several warps divide K for one tile, and add their sums to it by atomic operations on pairs.
//
//	build/cuda/bin/nvcc -arch=sm_90 -o multiply examples/cuda/multiply.cu && ringo emulate -- ./multiply
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <vector>

#include "check.h"

__device__ unsigned sharedAddress(const void *p)
{
	unsigned at;
	asm("{ .reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s; }" : "=r"(at) : "l"(p));
	return at;
}

// multiply adds a·b to c. a is stored by rows, b by columns; each row and column is k halves.
__global__ void multiply(const half *a, const half *b, float *c, int n, int k)
{
	__shared__ __align__(16) half rows[16][16], columns[8][16];
	int lane = threadIdx.x, part = k / gridDim.z;
	a += (size_t)blockIdx.y * 16 * k, b += (size_t)blockIdx.x * 8 * k;
	float sum[4] = {};
	for (int from = blockIdx.z * part; from < (blockIdx.z + 1) * part; from += 16) {
		int row = lane / 2, half8 = lane % 2 * 8;
		*(int4 *)&rows[row][half8] = *(const int4 *)&a[row * k + from + half8];
		if (row < 8)
			*(int4 *)&columns[row][half8] = *(const int4 *)&b[row * k + from + half8];
		__syncwarp();
		unsigned x[4], y[2];
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
			     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
			     : "r"(sharedAddress(&rows[lane % 16][lane / 16 * 8]))
			     : "memory");
		asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
			     : "=r"(y[0]), "=r"(y[1])
			     : "r"(sharedAddress(&columns[lane % 8][lane / 8 % 2 * 8]))
			     : "memory");
		asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		    "{%0, %1, %2, %3};"
		    : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
		    : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
		__syncwarp();
	}
	for (int i = 0; i < 2; i++) {
		float *to = &c[(size_t)(blockIdx.y * 16 + lane / 4 + 8 * i) * n + blockIdx.x * 8 + lane % 4 * 2];
		asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(sum[2 * i]), "f"(sum[2 * i + 1])
			     : "memory");
	}
}

int main()
{
	const int m = 64, n = 32, k = 128;
	std::vector<half> a(m * k), b(n * k);
	std::vector<float> c(m * n);
	for (int i = 0; i < m * k; i++)
		a[i] = half(i * 7 % 11 - 5);
	for (int i = 0; i < n * k; i++)
		b[i] = half(i * 5 % 13 - 6);
	half *da, *db;
	float *dc;
	CHECK(cudaMalloc(&da, m * k * sizeof(half)));
	CHECK(cudaMalloc(&db, n * k * sizeof(half)));
	CHECK(cudaMalloc(&dc, m * n * sizeof(float)));
	CHECK(cudaMemcpy(da, a.data(), m * k * sizeof(half), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b.data(), n * k * sizeof(half), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(dc, 0, m * n * sizeof(float)));
	multiply<<<dim3(n / 8, m / 16, 2), 32>>>(da, db, dc, n, k);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(c.data(), dc, m * n * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < m * n; i++) {
		float want = 0;
		for (int j = 0; j < k; j++)
			want += float(a[i / n * k + j]) * float(b[i % n * k + j]);
		WANT(c[i] == want);
	}
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	printf("%d elements are right\n", m * n);
}
