// CASE once: refused
// CASE often: refused
// CASE other: none
// CASE named: fails wgmma
// CASE line: fails cudaLaunchKernel at report_refused.cu:
// CASE never: none
#include "verdict.h"

// fence has an instruction that is not emulated.
__global__ void fence(int *p) {
	asm volatile("wgmma.fence.sync.aligned;");
	p[0] = 1;
}

__global__ void plain(int *p) { p[0] = blockIdx.x; }

int main(int, char **argv) {
	int *p = device<int>(1);
	for (int i = 0; i < (is(argv, "often") ? 5 : 1); i++)
		if (!is(argv, "other") && !is(argv, "never"))
			fence<<<1, 128>>>(p);
	if (is(argv, "other")) // of the same module
		plain<<<1, 1>>>(p);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(p));
}
