/* cuda_runtime.h is the CUDA runtime for C++ and for kernels, in front of cuda_runtime_api.h. Kernels are
   compiled by clang: clang++ -x cuda with -nocudainc -nocudalib, or bin/nvcc of scripts/cuda-kit. */
#ifndef RINGO_CUDA_RUNTIME_H
#define RINGO_CUDA_RUNTIME_H
#define __CUDA_RUNTIME_H__

#if defined(__CUDA__) && !defined(__CUDACC__)
#define __CUDACC__ 1
#endif
#include "cuda_runtime_api.h"
#include "library_types.h"
#include "vector_functions.h"

#ifdef __cplusplus

/* Calls by type */
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t bytes) { return ::cudaMalloc((void **)(void *)p, bytes); }
template <class T> static inline cudaError_t cudaMallocHost(T **p, size_t bytes, unsigned int flags = 0) { return ::cudaHostAlloc((void **)(void *)p, bytes, flags); }
template <class T> static inline cudaError_t cudaHostAlloc(T **p, size_t bytes, unsigned int flags) { return ::cudaHostAlloc((void **)(void *)p, bytes, flags); }
template <class T> static inline cudaError_t cudaMallocManaged(T **p, size_t bytes, unsigned int flags = cudaMemAttachGlobal)
{
	return ::cudaMallocManaged((void **)(void *)p, bytes, flags);
}
template <class T> static inline cudaError_t cudaMallocPitch(T **p, size_t *pitch, size_t width, size_t height)
{
	return ::cudaMallocPitch((void **)(void *)p, pitch, width, height);
}
template <class T> static inline cudaError_t cudaMallocAsync(T **p, size_t bytes, cudaStream_t s) { return ::cudaMallocAsync((void **)(void *)p, bytes, s); }
template <class T> static inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags)
{
	return ::cudaHostGetDevicePointer((void **)(void *)device, host, flags);
}
template <class T> static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
								enum cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
	return ::cudaMemcpyToSymbol((const void *)&symbol, from, bytes, offset, kind);
}
template <class T> static inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
								  enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
	return ::cudaMemcpyFromSymbol(to, (const void *)&symbol, bytes, offset, kind);
}
template <class T> static inline cudaError_t cudaGetSymbolAddress(void **p, const T &symbol) { return ::cudaGetSymbolAddress(p, (const void *)&symbol); }
template <class T> static inline cudaError_t cudaGetSymbolSize(size_t *bytes, const T &symbol) { return ::cudaGetSymbolSize(bytes, (const void *)&symbol); }
template <class F> static inline cudaError_t cudaLaunchKernel(F *f, dim3 grid, dim3 block, void **args, size_t shared = 0, cudaStream_t s = 0)
{
	return ::cudaLaunchKernel((const void *)f, grid, block, args, shared, s);
}
template <class F> static inline cudaError_t cudaLaunchCooperativeKernel(F *f, dim3 grid, dim3 block, void **args, size_t shared = 0, cudaStream_t s = 0)
{
	return ::cudaLaunchCooperativeKernel((const void *)f, grid, block, args, shared, s);
}
template <class... P, class... A> static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*f)(P...), A &&...args)
{
	return [&](P... given) {
		void *list[] = {(void *)&given..., nullptr};
		return ::cudaLaunchKernelExC(config, (const void *)f, list);
	}(static_cast<A &&>(args)...);
}
template <class F> static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, F *f) { return ::cudaFuncGetAttributes(a, (const void *)f); }
template <class F> static inline cudaError_t cudaFuncSetAttribute(F *f, enum cudaFuncAttribute attr, int value)
{
	return ::cudaFuncSetAttribute((const void *)f, attr, value);
}
template <class F> static inline cudaError_t cudaFuncSetCacheConfig(F *f, enum cudaFuncCache config) { return ::cudaFuncSetCacheConfig((const void *)f, config); }
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *f, int threads, size_t shared)
{
	return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)f, threads, shared);
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, cudaGraphNode_t *, char *, size_t) { return ::cudaGraphInstantiate(x, g, 0); }
static inline cudaError_t cudaEventCreate(cudaEvent_t *e, unsigned int flags) { return ::cudaEventCreateWithFlags(e, flags); }

/* The size of block that fills multiprocessors best: of those with most threads the largest. */
template <class B, class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, F *f, B shared, int limit = 0)
{
	cudaFuncAttributes a;
	int device = 0, count = 0, best = 0;
	cudaError_t result = cudaFuncGetAttributes(&a, f);
	if (!result)
		result = cudaGetDevice(&device);
	if (!result)
		result = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
	if (result)
		return result;
	if (limit <= 0 || limit > a.maxThreadsPerBlock)
		limit = a.maxThreadsPerBlock;
	for (int threads = (limit + 31) / 32 * 32; threads > 0; threads -= 32) {
		int now = threads < limit ? threads : limit, blocks = 0;
		if ((result = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, now, shared(now))))
			return result;
		if (now * blocks > best)
			best = now * blocks, *block = now, *grid = blocks * count;
	}
	return cudaSuccess;
}
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, F *f, const cudaLaunchConfig_t *config)
{
	return cudaOccupancyMaxPotentialClusterSize(size, (const void *)f, config);
}
template <class F> static inline cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, F *f, const cudaLaunchConfig_t *config)
{
	return cudaOccupancyMaxActiveClusters(clusters, (const void *)f, config);
}
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F *f, size_t shared = 0, int limit = 0)
{
	return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, f, [=](int) { return shared; }, limit);
}
#endif

static inline struct cudaExtent make_cudaExtent(size_t w, size_t h, size_t d)
{
	struct cudaExtent e = {w, h, d};
	return e;
}
static inline struct cudaPos make_cudaPos(size_t x, size_t y, size_t z)
{
	struct cudaPos p = {x, y, z};
	return p;
}
static inline struct cudaPitchedPtr make_cudaPitchedPtr(void *p, size_t pitch, size_t x, size_t y)
{
	struct cudaPitchedPtr q = {p, pitch, x, y};
	return q;
}

#ifdef __CUDA__
#include "ringo_device.h"
#endif

#endif
