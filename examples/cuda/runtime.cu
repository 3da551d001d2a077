// runtime uses most of the CUDA runtime: a reduction by template, shared memory and shuffles, streams and events,
// variables and constants, atomics, graphs captured and by hand, a cooperative launch, managed memory, stream-ordered
// memory, copies in two dimensions, host functions, occupancy, errors.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "check.h"

template <int threads> __global__ void reduce(const int *in, int *out, int n)
{
	__shared__ int part[threads];
	int sum = 0;
	for (int i = blockIdx.x * threads + threadIdx.x; i < n; i += threads * gridDim.x)
		sum += in[i];
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int k = threads / 2; k >= 32; k /= 2) {
		if (threadIdx.x < k)
			part[threadIdx.x] += part[threadIdx.x + k];
		__syncthreads();
	}
	if (threadIdx.x < 32) {
		sum = part[threadIdx.x];
		for (int d = 16; d; d /= 2)
			sum += __shfl_down_sync(0xffffffff, sum, d);
		if (threadIdx.x == 0)
			atomicAdd(out, sum);
	}
}

__constant__ int factor[4];
__device__ int counter = 5;

__global__ void scale(int *v, int n)
{
	extern __shared__ int tile[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	tile[threadIdx.x] = i < n ? v[i] * factor[i % 4] : 0;
	__syncthreads();
	if (i < n)
		v[i] = tile[threadIdx.x];
	if (threadIdx.x == 0)
		atomicAdd(&counter, 1);
}

__global__ void increment(int *v, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
		v[i]++;
}

// meet has all blocks wait for each other twice, so they must run at once: it wants a cooperative launch.
__global__ void meet(int *v)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	v[blockIdx.x] = blockIdx.x + 1;
	for (int round = 0; round < 2; round++) {
		grid.sync();
		int sum = 0;
		for (unsigned b = 0; b < gridDim.x; b++)
			sum += v[b];
		grid.sync();
		v[blockIdx.x] = sum;
	}
}

enum { n = 1000, bytes = n * sizeof(int) };

static void reduction()
{
	std::vector<int> in(n);
	int want = 0, got = 0, *din, *dout;
	for (int i = 0; i < n; i++)
		want += in[i] = i * 7 % 100;
	CHECK(cudaMalloc(&din, bytes));
	CHECK(cudaMalloc(&dout, sizeof(int)));
	CHECK(cudaMemcpy(din, in.data(), bytes, cudaMemcpyDefault));
	CHECK(cudaMemset(dout, 0, sizeof(int)));
	reduce<128><<<2, 128>>>(din, dout, n);
	CHECK(cudaMemcpy(&got, dout, sizeof got, cudaMemcpyDefault));
	WANT(got == want);
	CHECK(cudaFree(din));
	CHECK(cudaFree(dout));
}

static void variables()
{
	int f[4] = {1, 2, 3, 4}, c = 0, *v;
	std::vector<int> host(n, 10);
	CHECK(cudaMemcpyToSymbol(factor, f, sizeof f));
	CHECK(cudaMalloc(&v, bytes));
	CHECK(cudaMemcpy(v, host.data(), bytes, cudaMemcpyHostToDevice));
	scale<<<4, 256, 256 * sizeof(int)>>>(v, n);
	CHECK(cudaMemcpy(host.data(), v, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		WANT(host[i] == 10 * f[i % 4]);
	CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
	WANT(c == 9);
	CHECK(cudaFree(v));
}

static void called(void *p) { ++*(int *)p; }
static void CUDART_CB calledBack(cudaStream_t, cudaError_t status, void *p) { *(int *)p += status == cudaSuccess; }

static void streams()
{
	cudaStream_t s[4];
	cudaEvent_t begin, end;
	int *v[4], *host, calls = 0;
	CHECK(cudaMallocHost(&host, 4 * bytes));
	memset(host, 0, 4 * bytes);
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreateWithFlags(&end, cudaEventDefault));
	for (int i = 0; i < 4; i++) {
		CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
		CHECK(cudaMallocAsync(&v[i], bytes, s[i]));
	}
	CHECK(cudaEventRecord(begin, s[0]));
	for (int i = 0; i < 4; i++) {
		CHECK(cudaMemcpyAsync(v[i], host + n * i, bytes, cudaMemcpyHostToDevice, s[i]));
		for (int k = 0; k <= i; k++)
			increment<<<2, 128, 0, s[i]>>>(v[i], n);
		CHECK(cudaMemcpyAsync(host + n * i, v[i], bytes, cudaMemcpyDeviceToHost, s[i]));
		CHECK(cudaFreeAsync(v[i], s[i]));
	}
	CHECK(cudaLaunchHostFunc(s[0], called, &calls));
	CHECK(cudaStreamAddCallback(s[0], calledBack, &calls, 0));
	CHECK(cudaEventRecord(end, s[0]));
	CHECK(cudaStreamWaitEvent(s[3], end, 0));
	CHECK(cudaEventSynchronize(end));
	for (int i = 0; i < 4; i++)
		CHECK(cudaStreamSynchronize(s[i]));
	float ms = -1;
	CHECK(cudaEventElapsedTime(&ms, begin, end));
	WANT(ms >= 0 && calls == 2);
	for (int i = 0; i < 4 * n; i++)
		WANT(host[i] == i / n + 1);
	for (int i = 0; i < 4; i++)
		CHECK(cudaStreamDestroy(s[i]));
	CHECK(cudaEventDestroy(begin));
	CHECK(cudaEventDestroy(end));
	CHECK(cudaFreeHost(host));
}

static void graphs()
{
	cudaStream_t s;
	cudaGraph_t captured, made;
	cudaGraphExec_t x;
	cudaGraphNode_t set, kernel;
	int *v, got[n], count = n;
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMalloc(&v, bytes));
	CHECK(cudaMemset(v, 0, bytes));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	increment<<<2, 128, 0, s>>>(v, n);
	increment<<<2, 128, 0, s>>>(v, n);
	CHECK(cudaStreamEndCapture(s, &captured));
	CHECK(cudaGraphInstantiate(&x, captured, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cudaGraphLaunch(x, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaMemcpy(got, v, bytes, cudaMemcpyDefault));
	WANT(got[0] == 6 && got[n - 1] == 6);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(captured));

	CHECK(cudaGraphCreate(&made, 0));
	cudaMemsetParams to = {};
	to.dst = v, to.value = 40, to.elementSize = 4, to.width = n, to.height = 1;
	CHECK(cudaGraphAddMemsetNode(&set, made, nullptr, 0, &to));
	void *args[] = {&v, &count};
	cudaKernelNodeParams k = {};
	k.func = (void *)increment, k.gridDim = dim3(2), k.blockDim = dim3(64), k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&kernel, made, &set, 1, &k));
	CHECK(cudaGraphInstantiate(&x, made, 0));
	CHECK(cudaGraphLaunch(x, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaMemcpy(got, v, bytes, cudaMemcpyDefault));
	WANT(got[0] == 41 && got[n - 1] == 41);
	CHECK(cudaGraphExecDestroy(x));
	CHECK(cudaGraphDestroy(made));
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaFree(v));
}

static void cooperative()
{
	int *v, got[4];
	CHECK(cudaMalloc(&v, sizeof got));
	void *args[] = {&v};
	for (int i = 0; i < 2; i++) {
		CHECK(cudaLaunchCooperativeKernel(meet, dim3(4), dim3(1), args));
		CHECK(cudaMemcpy(got, v, sizeof got, cudaMemcpyDefault));
		for (int b = 0; b < 4; b++)
			WANT(got[b] == 40);
	}
	CHECK(cudaFree(v));
}

static void memory()
{
	int *managed, *plane, rows[6][5], back[6][5];
	size_t pitch;
	CHECK(cudaMallocManaged(&managed, bytes));
	for (int i = 0; i < n; i++)
		managed[i] = i;
	increment<<<4, 64>>>(managed, n);
	CHECK(cudaDeviceSynchronize());
	WANT(managed[0] == 1 && managed[n - 1] == n);
	CHECK(cudaFree(managed));

	for (int i = 0; i < 30; i++)
		rows[i / 5][i % 5] = i;
	CHECK(cudaMallocPitch(&plane, &pitch, sizeof rows[0], 6));
	CHECK(cudaMemcpy2D(plane, pitch, rows, sizeof rows[0], sizeof rows[0], 6, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(back, sizeof back[0], plane, pitch, sizeof back[0], 6, cudaMemcpyDeviceToHost));
	WANT(!memcmp(rows, back, sizeof rows));
	cudaPointerAttributes a;
	CHECK(cudaPointerGetAttributes(&a, plane));
	WANT(a.type == cudaMemoryTypeDevice && a.device == 0);
	CHECK(cudaPointerGetAttributes(&a, rows));
	WANT(a.type == cudaMemoryTypeUnregistered);
	CHECK(cudaFree(plane));
}

static void devices()
{
	cudaDeviceProp p;
	int count, blocks, grid, block;
	CHECK(cudaGetDeviceCount(&count));
	CHECK(cudaGetDeviceProperties(&p, 0));
	WANT(count >= 1 && p.major >= 7 && p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.totalGlobalMem > 0 && p.multiProcessorCount > 0);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, increment, 256, 0));
	WANT(blocks > 0);
	CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, increment));
	WANT(block % 32 == 0 && grid >= p.multiProcessorCount);
	printf("%s, capability %d.%d, %d multiprocessors\n", p.name, p.major, p.minor, p.multiProcessorCount);
}

static void errors()
{
	int *p = nullptr;
	WANT(cudaMalloc(&p, (size_t)1 << 60) == cudaErrorMemoryAllocation);
	WANT(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
	increment<<<1, 2000>>>(p, 0);
	cudaError_t refused = cudaGetLastError(); // CUDA 12 and 13 differ
	WANT(refused == cudaErrorInvalidConfiguration || refused == cudaErrorInvalidValue);
	WANT(cudaSetDevice(1000) == cudaErrorInvalidDevice);
	WANT(!strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice"));
	cudaGetLastError();
}

int main()
{
	devices();
	reduction();
	variables();
	streams();
	graphs();
	cooperative();
	memory();
	errors();
	printf("all is right\n");
}
