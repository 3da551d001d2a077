// perthread.c has the twins of functions for programs with per-thread default streams: their stream 0 is the thread's own.
#include "cuda_runtime_api.h"
#include "driver.h"
#include "run.h"

#define OWN(s) ((s) ? (s) : cudaStreamPerThread)
#define STREAM cudaStream_t s

#define Z(name, parameters, ...)        \
	cudaError_t name parameters; \
	cudaError_t name##_ptsz parameters { return name(__VA_ARGS__); }

Z(cudaMemcpyAsync, (void *to, const void *from, size_t n, enum cudaMemcpyKind k, STREAM), to, from, n, k, OWN(s))
Z(cudaMemcpy2DAsync, (void *to, size_t toPitch, const void *from, size_t fromPitch, size_t w, size_t h, enum cudaMemcpyKind k, STREAM), to, toPitch, from, fromPitch, w, h, k, OWN(s))
Z(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, STREAM), p, OWN(s))
Z(cudaMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t n, size_t at, enum cudaMemcpyKind k, STREAM), symbol, from, n, at, k, OWN(s))
Z(cudaMemcpyFromSymbolAsync, (void *to, const void *symbol, size_t n, size_t at, enum cudaMemcpyKind k, STREAM), to, symbol, n, at, k, OWN(s))
Z(cudaMemsetAsync, (void *p, int value, size_t n, STREAM), p, value, n, OWN(s))
Z(cudaMemset2DAsync, (void *p, size_t pitch, int value, size_t w, size_t h, STREAM), p, pitch, value, w, h, OWN(s))
Z(cudaMallocAsync, (void **p, size_t n, STREAM), p, n, OWN(s))
Z(cudaFreeAsync, (void *p, STREAM), p, OWN(s))
Z(cudaMallocFromPoolAsync, (void **p, size_t n, cudaMemPool_t pool, STREAM), p, n, pool, OWN(s))
Z(cudaStreamSynchronize, (STREAM), OWN(s))
Z(cudaStreamQuery, (STREAM), OWN(s))
Z(cudaStreamWaitEvent, (STREAM, cudaEvent_t e, unsigned flags), OWN(s), e, flags)
Z(cudaStreamGetFlags, (STREAM, unsigned *flags), OWN(s), flags)
Z(cudaStreamGetPriority, (STREAM, int *priority), OWN(s), priority)
Z(cudaStreamGetId, (STREAM, unsigned long long *id), OWN(s), id)
Z(cudaStreamGetDevice, (STREAM, int *device), OWN(s), device)
Z(cudaStreamAddCallback, (STREAM, cudaStreamCallback_t f, void *data, unsigned flags), OWN(s), f, data, flags)
Z(cudaStreamAttachMemAsync, (STREAM, void *p, size_t n, unsigned flags), OWN(s), p, n, flags)
Z(cudaStreamBeginCapture, (STREAM, enum cudaStreamCaptureMode mode), OWN(s), mode)
Z(cudaStreamBeginCaptureToGraph, (STREAM, cudaGraph_t g, const cudaGraphNode_t *after, const void *edges, size_t n, enum cudaStreamCaptureMode mode), OWN(s), g, after, edges, n, mode)
Z(cudaStreamEndCapture, (STREAM, cudaGraph_t *g), OWN(s), g)
Z(cudaStreamIsCapturing, (STREAM, enum cudaStreamCaptureStatus *status), OWN(s), status)
Z(cudaEventRecord, (cudaEvent_t e, STREAM), e, OWN(s))
Z(cudaEventRecordWithFlags, (cudaEvent_t e, STREAM, unsigned flags), e, OWN(s), flags)
Z(cudaLaunchHostFunc, (STREAM, cudaHostFn_t f, void *data), OWN(s), f, data)
Z(cudaLaunchKernel, (const void *f, dim3 grid, dim3 block, void **args, size_t shared, STREAM), f, grid, block, args, shared, OWN(s))
Z(__cudaLaunchKernel, (cudaKernel_t f, dim3 grid, dim3 block, void **args, size_t shared, STREAM), f, grid, block, args, shared, OWN(s))
Z(cudaLaunchCooperativeKernel, (const void *f, dim3 grid, dim3 block, void **args, size_t shared, STREAM), f, grid, block, args, shared, OWN(s))
Z(cudaGraphLaunch, (cudaGraphExec_t x, STREAM), x, OWN(s))
Z(cudaGraphUpload, (cudaGraphExec_t x, STREAM), x, OWN(s))
Z(cudaLaunchKernelExC, (const cudaLaunchConfig_t *c, const void *f, void **args), c ? &(cudaLaunchConfig_t){c->gridDim, c->blockDim, c->dynamicSmemBytes, OWN(c->stream), c->attrs, c->numAttrs} : c, f, args)
#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
Z(cudaMemPrefetchAsync, (const void *p, size_t n, int device, STREAM), p, n, device, OWN(s))
Z(cudaStreamGetCaptureInfo, (STREAM, enum cudaStreamCaptureStatus *status, unsigned long long *id), OWN(s), status, id)
Z(cudaStreamGetCaptureInfo_v2, (STREAM, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **nodes, size_t *n), OWN(s), status, id, g, nodes, n)
Z(cudaStreamGetCaptureInfo_v3, (STREAM, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **nodes, const void **edges, size_t *n), OWN(s), status, id, g, nodes, edges, n)
#else
Z(cudaStreamGetCaptureInfo, (STREAM, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **nodes, const void **edges, size_t *n), OWN(s), status, id, g, nodes, edges, n)
#endif

// Y defines the twin of a function that returns when its work is done, unless the work is of devices alone.
#define Y(name, parameters, alone, ...)                                                           \
	cudaError_t name##_ptds parameters                                                        \
	{                                                                                         \
		cudaError_t result = name##Async(__VA_ARGS__, cudaStreamPerThread);                   \
		return result || (alone) ? result : cudaStreamSynchronize(cudaStreamPerThread);   \
	}

static int onDevice(const void *p)
{
	unsigned type = 0;
	return !ready() && !driver.cuPointerGetAttribute(&type, 2, (word)p) && type == cudaMemoryTypeDevice;
}
static int within(enum cudaMemcpyKind k, const void *to, const void *from) { return k == cudaMemcpyDeviceToDevice || (k == cudaMemcpyDefault && onDevice(to) && onDevice(from)); }

Y(cudaMemcpy, (void *to, const void *from, size_t n, enum cudaMemcpyKind k), within(k, to, from), to, from, n, k)
Y(cudaMemcpy2D, (void *to, size_t toPitch, const void *from, size_t fromPitch, size_t w, size_t h, enum cudaMemcpyKind k), within(k, to, from), to, toPitch, from, fromPitch, w, h, k)
Y(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p), within(p->kind, p->dstPtr.ptr, p->srcPtr.ptr), p)
Y(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t n, size_t at, enum cudaMemcpyKind k), k != cudaMemcpyHostToDevice && onDevice(from), symbol, from, n, at, k)
Y(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t n, size_t at, enum cudaMemcpyKind k), k != cudaMemcpyDeviceToHost && onDevice(to), to, symbol, n, at, k)
Y(cudaMemset, (void *p, int value, size_t n), onDevice(p), p, value, n)
Y(cudaMemset2D, (void *p, size_t pitch, int value, size_t w, size_t h), onDevice(p), p, pitch, value, w, h)
