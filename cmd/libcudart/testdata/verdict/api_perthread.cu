// CASE own: race
// CASE named: race
// CASE copies: race
// CASE driver: race
// CASE one_thread: none
// CASE joined: none
// CASE legacy: none
// CASE event: none
// CASE waits: none
// CASE every_call: none
// FLAGS --default-stream per-thread -lcuda
#include "verdict.h"

#include <atomic>
#include <cuda.h>
#include <thread>

__global__ void fill(int *p, int v) { p[threadIdx.x] = v; }
__device__ int variable[4];

static const int n = 32;

static void all_is(const int *p, int want) {
	int h[n];
	CHECK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost));
	for (int v : h)
		MUST(v == want);
}

// both runs two threads, neither of which waits for a GPU before the other has its work there.
template <class F, class G> static void both(F f, G g) {
	std::atomic<int> there{0};
	auto run = [&](auto work) {
		work();
		for (there++; there < 2;)
			std::this_thread::yield();
		CHECK(cudaStreamSynchronize(0));
	};
	std::thread a([&] { run(f); }), b([&] { run(g); });
	a.join();
	b.join();
}

static void every_call(int *p) {
	int h[n], priority, ordinal;
	unsigned flags;
	unsigned long long id;
	cudaStreamCaptureStatus status;
	cudaEvent_t e;
	cudaGraph_t g;
	cudaGraphExec_t x;
	void *q, *args[] = {&p, &priority};
	CHECK(cudaMemset(p, 0, sizeof h));
	CHECK(cudaMemset2D(p, 8, 0, 8, 2));
	CHECK(cudaMemsetAsync(p, 0, sizeof h));
	CHECK(cudaMemset2DAsync(p, 8, 0, 8, 2));
	CHECK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDefault));
	CHECK(cudaMemcpyAsync(p, h, sizeof h, cudaMemcpyDefault));
	CHECK(cudaMemcpy2D(p, 8, h, 8, 8, 2, cudaMemcpyDefault));
	CHECK(cudaMemcpy2DAsync(p, 8, h, 8, 8, 2, cudaMemcpyDefault));
	CHECK(cudaMemcpyToSymbol(variable, h, 8));
	CHECK(cudaMemcpyFromSymbol(h, variable, 8));
	CHECK(cudaMemcpyToSymbolAsync((const void *)variable, h, 8, 0, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromSymbolAsync(h, (const void *)variable, 8, 0, cudaMemcpyDeviceToHost));
	CHECK(cudaStreamQuery(0) == cudaErrorNotReady ? cudaSuccess : cudaSuccess);
	CHECK(cudaStreamGetFlags(0, &flags));
	CHECK(cudaStreamGetPriority(0, &priority));
	CHECK(cudaStreamGetId(0, &id));
	CHECK(cudaStreamGetDevice(0, &ordinal));
	CHECK(cudaStreamIsCapturing(0, &status));
	CHECK(cudaEventCreate(&e));
	CHECK(cudaEventRecord(e));
	CHECK(cudaEventRecordWithFlags(e));
	CHECK(cudaStreamWaitEvent(0, e));
	CHECK(cudaLaunchHostFunc(0, [](void *) {}, nullptr));
	CHECK(cudaMallocAsync(&q, 64, 0));
	CHECK(cudaFreeAsync(q, 0));
	// A stream of a thread can be captured, which the legacy one cannot.
	CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
	priority = 5;
	CHECK(cudaLaunchKernel((const void *)fill, dim3(1), dim3(n), args, 0, 0));
	CHECK(cudaStreamEndCapture(0, &g));
	CHECK(cudaGraphInstantiate(&x, g));
	CHECK(cudaGraphUpload(x, 0));
	CHECK(cudaGraphLaunch(x, 0));
	all_is(p, 5);
	cudaLaunchConfig_t c = {dim3(1), dim3(n), 0, 0, nullptr, 0};
	CHECK(cudaLaunchKernelEx(&c, fill, p, 6));
	all_is(p, 6);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(g));
	CHECK(cudaEventDestroy(e));
	// So does the driver, by its header and by asking for the address.
	void *f = nullptr, *legacy = nullptr;
	CUdriverProcAddressQueryResult found;
	MUST(cuGetProcAddress("cuStreamQuery", &f, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &found) == CUDA_SUCCESS && f == (void *)cuStreamQuery);
	MUST(cuGetProcAddress("cuStreamQuery", &legacy, 12000, 0, &found) == CUDA_SUCCESS && f != legacy);
	CUstream s = 0;
	CUgraph dg;
	MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS && cuMemsetD8Async((CUdeviceptr)p, 0, 4, s) == CUDA_SUCCESS);
	MUST(cuStreamEndCapture(s, &dg) == CUDA_SUCCESS && cuGraphDestroy(dg) == CUDA_SUCCESS);
	MUST(cuMemcpyDtoH(h, (CUdeviceptr)p, 4) == CUDA_SUCCESS && h[0] == 6);
	MUST(cuMemsetD8((CUdeviceptr)p, 0, 4) == CUDA_SUCCESS && cuMemcpyDtoH(h, (CUdeviceptr)p, 4) == CUDA_SUCCESS && h[0] == 0);
}

int main(int, char **argv) {
	CUcontext context;
	int *p = device<int>(n), *q = device<int>(n);
	CHECK(cudaDeviceSynchronize());
	MUST(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
	auto writes = [&] { fill<<<1, n>>>(p, 1); };
	if (is(argv, "own"))
		both(writes, writes);
	else if (is(argv, "named"))
		both([&] { fill<<<1, n, 0, cudaStreamPerThread>>>(p, 1); }, writes);
	else if (is(argv, "copies"))
		both([&] { CHECK(cudaMemcpy(p, q, n * sizeof *p, cudaMemcpyDeviceToDevice)); }, writes);
	else if (is(argv, "driver"))
		both([&] {
			MUST(cuCtxSetCurrent(context) == CUDA_SUCCESS);
			MUST(cuMemsetD32Async((CUdeviceptr)p, 1, n, 0) == CUDA_SUCCESS);
		}, writes);
	else if (is(argv, "one_thread")) {
		for (int i = 0; i < 3; i++)
			fill<<<1, n>>>(p, i);
		all_is(p, 2);
	} else if (is(argv, "joined")) {
		std::thread([&] { writes(); CHECK(cudaStreamSynchronize(0)); }).join();
		fill<<<1, n>>>(p, 2);
		all_is(p, 2);
	} else if (is(argv, "legacy")) { // which waits for the streams of all threads, and they for it
		std::thread([&] { writes(); }).join();
		fill<<<1, n, 0, cudaStreamLegacy>>>(p, 2);
		std::thread([&] { fill<<<1, n>>>(p, 3); CHECK(cudaStreamSynchronize(0)); }).join();
		all_is(p, 3);
	} else if (is(argv, "event")) {
		cudaEvent_t e;
		CHECK(cudaEventCreate(&e));
		std::thread([&] { writes(); CHECK(cudaEventRecord(e)); }).join();
		CHECK(cudaStreamWaitEvent(0, e));
		fill<<<1, n>>>(p, 2);
		all_is(p, 2);
		CHECK(cudaEventDestroy(e));
	} else if (is(argv, "waits")) { // a copy to the host waits for the own stream alone
		fill<<<1, n>>>(p, 4);
		all_is(p, 4);
	} else
		every_call(p);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(p));
	CHECK(cudaFree(q));
	return 0;
}
