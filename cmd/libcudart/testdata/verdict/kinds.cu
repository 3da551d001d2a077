// CASE peer: none
// CASE peer_unasked: no access
// CASE named: none
// CASE named_alone: deadlock
// CASE proxy: none
// CASE proxy_unfenced: missing proxy fence
// CASE alias: none
// CASE alias_unfenced: missing alias fence
// FLAGS -lcuda
#include "verdict.h"

#include <cuda.h>

__global__ void copy(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x]; }

// meet has the first warp wait at a barrier for both, to which the second comes or not.
__global__ void meet(int *v, bool both) {
	if (threadIdx.x < 32 || both)
		asm volatile("bar.sync 1, 64;" ::: "memory");
	v[threadIdx.x] = 1;
}

// push writes a tile to global memory by a bulk copy, for which a fence has to show what the thread has stored.
__global__ void push(int *to, bool fenced) {
	alignas(16) __shared__ int tile[4];
	for (int i = 0; i < 4; i++)
		tile[i] = i;
	if (fenced)
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n\tcp.async.bulk.commit_group;\n\t"
		     "cp.async.bulk.wait_group 0;" ::"l"(to), "r"((unsigned)__cvta_generic_to_shared(tile))
		     : "memory");
}

// mirror stores by one address of the memory and loads by the other.
__global__ void mirror(int *a, int *b, int *sum, bool fenced) {
	*a = 7;
	if (fenced)
		asm volatile("fence.proxy.alias;" ::: "memory");
	*sum = *(volatile int *)b;
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle memory, size_t n) {
	CUdeviceptr p = 0;
	CUmemAccessDesc access = {};
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	MUST(!cuMemAddressReserve(&p, n, 0, 0, 0) && !cuMemMap(p, n, 0, memory, 0) && !cuMemSetAccess(p, n, &access, 1));
	return p;
}

int main(int, char **argv) {
	int *v = device<int>(64);
	if (is(argv, "peer") || is(argv, "peer_unasked")) {
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaSetDevice(1));
		int *to = device<int>(64);
		if (is(argv, "peer"))
			CHECK(cudaDeviceEnablePeerAccess(0, 0));
		copy<<<1, 64>>>(v, to);
		cudaDeviceSynchronize();
		cudaFree(to);
		CHECK(cudaSetDevice(0));
	} else if (is(argv, "named") || is(argv, "named_alone")) {
		meet<<<1, 64>>>(v, is(argv, "named"));
		cudaDeviceSynchronize();
	} else if (is(argv, "proxy") || is(argv, "proxy_unfenced")) {
		push<<<1, 1>>>(v, is(argv, "proxy"));
		MUST(host(v, 3) == 3);
	} else {
		size_t n = 0;
		CUmemAllocationProp what = {};
		what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		CUmemGenericAllocationHandle memory;
		MUST(!cuMemGetAllocationGranularity(&n, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) && !cuMemCreate(&memory, n, &what, 0));
		CUdeviceptr at[] = {mapped(memory, n), mapped(memory, n)};
		mirror<<<1, 1>>>((int *)at[0], (int *)at[1], v, is(argv, "alias"));
		CHECK(cudaDeviceSynchronize());
		for (CUdeviceptr p : at)
			MUST(!cuMemUnmap(p, n) && !cuMemAddressFree(p, n));
		MUST(!cuMemRelease(memory));
	}
	cudaFree(v);
}
