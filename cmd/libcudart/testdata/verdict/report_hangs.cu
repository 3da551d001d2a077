// CASE spins: fails has not called the driver
// CASE right: none
// EMULATE -g 1 -wait 1s
#include "verdict.h"

__global__ void add(int *p) { *p += 1; }

int main(int, char **argv) {
	int *p = device<int>(1), *flag;
	CHECK(cudaMallocHost((void **)&flag, 4));
	*flag = 0;
	add<<<1, 1>>>(p);
	CHECK(cudaDeviceSynchronize());
	if (is(argv, "spins"))
		while (*(volatile int *)flag == 0)
			;
	CHECK(cudaFreeHost(flag));
	CHECK(cudaFree(p));
}
