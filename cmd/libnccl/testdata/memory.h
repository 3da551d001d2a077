// memory.h is where the buffers of collectives.c are: on the host, or with GPUS on GPUs, by the
// driver's own interface (cuda.h is not needed). The program fills and looks at host memory; push
// and pull bring it to the GPU and back.
#include "check.h"

#ifndef GPUS

enum { COUNT = 1000, ON_GPUS = 0 };
typedef void *context;
static int device_of(int rank) { return (void)rank, 0; }
static context use_device(int device) { return (void)device, NULL; }
static cudaStream_t new_stream(context c) { return (void)c, (cudaStream_t)(uintptr_t)0x1234; } // any value
static void *place(context c, void *host, size_t n) { return (void)c, (void)n, host; }
static void unplace(context c, void *p) { (void)c, (void)p; }
static void push(context c, void *to, const void *from, size_t n, cudaStream_t s) { (void)c, (void)to, (void)from, (void)n, (void)s; }
static void pull(context c, void *to, const void *from, size_t n, cudaStream_t s) { (void)c, (void)to, (void)from, (void)n, (void)s; }

#else

enum { COUNT = 60, ON_GPUS = 1 }; // emulated GPUs are slow
typedef struct CUctx_st *context;
typedef unsigned long long address;
typedef struct CUmod_st *module;
typedef struct CUfunc_st *function;
typedef struct CUgraph_st *graph;
typedef struct CUgraphExec_st *graph_exec;
extern int cuInit(unsigned), cuDeviceGetCount(int *), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(context *, int),
    cuCtxSetCurrent(context), cuCtxGetCurrent(context *), cuCtxPushCurrent_v2(context), cuCtxPopCurrent_v2(context *), cuStreamCreate(cudaStream_t *, unsigned),
    cuStreamSynchronize(cudaStream_t), cuMemAlloc_v2(address *, size_t), cuMemFree_v2(address), cuMemcpyHtoD_v2(address, const void *, size_t),
    cuMemcpyDtoH_v2(void *, address, size_t), cuModuleLoadData(module *, const void *), cuModuleGetFunction(function *, module, const char *),
    cuLaunchKernel(function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cudaStream_t, void **, void **),
    cuStreamBeginCapture_v2(cudaStream_t, int), cuStreamEndCapture(cudaStream_t, graph *), cuGraphInstantiateWithFlags(graph_exec *, graph, unsigned long long),
    cuGraphLaunch(graph_exec, cudaStream_t), cuGraphExecDestroy(graph_exec), cuGraphDestroy(graph);

#define CU(call)                                            \
	do {                                                \
		int r_ = (call);                            \
		if (r_)                                     \
			fail(__LINE__, "%s: %d", #call, r_); \
	} while (0)

// device_of is a rank's device; ranks share devices where there are too few.
static int device_of(int rank)
{
	int count;
	CU(cuInit(0));
	CU(cuDeviceGetCount(&count));
	return rank % count;
}

// use_device makes a device current on this thread, as cudaSetDevice does.
static context use_device(int device)
{
	context c;
	int d;
	CU(cuInit(0));
	CU(cuDeviceGet(&d, device));
	CU(cuDevicePrimaryCtxRetain(&c, d));
	CU(cuCtxSetCurrent(c));
	return c;
}

// ON calls the driver with a context current, and leaves the thread's own as it was.
#define ON(c, call)                                    \
	do {                                           \
		context before_, after_;               \
		CU(cuCtxGetCurrent(&before_));         \
		CU(cuCtxPushCurrent_v2(c));            \
		CU(call);                              \
		CU(cuCtxPopCurrent_v2(NULL));          \
		CU(cuCtxGetCurrent(&after_));          \
		CHECK(before_ == after_);              \
	} while (0)

static cudaStream_t new_stream(context c)
{
	cudaStream_t s;
	ON(c, cuStreamCreate(&s, 1)); // waits for no other
	return s;
}
static void *place(context c, void *host, size_t n)
{
	address p;
	(void)host;
	ON(c, cuMemAlloc_v2(&p, n));
	return (void *)p;
}
static void unplace(context c, void *p) { ON(c, cuMemFree_v2((address)p)); }
static void push(context c, void *to, const void *from, size_t n, cudaStream_t s)
{
	ON(c, cuStreamSynchronize(s));
	ON(c, cuMemcpyHtoD_v2((address)to, from, n));
	ON(c, cuStreamSynchronize(NULL)); // the copy is on its way until then
}
static void pull(context c, void *to, const void *from, size_t n, cudaStream_t s)
{
	ON(c, cuStreamSynchronize(s));
	ON(c, cuMemcpyDtoH_v2(to, (address)from, n));
}

#endif
