// work.c has streams, events, kernels and graphs.
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "driver.h"
#include "run.h"

// Streams
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority) { return RUN(driver.cuStreamCreateWithPriority((word *)s, flags, priority)); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) { return cudaStreamCreateWithPriority(s, flags, 0); }
cudaError_t cudaStreamCreate(cudaStream_t *s) { return cudaStreamCreateWithPriority(s, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return BACK(driver.cuStreamDestroy_v2((word)s)); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return RUN(driver.cuStreamSynchronize((word)s)); }
cudaError_t cudaStreamQuery(cudaStream_t s) { return RUN(driver.cuStreamQuery((word)s)); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) { return RUN(driver.cuStreamWaitEvent((word)s, (word)e, flags)); }
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) { return RUN(driver.cuStreamGetFlags((word)s, flags)); }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) { return RUN(driver.cuStreamGetPriority((word)s, priority)); }
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id) { return RUN(driver.cuStreamGetId((word)s, id)); }
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device)
{
	word before = 0, context = 0;
	int result = entered();
	if (!result && !(result = driver.cuStreamGetCtx((word)s, &context)) && !(result = driver.cuCtxGetCurrent(&before))) {
		driver.cuCtxSetCurrent(context);
		result = driver.cuCtxGetDevice(device);
		driver.cuCtxSetCurrent(before);
	}
	return done(result);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *data) { return RUN(driver.cuLaunchHostFunc((word)s, f, data)); }

typedef struct {
	cudaStreamCallback_t f;
	cudaStream_t stream;
	void *data;
} callback;
static void callBack(void *p)
{
	callback c = *(callback *)p;
	free(p);
	c.f(c.stream, cudaSuccess, c.data);
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *data, unsigned flags)
{
	int capturing = 0;
	WANT(!flags, cudaErrorInvalidValue, "flags %#x: they have to be 0", flags);
	if (!entered() && !driver.cuStreamIsCapturing((word)s, &capturing) && capturing)
		return RUN(driver.cuStreamQuery((word)s)); // no more allowed than this in a capture
	callback *c = malloc(sizeof *c);
	if (!c || !f) {
		free(c);
		return done(f ? cudaErrorMemoryAllocation : because(cudaErrorInvalidValue, "the function is null"));
	}
	*c = (callback){f, s, data};
	int result = RUN(driver.cuLaunchHostFunc((word)s, callBack, c));
	if (result)
		free(c);
	return result;
}

// Events
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) { return RUN(driver.cuEventCreate((word *)e, flags)); }
#undef cudaEventCreate
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return BACK(driver.cuEventDestroy_v2((word)e)); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags) { return RUN(driver.cuEventRecordWithFlags((word)e, (word)s, flags)); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { return cudaEventRecordWithFlags(e, s, 0); }
cudaError_t cudaEventQuery(cudaEvent_t e) { return RUN(driver.cuEventQuery((word)e)); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { return RUN(driver.cuEventSynchronize((word)e)); }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end) { return RUN(driver.cuEventElapsedTime(ms, (word)begin, (word)end)); }
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t begin, cudaEvent_t end) { return cudaEventElapsedTime(ms, begin, end); }

// Kernels
// kernelOf is functionOf for what asks about a kernel: an address that is none is a wrong handle.
static int kernelOf(const void *f, word *function)
{
	int result = functionOf(f, function);
	return f && result == cudaErrorInvalidDeviceFunction ? cudaErrorInvalidResourceHandle : result;
}

// A launch is CUlaunchConfig.
typedef struct {
	dim3 grid, block;
	unsigned shared;
	word stream;
	const void *attributes;
	unsigned count;
} launchConfig;

enum { mostAttributes = 32 }; // of cudaLaunchAttributeID, with room for newer ones

static int launch(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s, const cudaLaunchAttribute *attributes, unsigned count)
{
	word function;
	int result = kernelOf(f, &function);
	if (result)
		return result;
	if (count && !attributes)
		return because(cudaErrorInvalidValue, "%u attributes at a null pointer", count);
	for (unsigned i = 0; i < count; i++)
		if ((unsigned)attributes[i].id > mostAttributes)
			return because(cudaErrorInvalidValue, "there is no launch attribute %d", attributes[i].id);
	unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
	if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64 || grid.y > 65535 || grid.z > 65535)
		return because(cudaErrorInvalidValue, "a grid of %u × %u × %u, blocks of %u × %u × %u: at most 1024 threads a block, and none may be 0", grid.x, grid.y,
			       grid.z, block.x, block.y, block.z);
	launchConfig c = {grid, block, shared, (word)s, attributes, count};
	return driver.cuLaunchKernelEx(&c, function, args, NULL);
}
cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s)
{
	return done(launch(f, grid, block, args, shared, s, NULL, 0));
}
// The handle of a kernel is its address on the host. By handles nvcc has programs launch since CUDA 13.
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *f)
{
	GIVEN(kernel);
	word function;
	*kernel = (cudaKernel_t)f;
	return done(functionOf(f, &function));
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *f)
{
	*kernel = (cudaKernel_t)f;
	return 0;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared, s);
}
cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s)
{
	cudaLaunchAttribute a = {.id = cudaLaunchAttributeCooperative, .val.cooperative = 1};
	return done(launch(f, grid, block, args, shared, s, &a, 1));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args)
{
	GIVEN(c);
	return done(launch(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, c->attrs, c->numAttrs));
}

enum { maxThreads, sharedBytes, constBytes, localBytes, registers, ptxVersion, binaryVersion, cacheMode, maxDynamic, carveout,
       clusterMustBeSet, clusterWidth, clusterHeight, clusterDepth, clusterNonPortable, clusterPolicy, attributes }; // CU_FUNC_ATTRIBUTE_
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f)
{
	word function;
	GIVEN(a);
	int v[attributes] = {0}, result = kernelOf(f, &function);
	if (result)
		return done(result);
	for (int i = 0; i < attributes; i++)
		driver.cuFuncGetAttribute(&v[i], i, function);
	memset(a, 0, sizeof *a);
	a->sharedSizeBytes = v[sharedBytes], a->constSizeBytes = v[constBytes], a->localSizeBytes = v[localBytes];
	a->maxThreadsPerBlock = v[maxThreads], a->numRegs = v[registers], a->ptxVersion = v[ptxVersion], a->binaryVersion = v[binaryVersion];
	a->maxDynamicSharedSizeBytes = v[maxDynamic], a->preferredShmemCarveout = v[carveout];
	a->clusterDimMustBeSet = v[clusterMustBeSet], a->requiredClusterWidth = v[clusterWidth], a->requiredClusterHeight = v[clusterHeight];
	a->requiredClusterDepth = v[clusterDepth], a->nonPortableClusterSizeAllowed = v[clusterNonPortable], a->clusterSchedulingPolicyPreference = v[clusterPolicy];
	return 0;
}
cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute attr, int value)
{
	word function;
	int result = kernelOf(f, &function), carve = attr == cudaFuncAttributePreferredSharedMemoryCarveout;
	WANT(result || !carve || (value >= -1 && value <= 100), cudaErrorInvalidValue, "a carveout of %d %%", value);
	return done(result || attr == cudaFuncAttributePreferredSharedMemoryCarveout ? result : driver.cuFuncSetAttribute(function, attr, value)); // a carveout is a hint
}
cudaError_t cudaFuncSetCacheConfig(const void *f, enum cudaFuncCache config)
{
	word function;
	int result = kernelOf(f, &function);
	WANT(result || (unsigned)config <= cudaFuncCachePreferEqual, cudaErrorInvalidValue, "there is no cache configuration %d", config);
	return done(result);
}
#if CUDART_VERSION < 13000
cudaError_t cudaFuncSetSharedMemConfig(const void *f, int config)
{
	word function;
	(void)config;
	return done(functionOf(f, &function));
}
#endif
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) 
{
	GIVEN(function);
	return done(functionOf(symbol, (word *)function));
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *f, const cudaLaunchConfig_t *c)
{
	GIVEN(size);
	GIVEN(c);
	word function;
	launchConfig config = {c->gridDim, c->blockDim, c->dynamicSmemBytes, (word)c->stream, c->attrs, c->numAttrs};
	int result = functionOf(f, &function);
	return done(result ? result : driver.cuOccupancyMaxPotentialClusterSize(size, function, &config));
}
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *f, const cudaLaunchConfig_t *c)
{
	GIVEN(clusters);
	GIVEN(c);
	word function;
	launchConfig config = {c->gridDim, c->blockDim, c->dynamicSmemBytes, (word)c->stream, c->attrs, c->numAttrs};
	int result = functionOf(f, &function);
	return done(result ? result : driver.cuOccupancyMaxActiveClusters(clusters, function, &config));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads, size_t shared)
{
	word function;
	int result = kernelOf(f, &function);
	return done(result ? result : driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f, int threads, size_t shared, unsigned flags)
{
	WANT(flags <= cudaOccupancyDisableCachingOverride, cudaErrorInvalidValue, "flags %#x", flags);
	return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks, int threads)
{
	GIVEN(bytes);
	word function;
	int have = 0, result = functionOf(f, &function);
	size_t low = 0, high = 256 << 10; // the least that does not fit
	if (result)
		return done(result);
	WANT(blocks > 0 && threads > 0 && !driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&have, function, threads, 0) && have >= blocks, cudaErrorInvalidValue,
	     "%d blocks of %d threads do not fit", blocks, threads);
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&have, function, threads, middle) || have < blocks)
			high = middle;
		else
			low = middle;
	}
	*bytes = low;
	return 0;
}

// Captures and graphs
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) { return RUN(driver.cuStreamBeginCapture_v2((word)s, mode)); }
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t g, const cudaGraphNode_t *after, const void *edges, size_t count, enum cudaStreamCaptureMode mode)
{
	return RUN(driver.cuStreamBeginCaptureToGraph((word)s, (word)g, (const word *)after, edges, count, mode));
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) { return RUN(driver.cuStreamEndCapture((word)s, (word *)g)); }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) { return RUN(driver.cuStreamIsCapturing((word)s, (int *)status)); }
static int captureInfo(cudaStream_t s, int *status, unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **nodes, size_t *count)
{
	return RUN(driver.cuStreamGetCaptureInfo_v2((word)s, status, id, (word *)g, (const word **)nodes, count));
}
#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id) { return captureInfo(s, (int *)status, id, NULL, NULL, NULL); }
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **nodes, size_t *count)
{
	return captureInfo(s, (int *)status, id, g, nodes, count);
}
#define WITH_EDGES cudaStreamGetCaptureInfo_v3
#else
#define WITH_EDGES cudaStreamGetCaptureInfo
#endif
// All edges are plain ones.
cudaError_t WITH_EDGES(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **nodes, const void **edges, size_t *count)
{
	if (edges)
		*edges = NULL;
	return captureInfo(s, (int *)status, id, g, nodes, count);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) { return RUN(driver.cuThreadExchangeStreamCaptureMode((int *)mode)); }
cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned flags) { return RUN(driver.cuGraphCreate((word *)g, flags)); }
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return BACK(driver.cuGraphDestroy((word)g)); }
cudaError_t cudaGraphClone(cudaGraph_t *to, cudaGraph_t g) { return RUN(driver.cuGraphClone((word *)to, (word)g)); }
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *count)
{
	GIVEN(count);
	 return RUN(driver.cuGraphGetNodes((word)g, (word *)nodes, count));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long flags) { return RUN(driver.cuGraphInstantiateWithFlags((word *)x, (word)g, flags)); }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long flags) { return cudaGraphInstantiateWithFlags(x, g, flags); }
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResultInfo *info) { return RUN(driver.cuGraphExecUpdate_v2((word)x, (word)g, info)); }
cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t s) { return RUN(driver.cuGraphUpload((word)x, (word)s)); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) { return RUN(driver.cuGraphLaunch((word)x, (word)s)); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) { return BACK(driver.cuGraphExecDestroy((word)x)); }
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, cudaGraph_t child)
{
	return RUN(driver.cuGraphAddChildGraphNode((word *)n, (word)g, (const word *)after, count, (word)child));
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, cudaEvent_t e)
{
	GIVEN(e);
	return RUN(driver.cuGraphAddEventRecordNode((word *)n, (word)g, (const word *)after, count, (word)e));
}
#if CUDART_VERSION < 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count)
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const void *edges, size_t count)
#endif
{
#if CUDART_VERSION >= 13000
	(void)edges; // all are plain ones
#endif
	return RUN(driver.cuGraphAddDependencies((word)g, (const word *)from, (const word *)to, count));
}

// A node is made by hand as a capture of one piece of work into the graph.
typedef struct {
	word stream;
	int result;
} capture;

static capture begin(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, const void *p)
{
	capture c = {0, entered()};
	if (!c.result && (!n || !p || (count && !after)))
		c.result = because(cudaErrorInvalidValue, "the place of the node, its parameters or its dependencies are null");
	if (!c.result && !(c.result = driver.cuStreamCreateWithPriority(&c.stream, cudaStreamNonBlocking, 0)))
		c.result = driver.cuStreamBeginCaptureToGraph(c.stream, (word)g, (const word *)after, NULL, count, cudaStreamCaptureModeRelaxed);
	return c;
}
static int end(capture c, cudaGraphNode_t *node)
{
	int status, result = c.result;
	word graph;
	size_t count = 0;
	const word *nodes;
	if (!result && !(result = driver.cuStreamGetCaptureInfo_v2(c.stream, &status, NULL, NULL, &nodes, &count)) && count == 1)
		*node = (cudaGraphNode_t)nodes[0];
	if (c.stream)
		driver.cuStreamEndCapture(c.stream, &graph), driver.cuStreamDestroy_v2(c.stream);
	return done(result);
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, const struct cudaKernelNodeParams *p)
{
	capture c = begin(n, g, after, count, p);
	if (!c.result)
		c.result = !p->func ? cudaErrorInvalidDeviceFunction : p->extra ? cudaErrorNotSupported : launch(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, (cudaStream_t)c.stream, NULL, 0);
	return end(c, n);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	capture c = begin(n, g, after, count, to);
	if (!c.result && !bytes)
		c.result = because(cudaErrorInvalidValue, "a copy of 0 bytes");
	if (!c.result)
		c.result = cudaMemcpyAsync(to, from, bytes, kind, (cudaStream_t)c.stream);
	return end(c, n);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, const struct cudaMemcpy3DParms *p)
{
	capture c = begin(n, g, after, count, p);
	if (!c.result)
		c.result = cudaMemcpy3DAsync(p, (cudaStream_t)c.stream);
	return end(c, n);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, const struct cudaMemsetParams *p)
{
	capture c = begin(n, g, after, count, p);
	if (!c.result && (!p->dst || !p->width || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)))
		c.result = because(cudaErrorInvalidValue, "a set of %zu elements of %u bytes", p->width, p->elementSize);
	if (!c.result && p->height > 1)
		c.result = because(cudaErrorNotSupported, "sets of several rows in graphs are not carried out on emulated GPUs");
	if (!c.result && p->elementSize == 4)
		c.result = driver.cuMemsetD32Async((word)p->dst, p->value, p->width, c.stream);
	else if (!c.result)
		c.result = p->elementSize == 1 ? driver.cuMemsetD8Async((word)p->dst, p->value, p->width, c.stream) : cudaErrorNotSupported;
	return end(c, n);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *after, size_t count, const struct cudaHostNodeParams *p)
{
	capture c = begin(n, g, after, count, p);
	if (!c.result)
		c.result = driver.cuLaunchHostFunc(c.stream, p->fn, p->userData);
	return end(c, n);
}
