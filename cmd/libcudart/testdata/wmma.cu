// Products of matrices by mma.h, in all of its shapes and types and with factors in both layouts: D = A·B + C, of small whole
// numbers, whose sums are exact.
#include <cuda_runtime.h>
#include <mma.h>

#include "../../../examples/cuda/check.h"

using namespace nvcuda::wmma;

// at is where an element lies.
template <class Layout> __host__ __device__ int at(int row, int col, int rows, int cols)
{
	return Layout::column ? col * rows + row : row * cols + col;
}

// What a factor holds in memory.
template <class T> using stored = typename fragment<matrix_a, 16, 16, 8, T>::storage_element_type;

template <int M, int N, int K, class T, class Sum, class LA, class LB>
__global__ void multiply(const stored<T> *a, const stored<T> *b, const Sum *c, Sum *d)
{
	fragment<matrix_a, M, N, K, T, LA> x;
	fragment<matrix_b, M, N, K, T, LB> y;
	fragment<accumulator, M, N, K, Sum> z, one;
	load_matrix_sync(x, a, LA::column ? M : K);
	load_matrix_sync(y, b, LB::column ? K : N);
	load_matrix_sync(z, c, LA::column ? M : N, LA::column ? mem_col_major : mem_row_major);
	mma_sync(z, x, y, z);
	fill_fragment(one, Sum(1));
	for (int i = 0; i < z.num_elements; i++)
		z.x[i] = z.x[i] + one.x[i];
	store_matrix_sync(d, z, LB::column ? M : N, LB::column ? mem_col_major : mem_row_major);
}

template <int M, int N, int K, class T, class Sum, class LA, class LB> static int wrong()
{
	stored<T> *a, *b;
	Sum *c, *d;
	CHECK(cudaMallocManaged(&a, M * K * sizeof *a));
	CHECK(cudaMallocManaged(&b, K * N * sizeof *b));
	CHECK(cudaMallocManaged(&c, M * N * sizeof *c));
	CHECK(cudaMallocManaged(&d, M * N * sizeof *d));
	auto left = [](int row, int k) { return (row * 3 + k * 5) % 7; };
	auto right = [](int k, int col) { return (k * 2 + col * 3) % 5; };
	auto start = [](int row, int col) { return (row + col * 2) % 9; };
	for (int i = 0; i < M; i++)
		for (int k = 0; k < K; k++)
			a[at<LA>(i, k, M, K)] = stored<T>(float(left(i, k)));
	for (int k = 0; k < K; k++)
		for (int j = 0; j < N; j++)
			b[at<LB>(k, j, K, N)] = stored<T>(float(right(k, j)));
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			c[at<LA>(i, j, M, N)] = Sum(float(start(i, j)));
	multiply<M, N, K, T, Sum, LA, LB><<<1, 32>>>(a, b, c, d);
	CHECK(cudaDeviceSynchronize());
	int bad = 0;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			int sum = start(i, j) + 1;
			for (int k = 0; k < K; k++)
				sum += left(i, k) * right(k, j);
			bad += float(d[at<LB>(i, j, M, N)]) != float(sum);
		}
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(c));
	CHECK(cudaFree(d));
	return bad;
}

template <int M, int N, int K, class T, class Sum> static int layouts()
{
	return wrong<M, N, K, T, Sum, row_major, row_major>() + wrong<M, N, K, T, Sum, row_major, col_major>() +
	       wrong<M, N, K, T, Sum, col_major, row_major>() + wrong<M, N, K, T, Sum, col_major, col_major>();
}

template <class T, class Sum> static int shapes()
{
	return layouts<16, 16, 16, T, Sum>() + layouts<32, 8, 16, T, Sum>() + layouts<8, 32, 16, T, Sum>();
}

int main()
{
	printf("half: %d wrong\n", shapes<half, float>() + shapes<half, half>());
	printf("bfloat16: %d wrong\n", shapes<__nv_bfloat16, float>());
	printf("bytes: %d wrong\n", shapes<signed char, int>() + shapes<unsigned char, int>());
	printf("tf32: %d wrong\n", layouts<16, 16, 8, precision::tf32, float>());
	printf("double: %d wrong\n", layouts<8, 8, 4, double, double>());
}
