// CASE barrier: none
// CASE missing: race
// CASE lost: some wrong
#include "verdict.h"

// reverse turns 64 values over, by two warps.
__global__ void reverse(int *v, bool wait) {
	__shared__ int tile[64];
	tile[threadIdx.x] = 0;
	__syncthreads();
	tile[threadIdx.x] = v[threadIdx.x];
	if (wait)
		__syncthreads();
	v[threadIdx.x] = tile[63 - threadIdx.x];
}

// count adds to a counter by a load and a store.
__global__ void count(int *v) {
	volatile int *c = v;
	*c = *c + 1;
}

int main(int, char **argv) {
	int *v = device<int>(64);
	if (is(argv, "lost")) {
		count<<<8, 1>>>(v);
		MUST(host(v) == 8);
	} else {
		reverse<<<1, 64>>>(v, is(argv, "barrier"));
		CHECK(cudaDeviceSynchronize());
		MUST(host(v) == 0);
	}
	CHECK(cudaFree(v));
}
