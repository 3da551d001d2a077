// CASE right: none
// CASE answers: none
// CASE copy: failed call
// CASE copy_back: failed call
// CASE set: failed call
// CASE copy_async: failed call
// CASE copy_rows: failed call
// CASE copy_peer: failed call
// CASE symbol: failed call
// CASE direction: failed call
// CASE freed: failed call
// CASE inner: failed call
// CASE host_freed: failed call
// CASE event: failed call
// CASE stream: failed call
// CASE many: failed call
// CASE block: failed call
// CASE shared: failed call
// CASE cooperative: failed call
// CASE memory: failed call
// CASE device: failed call
// CASE driver: failed call
// CASE graph: failed call
// CASE capture: failed call
// CASE missing: refused
// CASE named: fails failed call: cudaFree at report_calls.cu:
// CASE fault: out of bounds
// FLAGS -lcuda
#include "verdict.h"
#include <cuda.h>

__global__ void store(int *p, int i) { p[i] = 1; }
__global__ void dynamic(int *p) {
	extern __shared__ int tile[];
	tile[threadIdx.x] = 1;
	p[threadIdx.x] = tile[threadIdx.x];
}
__constant__ int four[4];

// The runtime has the name of this function alone.
extern "C" cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *file, unsigned flags);

// wrong makes one call that fails, and looks at no result.
static void wrong(char **argv) {
	static int h[64];
	int *p = device<int>(16), *q;
	cudaStream_t s;
	cudaEvent_t e;
	if (is(argv, "copy"))
		cudaMemcpy(p, h, 65, cudaMemcpyHostToDevice);
	if (is(argv, "copy_back"))
		cudaMemcpy(h, p, 65, cudaMemcpyDeviceToHost);
	if (is(argv, "set"))
		cudaMemset(p, 0, 65);
	if (is(argv, "copy_async"))
		cudaMemcpyAsync(p, h, 65, cudaMemcpyHostToDevice, 0);
	if (is(argv, "copy_rows"))
		cudaMemcpy2D(p, 16, h, 16, 16, 5, cudaMemcpyHostToDevice);
	if (is(argv, "copy_peer"))
		cudaMemcpyPeer(p, 0, p + 12, 0, 20);
	if (is(argv, "symbol"))
		cudaMemcpyToSymbol(four, h, 20);
	if (is(argv, "direction"))
		cudaMemcpy(p, h, 64, cudaMemcpyDeviceToDevice);
	if (is(argv, "inner"))
		cudaFree(p + 1);
	if (is(argv, "host_freed")) {
		CHECK(cudaMallocHost((void **)&q, 64));
		CHECK(cudaFreeHost(q));
		cudaFreeHost(q);
	}
	if (is(argv, "event")) {
		CHECK(cudaEventCreate(&e));
		CHECK(cudaEventDestroy(e));
		cudaEventRecord(e, 0);
	}
	if (is(argv, "stream")) {
		CHECK(cudaStreamCreate(&s));
		CHECK(cudaStreamDestroy(s));
		cudaStreamSynchronize(s);
	}
	if (is(argv, "many"))
		for (int i = 0; i < 100; i++)
			cudaMemset(p, 0, 65 + i);
	if (is(argv, "block"))
		store<<<1, 2048>>>(p, 0);
	if (is(argv, "shared"))
		dynamic<<<1, 16, 60000>>>(p);
	if (is(argv, "cooperative")) {
		int i = 0;
		void *args[] = {&p, &i};
		cudaLaunchCooperativeKernel((void *)store, dim3(100000), dim3(1024), args, 0, 0);
	}
	if (is(argv, "memory"))
		cudaMalloc((void **)&q, 1ull << 50);
	if (is(argv, "device"))
		cudaSetDevice(7);
	if (is(argv, "driver"))
		cuMemFree((CUdeviceptr)(p + 1));
	if (is(argv, "graph")) {
		cudaGraph_t g;
		CHECK(cudaGraphCreate(&g, 0));
		CHECK(cudaGraphDestroy(g));
		cudaGraphDestroy(g);
	}
	if (is(argv, "capture")) {
		cudaGraph_t g;
		cudaStreamEndCapture(0, &g);
	}
	if (is(argv, "missing"))
		cudaGraphDebugDotPrint(nullptr, "graph.dot", 0);
	if (is(argv, "fault")) {
		store<<<1, 1>>>(p, 1000);
		for (int i = 0; i < 5; i++)
			cudaMemset(p, 0, 4);
		return;
	}
	CHECK(cudaFree(p));
	if (is(argv, "freed") || is(argv, "named"))
		cudaFree(p);
}

int main(int, char **argv) {
	if (is(argv, "answers")) {
		int n, can;
		cudaEvent_t e;
		cudaPointerAttributes a;
		int *p = device<int>(1 << 20);
		CHECK(cudaEventCreate(&e));
		store<<<1, 1>>>(p, 1);
		CHECK(cudaEventRecord(e));
		while (cudaEventQuery(e) == cudaErrorNotReady)
			;
		while (cudaStreamQuery(0) == cudaErrorNotReady)
			;
		CHECK(cudaGetDeviceCount(&n));
		CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
		CHECK(cudaDeviceEnablePeerAccess(1, 0));
		MUST(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
		MUST(cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled && cudaGetLastError() == cudaSuccess);
		CHECK(cudaPointerGetAttributes(&a, &n));
		MUST(cudaDeviceGetAttribute(&n, (cudaDeviceAttr)100000, 0) == cudaErrorInvalidValue);
		CHECK(cudaEventDestroy(e));
		CHECK(cudaFree(p));
	} else if (is(argv, "right")) {
		int *p = device<int>(16);
		store<<<1, 1>>>(p, 3);
		MUST(host(p, 3) == 1);
		CHECK(cudaFree(p));
		CHECK(cudaFree(nullptr));
		CHECK(cudaFreeHost(nullptr));
	} else {
		wrong(argv);
	}
}
