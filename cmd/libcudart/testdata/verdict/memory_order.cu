// CASE reuse: none
// CASE busy: none
// CASE event: none
// CASE synced: none
// CASE behind: out of bounds
// CASE beside: out of bounds
// CASE ahead: out of bounds
// CASE other: out of bounds
// CASE copied: out of bounds
// CASE freed: out of bounds
// CASE twice: failed call
// CASE handed: none
// FLAGS -lcuda
// memory_order.cu allocates and frees in the order of streams.
#include "verdict.h"

#include <cuda.h>
#include <unistd.h>

static __global__ void put(int *p, int v) { p[threadIdx.x] = v + threadIdx.x; }
static __global__ void wait(volatile int *flag) {
	while (!*flag)
		;
}
static __global__ void raise(volatile int *flag) { *flag = 1; }

int main(int, char **argv) {
	cudaStream_t a, b;
	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	cudaEvent_t e;
	CHECK(cudaEventCreate(&e));
	int *p, *q, out[32];
	if (is(argv, "reuse")) {
		for (int i = 0; i < 8; i++) {
			CHECK(cudaMallocAsync(&p, 128, a));
			put<<<1, 32, 0, a>>>(p, i);
			CHECK(cudaMemcpyAsync(out, p, 128, cudaMemcpyDeviceToHost, a));
			CHECK(cudaFreeAsync(p, a));
			CHECK(cudaStreamSynchronize(a));
			MUST(out[3] == i + 3);
		}
	} else if (is(argv, "busy")) { // neither call waits for a kernel of another stream
		int *flag = device<int>(1);
		CHECK(cudaMallocAsync(&p, 4096, b));
		CHECK(cudaDeviceSynchronize());
		wait<<<1, 1, 0, a>>>(flag);
		CHECK(cudaFreeAsync(p, b));
		usleep(50000);
		CHECK(cudaMallocAsync(&p, 4096, b));
		put<<<1, 32, 0, b>>>(p, 1);
		CHECK(cudaFreeAsync(p, b));
		CHECK(cudaStreamSynchronize(b));
		raise<<<1, 1, 0, b>>>(flag);
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaFree(flag));
	} else if (is(argv, "event")) { // the other stream waits for both
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaEventRecord(e, a));
		CHECK(cudaStreamWaitEvent(b, e, 0));
		put<<<1, 32, 0, b>>>(p, 1);
		CHECK(cudaEventRecord(e, b));
		CHECK(cudaStreamWaitEvent(a, e, 0));
		CHECK(cudaFreeAsync(p, a));
		CHECK(cudaMallocAsync(&q, 128, a));
		put<<<1, 32, 0, a>>>(q, 2);
		CHECK(cudaFreeAsync(q, a));
	} else if (is(argv, "synced")) { // the host has waited, and frees without a stream
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaStreamSynchronize(a));
		put<<<1, 32, 0, b>>>(p, 1);
		CHECK(cudaStreamSynchronize(b));
		CHECK(cudaFree(p));
	} else if (is(argv, "behind")) {
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaFreeAsync(p, a));
		CHECK(cudaMallocAsync(&q, 128, a));
		put<<<1, 32, 0, a>>>(p, 1);
		cudaFreeAsync(q, a);
	} else if (is(argv, "beside")) { // the free is in a stream that does not wait
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaStreamSynchronize(a));
		put<<<1, 32, 0, a>>>(p, 1);
		CHECK(cudaFreeAsync(p, b));
	} else if (is(argv, "ahead")) { // the use is in a stream that does not wait for the allocation
		CHECK(cudaMallocAsync(&p, 128, a));
		put<<<1, 32, 0, b>>>(p, 1);
		cudaDeviceSynchronize();
		cudaFreeAsync(p, a);
	} else if (is(argv, "other")) { // freed and allocated anew where nothing waits for the use
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaStreamSynchronize(a));
		put<<<1, 32, 0, a>>>(p, 1);
		CHECK(cudaFreeAsync(p, b));
		CHECK(cudaMallocAsync(&q, 128, b));
		put<<<1, 32, 0, b>>>(q, 1);
		cudaFreeAsync(q, b);
	} else if (is(argv, "copied")) { // a copy is a use
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaMemsetAsync(p, 0, 128, a));
		CHECK(cudaStreamSynchronize(a));
		CHECK(cudaMemsetAsync(p, 1, 128, b));
		CHECK(cudaFreeAsync(p, a));
	} else if (is(argv, "freed")) { // cudaFree of such memory waits for nothing
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaStreamSynchronize(a));
		put<<<1, 32, 0, a>>>(p, 1);
		CHECK(cudaFree(p));
	} else if (is(argv, "twice")) {
		CHECK(cudaMallocAsync(&p, 128, a));
		CHECK(cudaFreeAsync(p, a));
		MUST(cudaFreeAsync(p, a) == cudaErrorInvalidValue);
		puts("refused");
	} else if (is(argv, "handed")) { // the driver's calls, and memory of cudaMalloc
		CUdeviceptr d;
		MUST(cuMemAllocAsync(&d, 128, a) == CUDA_SUCCESS);
		put<<<1, 32, 0, a>>>((int *)d, 1);
		MUST(cuMemFreeAsync(d, a) == CUDA_SUCCESS);
		p = device<int>(32);
		CHECK(cudaDeviceSynchronize());
		put<<<1, 32, 0, b>>>(p, 1);
		CHECK(cudaFreeAsync(p, b));
	}
	cudaDeviceSynchronize();
	cudaEventDestroy(e);
	cudaStreamDestroy(a);
	cudaStreamDestroy(b);
}
