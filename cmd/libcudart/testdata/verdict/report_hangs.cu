// CASE sleeps: fails has not called the driver
// CASE spins: fails has not called the driver
// CASE ran: fails 1  add
// CASE polls: deadlock
// CASE right: none
// EMULATE -g 1 -wait 1s
#include "verdict.h"
#include <unistd.h>

__global__ void add(int *p) { *p += 1; }
__global__ void wait(volatile int *p) {
	while (*p != 7)
		;
}

int main(int, char **argv) {
	int *p = device<int>(1), *flag;
	CHECK(cudaMallocHost((void **)&flag, 4));
	*flag = 0;
	add<<<1, 1>>>(p);
	CHECK(cudaDeviceSynchronize());
	if (is(argv, "sleeps"))
		pause();
	if (is(argv, "spins") || is(argv, "ran"))
		while (*(volatile int *)flag == 0)
			;
	if (is(argv, "polls")) {
		wait<<<1, 1>>>(p);
		cudaDeviceSynchronize();
		return 0;
	}
	CHECK(cudaFreeHost(flag));
	CHECK(cudaFree(p));
}
