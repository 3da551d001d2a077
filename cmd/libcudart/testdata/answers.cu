// answers asks the CUDA runtime and driver for what they answer to odd calls, and prints a line for each: the group, the
// call, the error's name. testdata/answers.txt is what an H100 gave; the emulator is compared with it.
//
//   answers            all groups, each in processes of its own; a call that crashes is left out in the next try
//   answers GROUP      one group
#include <cuda.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

static const char *group;
static int number;     // of the last call
static bool leave[999]; // which calls crash
static int pipes[2] = {-1, -1};

static const char *named(cudaError_t e) { return cudaGetErrorName(e); }
static const char *named(CUresult r)
{
	const char *text = nullptr;
	return cuGetErrorName(r, &text) || !text ? "no name" : text;
}
static void say(const char *call, const char *answer, long long value = 0, bool valued = false)
{
	printf("%s | %s | %s", group, call, answer);
	if (valued)
		printf(" %lld", value);
	printf("\n");
	fflush(stdout);
}

// next begins a call, unless it has crashed before.
static bool next(const char *call)
{
	number++;
	if (pipes[1] >= 0 && write(pipes[1], &number, sizeof number) < 0)
		exit(3);
	if (leave[number])
		say(call, "crashes");
	return !leave[number];
}

// R is a call of the runtime: its answer, and the last error where that is another one.
#define R(...)                                                                          \
	do {                                                                            \
		if (!next(#__VA_ARGS__))                                                          \
			break;                                                          \
		cudaError_t e_ = (__VA_ARGS__), last_ = cudaGetLastError();             \
		std::string text_ = named(e_);                                          \
		if (last_ != e_)                                                        \
			text_ += std::string(", then ") + named(last_);                 \
		say(#__VA_ARGS__, text_.c_str());                                       \
	} while (0)
// D is a call of the driver, V a value, RV and DV a call with a value that it stores, L a launch.
#define D(...)                                              \
	do {                                                \
		if (next(#__VA_ARGS__))                                 \
			say(#__VA_ARGS__, named(__VA_ARGS__)); \
	} while (0)
#define V(value) say(#value, "=", (long long)(value), true)
#define RV(value, ...)                                                                          \
	do {                                                                                    \
		if (!next(#__VA_ARGS__))                                                                  \
			break;                                                                  \
		cudaError_t e_ = (__VA_ARGS__);                                                 \
		cudaGetLastError();                                                             \
		say(#__VA_ARGS__, named(e_), (long long)(value), !e_);                          \
	} while (0)
#define DV(value, ...)                                                         \
	do {                                                                   \
		if (!next(#__VA_ARGS__))                                                 \
			break;                                                 \
		CUresult r_ = (__VA_ARGS__);                                   \
		say(#__VA_ARGS__, named(r_), (long long)(value), !r_);         \
	} while (0)
#define L(...)                                                 \
	do {                                                   \
		if (!next(#__VA_ARGS__))                                 \
			break;                                 \
		__VA_ARGS__;                                   \
		say(#__VA_ARGS__, named(cudaGetLastError())); \
	} while (0)

__device__ int variable[16];
__global__ void one(int *p)
{
	if (p)
		p[threadIdx.x] = 1;
}
__global__ void polls(volatile int *p)
{
	while (!*p)
		__nanosleep(100);
}
__global__ void __launch_bounds__(64) bounded(int *p) { p[0] = 1; }
__global__ void dynamic(int *p)
{
	extern __shared__ int bytes[];
	bytes[threadIdx.x] = 1;
	__syncthreads();
	p[threadIdx.x] = bytes[threadIdx.x];
}
__global__ void fails(char *p, int how)
{
	__shared__ int local[4];
	switch (how) {
	case 0: *p = 1; break;
	case 1: p[1ll << 40] = 1; break;
	case 2: *(int *)(p + 1) = 1; break;
	case 3: assert(p == nullptr); break;
	case 4: __trap(); break;
	case 5: *(volatile int *)((char *)local + (1 << 20)) = 1; break;
	case 6: *(volatile int *)((char *)local + 1) = 1; break;
	case 7: atomicAdd((int *)(p + 2), 1); break;
	case 8: *p = *(volatile char *)(p + (1ll << 40)); break;
	}
}

static int host[1 << 14];
static int *device, *pinned, *managed;
static cudaStream_t stream;
static cudaEvent_t event;
static void makes()
{
	cudaMalloc((void **)&device, 4096);
	cudaMemset(device, 0, 4096);
	cudaHostAlloc((void **)&pinned, 4096, cudaHostAllocMapped);
	cudaMallocManaged((void **)&managed, 4096, cudaMemAttachGlobal);
	cudaStreamCreate(&stream);
	cudaEventCreate(&event);
	// A kernel's first launch loads it, which host functions and captures would not allow.
	*(volatile int *)pinned = 1;
	polls<<<1, 1>>>(pinned);
	one<<<1, 1>>>(nullptr);
	cudaDeviceSynchronize();
	cudaGetLastError();
}

static void about()
{
	cudaDeviceProp p;
	int driver = 0, runtime = 0;
	cudaGetDeviceProperties(&p, 0);
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	printf("# %s, driver of CUDA %d, runtime of CUDA %d\n", p.name, driver, runtime);
}

static void devices()
{
	int v = 0, w = 0;
	char id[64] = "";
	size_t bytes = 0;
	unsigned flags = 0;
	cudaDeviceProp p;
	cudaFuncCache cache;
	R(cudaGetDeviceCount(nullptr));
	R(cudaGetDevice(nullptr));
	RV(v, cudaGetDevice(&v));
	R(cudaSetDevice(-1));
	R(cudaSetDevice(99));
	R(cudaGetDeviceProperties((cudaDeviceProp *)nullptr, 0));
	R(cudaGetDeviceProperties(&p, -1));
	R(cudaGetDeviceProperties(&p, 99));
	R(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
	R(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)0, 0));
	R(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)9999, 0));
	R(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)-1, 0));
	R(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 99));
	R(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, -1));
	R(cudaDeviceGetPCIBusId(nullptr, 64, 0));
	R(cudaDeviceGetPCIBusId(id, 0, 0));
	R(cudaDeviceGetPCIBusId(id, -1, 0));
	R(cudaDeviceGetPCIBusId(id, 5, 0));
	R(cudaDeviceGetPCIBusId(id, 12, 0));
	R(cudaDeviceGetPCIBusId(id, 13, 0));
	R(cudaDeviceGetPCIBusId(id, 64, 99));
	R(cudaDeviceGetByPCIBusId(nullptr, id));
	R(cudaDeviceGetByPCIBusId(&v, nullptr));
	R(cudaDeviceGetByPCIBusId(&v, "nonsense"));
	R(cudaDeviceGetByPCIBusId(&v, "ffff:ff:1f.0"));
	R(cudaDeviceCanAccessPeer(nullptr, 0, 0));
	RV(v, cudaDeviceCanAccessPeer(&v, 0, 0));
	R(cudaDeviceCanAccessPeer(&v, 0, 99));
	R(cudaDeviceCanAccessPeer(&v, 99, 0));
	R(cudaDeviceCanAccessPeer(&v, -1, 0));
	R(cudaDeviceEnablePeerAccess(0, 0));
	R(cudaDeviceEnablePeerAccess(0, 5));
	R(cudaDeviceEnablePeerAccess(99, 0));
	R(cudaDeviceEnablePeerAccess(99, 5));
	R(cudaDeviceEnablePeerAccess(-1, 0));
	R(cudaDeviceDisablePeerAccess(0));
	R(cudaDeviceDisablePeerAccess(99));
	R(cudaDeviceGetP2PAttribute(nullptr, cudaDevP2PAttrAccessSupported, 0, 0));
	R(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, 0));
	R(cudaDeviceGetP2PAttribute(&v, (cudaDeviceP2PAttr)99, 0, 0));
	R(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, 99));
	R(cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
	R(cudaDeviceGetLimit(&bytes, (cudaLimit)77));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitDevRuntimeSyncDepth));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitDevRuntimePendingLaunchCount));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitMaxL2FetchGranularity));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize));
	R(cudaDeviceSetLimit((cudaLimit)77, 5));
	R(cudaDeviceSetLimit(cudaLimitStackSize, 1000));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
	R(cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40));
	R(cudaDeviceSetLimit(cudaLimitStackSize, 0));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
	R(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize));
	R(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (16 << 20) + 1));
	RV(bytes, cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
	R(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 5));
	R(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 0));
	R(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 999));
	R(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
	R(cudaDeviceGetCacheConfig(nullptr));
	RV(cache, cudaDeviceGetCacheConfig(&cache));
	R(cudaDeviceSetCacheConfig((cudaFuncCache)77));
	R(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	RV(cache, cudaDeviceGetCacheConfig(&cache));
	R(cudaDeviceGetStreamPriorityRange(nullptr, nullptr));
	RV(v, cudaDeviceGetStreamPriorityRange(&v, nullptr));
	RV(w, cudaDeviceGetStreamPriorityRange(&v, &w));
	R(cudaGetDeviceFlags(nullptr));
	RV(flags, cudaGetDeviceFlags(&flags));
	R(cudaSetDeviceFlags(0xffff));
	R(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceScheduleYield));
	R(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	RV(flags, cudaGetDeviceFlags(&flags));
	memset(&p, 0, sizeof p);
	R(cudaChooseDevice(nullptr, &p));
	R(cudaChooseDevice(&v, nullptr));
	RV(v, cudaChooseDevice(&v, &p));
	int none[] = {99};
	R(cudaSetValidDevices(nullptr, 1));
	R(cudaSetValidDevices(nullptr, 0));
	R(cudaSetValidDevices(none, 1));
	R(cudaSetValidDevices(none, -1));
	R(cudaInitDevice(99, 0, 0));
	R(cudaInitDevice(0, 0xffff, 1));
	R(cudaInitDevice(0, 0, 5));
	R(cudaInitDevice(0, 0, 0));
	R(cudaDriverGetVersion(nullptr));
	R(cudaRuntimeGetVersion(nullptr));
	V(cudaGetErrorName((cudaError_t)12345) == nullptr);
	V(cudaGetErrorString((cudaError_t)12345) == nullptr);
	V(!strcmp(cudaGetErrorName((cudaError_t)12345), cudaGetErrorString((cudaError_t)-1)));
}

static void memory()
{
	makes();
	void *p = nullptr, *q = nullptr;
	size_t pitch = 0, a = 0, b = 0;
	unsigned flags = 0;
	cudaPointerAttributes at;
	memset(&at, 0, sizeof at);
	R(cudaMalloc((void **)nullptr, 4));
	R(cudaMalloc(&p, (size_t)1 << 50));
	R(cudaMalloc(&p, (size_t)-1));
	p = &p;
	R(cudaMalloc(&p, 0));
	V(p == nullptr);
	R(cudaFree(nullptr));
	R(cudaFree(host));
	R(cudaFree(device + 1));
	R(cudaFree((void *)1));
	cudaMalloc(&p, 64);
	R(cudaFree(p));
	R(cudaFree(p));
	R(cudaFreeHost(nullptr));
	R(cudaFreeHost(host));
	R(cudaFreeHost(device));
	R(cudaFreeHost(pinned + 1));
	R(cudaFreeHost(managed));
	cudaMallocHost(&p, 64);
	R(cudaFree(p));
	R(cudaFreeHost(p));
	R(cudaFreeHost(p));
	R(cudaMallocHost((void **)nullptr, 4));
	R(cudaMallocHost(&p, 0));
	R(cudaMallocHost(&p, (size_t)1 << 50));
	R(cudaHostAlloc((void **)nullptr, 4, 0));
	R(cudaHostAlloc(&p, 0, 0));
	R(cudaHostAlloc(&p, 64, 8));
	R(cudaHostAlloc(&p, 64, 0x1000));
	R(cudaHostAlloc(&p, 64, 7));
	R(cudaHostRegister(nullptr, 64, 0));
	R(cudaHostRegister(host, 0, 0));
	R(cudaHostRegister(host, 64, 0x1000));
	R(cudaHostRegister(host, 64, 16));
	R(cudaHostRegister(pinned, 64, 0));
	R(cudaHostRegister(device, 64, 0));
	R(cudaHostRegister(host, sizeof host, 0));
	R(cudaHostRegister(host, sizeof host, 0));
	R(cudaHostRegister(host + 1024, 64, 0));
	RV(at.type, cudaPointerGetAttributes(&at, host + 5));
	RV(at.device, cudaPointerGetAttributes(&at, host + 5));
	RV(flags, cudaHostGetFlags(&flags, host));
	R(cudaHostGetDevicePointer(&p, host, 0));
	V(p == host);
	R(cudaHostUnregister(host + 1024));
	R(cudaHostUnregister(host));
	R(cudaHostUnregister(host));
	R(cudaHostUnregister(nullptr));
	R(cudaHostUnregister(pinned));
	R(cudaHostUnregister(device));
	R(cudaHostGetDevicePointer((void **)nullptr, pinned, 0));
	R(cudaHostGetDevicePointer(&p, nullptr, 0));
	R(cudaHostGetDevicePointer(&p, pinned, 1));
	R(cudaHostGetDevicePointer(&p, device, 0));
	R(cudaHostGetDevicePointer(&p, host, 0));
	R(cudaHostGetDevicePointer(&p, managed, 0));
	R(cudaHostGetDevicePointer(&p, pinned + 4, 0));
	R(cudaHostGetFlags(nullptr, pinned));
	R(cudaHostGetFlags(&flags, nullptr));
	R(cudaHostGetFlags(&flags, host));
	R(cudaHostGetFlags(&flags, device));
	RV(flags, cudaHostGetFlags(&flags, pinned));
	cudaHostAlloc(&p, 64, 0);
	RV(flags, cudaHostGetFlags(&flags, p));
	cudaHostAlloc(&p, 64, cudaHostAllocWriteCombined | cudaHostAllocPortable);
	RV(flags, cudaHostGetFlags(&flags, p));
	R(cudaMallocManaged((void **)nullptr, 64, cudaMemAttachGlobal));
	R(cudaMallocManaged(&p, 0, cudaMemAttachGlobal));
	R(cudaMallocManaged(&p, 64, 0));
	R(cudaMallocManaged(&p, 64, cudaMemAttachGlobal | cudaMemAttachHost));
	R(cudaMallocManaged(&p, 64, cudaMemAttachSingle));
	R(cudaMallocManaged(&p, 64, 99));
	R(cudaMallocManaged(&p, 64, cudaMemAttachHost));
	R(cudaFree(p));
	R(cudaPointerGetAttributes(nullptr, device));
	R(cudaPointerGetAttributes(&at, nullptr));
	V(at.type);
	V(at.device);
	R(cudaPointerGetAttributes(&at, device + 5));
	V(at.type);
	V(at.device);
	V(at.devicePointer == device + 5);
	V(at.hostPointer == nullptr);
	R(cudaPointerGetAttributes(&at, pinned + 5));
	V(at.type);
	V(at.device);
	V(at.devicePointer == pinned + 5);
	V(at.hostPointer == pinned + 5);
	R(cudaPointerGetAttributes(&at, managed + 5));
	V(at.type);
	V(at.device);
	V(at.devicePointer == managed + 5);
	V(at.hostPointer == managed + 5);
	R(cudaPointerGetAttributes(&at, host + 5));
	V(at.type);
	V(at.device);
	V(at.devicePointer == nullptr);
	V(at.hostPointer == host + 5);
	cudaMalloc(&q, 64);
	cudaFree(q);
	R(cudaPointerGetAttributes(&at, q));
	V(at.type);
	R(cudaMallocPitch((void **)nullptr, &pitch, 100, 2));
	R(cudaMallocPitch(&p, nullptr, 100, 2));
	RV(pitch, cudaMallocPitch(&p, &pitch, 0, 2));
	RV(pitch, cudaMallocPitch(&p, &pitch, 100, 0));
	RV(pitch, cudaMallocPitch(&p, &pitch, 100, 2));
	RV(pitch, cudaMallocPitch(&p, &pitch, 513, 2));
	R(cudaMalloc3D(nullptr, make_cudaExtent(10, 10, 10)));
	cudaPitchedPtr pp;
	memset(&pp, 0, sizeof pp);
	RV(pp.pitch, cudaMalloc3D(&pp, make_cudaExtent(0, 10, 10)));
	RV(pp.pitch, cudaMalloc3D(&pp, make_cudaExtent(10, 10, 0)));
	RV(pp.pitch, cudaMalloc3D(&pp, make_cudaExtent(10, 10, 10)));
	R(cudaMemGetInfo(nullptr, &a));
	R(cudaMemGetInfo(&a, nullptr));
	R(cudaMemGetInfo(nullptr, nullptr));
	R(cudaMemGetInfo(&a, &b));
	R(cudaGetSymbolAddress((void **)nullptr, variable));
	R(cudaGetSymbolAddress(&p, (const void *)nullptr));
	R(cudaGetSymbolAddress(&p, (const void *)host));
	R(cudaGetSymbolAddress(&p, (const void *)one));
	RV(a, cudaGetSymbolSize(&a, variable));
	R(cudaGetSymbolSize((size_t *)nullptr, variable));
	R(cudaGetSymbolSize(&a, (const void *)host));
	R(cudaStreamAttachMemAsync(stream, managed, 0, cudaMemAttachGlobal));
	R(cudaStreamAttachMemAsync(stream, managed, 0, 77));
	R(cudaStreamAttachMemAsync(stream, managed, 5, cudaMemAttachSingle));
	R(cudaStreamAttachMemAsync(stream, device, 0, cudaMemAttachGlobal));
	R(cudaStreamAttachMemAsync(stream, nullptr, 0, cudaMemAttachGlobal));
	R(cudaStreamAttachMemAsync(nullptr, managed, 0, cudaMemAttachSingle));
}

static void copies()
{
	makes();
	cudaMemcpy3DParms none, three;
	memset(&none, 0, sizeof none);
	R(cudaMemcpy(device, host, 16, (cudaMemcpyKind)7));
	R(cudaMemcpy(device, host, 16, (cudaMemcpyKind)-1));
	R(cudaMemcpy(device, host, 0, (cudaMemcpyKind)7));
	R(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy(nullptr, device, 4, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(device, nullptr, 4, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(device, nullptr, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy(nullptr, device, 4, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToHost));
	R(cudaMemcpy(host, host + 64, 8, cudaMemcpyHostToHost));
	R(cudaMemcpy(host, host + 64, 8, cudaMemcpyDefault));
	R(cudaMemcpy(host, host + 64, 8, cudaMemcpyHostToDevice));
	R(cudaMemcpy(host, host + 64, 8, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(device, device + 64, 8, cudaMemcpyHostToHost));
	R(cudaMemcpy(device, device + 64, 8, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device, device + 64, 8, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(device, pinned, 8, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(pinned, device, 8, cudaMemcpyHostToDevice));
	R(cudaMemcpy(managed, device, 8, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(managed, device, 8, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(device, host, 1 << 15, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device + 1000, host, 256, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device, host, (size_t)-1, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device, device + 1, 64, cudaMemcpyDeviceToDevice));
	R(cudaMemcpyAsync(device, host, 16, (cudaMemcpyKind)7, stream));
	R(cudaMemcpyAsync(device, host, 16, cudaMemcpyHostToDevice, stream));
	R(cudaMemcpyAsync(device, host, 16, cudaMemcpyDeviceToHost, stream));
	R(cudaMemcpyAsync(nullptr, host, 16, cudaMemcpyHostToDevice, stream));
	R(cudaMemcpyAsync(device, host, 0, (cudaMemcpyKind)7, stream));
	R(cudaMemcpyAsync(device, host, 16, cudaMemcpyHostToDevice, cudaStreamLegacy));
	R(cudaMemcpyAsync(device, host, 16, cudaMemcpyHostToDevice, cudaStreamPerThread));
	R(cudaMemcpyPeer(device, 0, device + 64, 0, 16));
	R(cudaMemcpyPeer(device, 0, device + 64, 99, 16));
	R(cudaMemcpyPeer(device, 99, device + 64, 0, 16));
	R(cudaMemcpyPeer(device, 0, device + 64, 99, 0));
	R(cudaMemcpyPeer(nullptr, 0, device + 64, 0, 16));
	R(cudaMemcpyPeer(device, 0, host, 0, 16));
	R(cudaMemcpyPeerAsync(device, 0, device + 64, 99, 16, stream));
	R(cudaMemcpy2D(device, 4, host, 8, 8, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 8, host, 4, 8, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 4, host, 4, 8, 1, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 8, host, 8, 8, 2, (cudaMemcpyKind)7));
	R(cudaMemcpy2D(device, 8, host, 8, 0, 2, (cudaMemcpyKind)7));
	R(cudaMemcpy2D(device, 8, host, 8, 8, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(nullptr, 8, nullptr, 8, 0, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(nullptr, 8, host, 8, 8, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 8, host, 8, 8, 2, cudaMemcpyDeviceToHost));
	R(cudaMemcpy2D(device, (size_t)1 << 40, host, 8, 8, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 4096, host, 4096, 4096, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2DAsync(device, 4, host, 8, 8, 2, cudaMemcpyHostToDevice, stream));
	R(cudaMemcpy3D(nullptr));
	R(cudaMemcpy3D(&none));
	three = none;
	three.srcPtr = make_cudaPitchedPtr(host, 8, 8, 2);
	three.dstPtr = make_cudaPitchedPtr(device, 8, 8, 2);
	three.kind = cudaMemcpyHostToDevice;
	R(cudaMemcpy3D(&three));
	three.extent = make_cudaExtent(8, 2, 2);
	R(cudaMemcpy3D(&three));
	three.extent = make_cudaExtent(16, 2, 2);
	R(cudaMemcpy3D(&three));
	three.extent = make_cudaExtent(8, 3, 2);
	R(cudaMemcpy3D(&three));
	three.extent = make_cudaExtent(8, 2, 2);
	three.kind = (cudaMemcpyKind)7;
	R(cudaMemcpy3D(&three));
	R(cudaMemcpy3DAsync(nullptr, stream));
	R(cudaMemcpyToSymbol(variable, host, 16, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpyToSymbol(variable, host, 64, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpyToSymbol(variable, host, 0, 99, cudaMemcpyHostToDevice));
	R(cudaMemcpyToSymbol(variable, host, 16, 0, cudaMemcpyDeviceToHost));
	R(cudaMemcpyToSymbol(variable, host, 16, 0, cudaMemcpyDeviceToDevice));
	R(cudaMemcpyToSymbol(variable, device, 16, 0, cudaMemcpyDeviceToDevice));
	R(cudaMemcpyToSymbol(variable, host, 16, 0, (cudaMemcpyKind)7));
	R(cudaMemcpyToSymbol(variable, nullptr, 16, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpyToSymbol((const void *)nullptr, host, 16, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpyToSymbol((const void *)host, host, 16, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpyFromSymbol(host, variable, 64, 4, cudaMemcpyDeviceToHost));
	R(cudaMemcpyFromSymbol(host, variable, 16, 0, cudaMemcpyHostToDevice));
	R(cudaMemcpyFromSymbol((void *)nullptr, variable, 16, 0, cudaMemcpyDeviceToHost));
	R(cudaMemset(nullptr, 0, 0));
	R(cudaMemset(nullptr, 0, 4));
	R(cudaMemset(host, 0, 4));
	R(cudaMemset(pinned, 0, 4));
	R(cudaMemset(managed, 0, 4));
	R(cudaMemset(device, 300, 4));
	R(cudaMemset(device, 0, 4097));
	R(cudaMemset(device, 0, 1 << 30));
	R(cudaMemsetAsync(host, 0, 4, stream));
	R(cudaMemsetAsync(nullptr, 0, 0, stream));
	R(cudaMemset2D(device, 4, 0, 8, 2));
	R(cudaMemset2D(device, 4, 0, 8, 1));
	R(cudaMemset2D(device, 4, 0, 8, 0));
	R(cudaMemset2D(nullptr, 8, 0, 8, 2));
	R(cudaMemset2D(device, 8, 0, 0, 2));
	R(cudaDeviceSynchronize());
}

struct within {
	cudaError_t count, get, allocate, frees, query, set, launch, last, sync;
};
static void calls(void *p)
{
	within *w = (within *)p;
	int v;
	void *q;
	w->count = cudaGetDeviceCount(&v);
	w->get = cudaGetDevice(&v);
	w->allocate = cudaMalloc(&q, 4);
	w->frees = cudaFree(nullptr);
	w->query = cudaStreamQuery(nullptr);
	w->set = cudaMemsetAsync(device, 0, 4, nullptr);
	w->sync = cudaDeviceSynchronize();
	one<<<1, 1>>>(device);
	w->launch = cudaGetLastError();
	w->last = cudaGetLastError();
}
static void returned(cudaStream_t, cudaError_t e, void *p) { *(int *)p = 100 + e; }
static void nothing(void *) {}

static void streams()
{
	makes();
	cudaStream_t s = nullptr, other = nullptr;
	cudaEvent_t e = nullptr, recorded = nullptr, untimed = nullptr;
	unsigned flags = 0;
	int v = 0;
	unsigned long long id = 0;
	float ms = 0;
	R(cudaStreamCreate(nullptr));
	R(cudaStreamCreateWithFlags(&s, 2));
	R(cudaStreamCreateWithFlags(&s, 5));
	R(cudaStreamCreateWithFlags(nullptr, 0));
	R(cudaStreamCreateWithPriority(&s, 0, 100));
	RV(v, cudaStreamGetPriority(s, &v));
	R(cudaStreamCreateWithPriority(&s, 0, -100));
	RV(v, cudaStreamGetPriority(s, &v));
	R(cudaStreamCreateWithPriority(&s, 7, 0));
	R(cudaStreamDestroy(nullptr));
	R(cudaStreamDestroy(cudaStreamLegacy));
	R(cudaStreamDestroy(cudaStreamPerThread));
	R(cudaStreamSynchronize(nullptr));
	R(cudaStreamSynchronize(cudaStreamLegacy));
	R(cudaStreamSynchronize(cudaStreamPerThread));
	R(cudaStreamQuery(nullptr));
	R(cudaStreamQuery(cudaStreamPerThread));
	R(cudaStreamWaitEvent(stream, nullptr, 0));
	R(cudaStreamWaitEvent(stream, event, 0));
	R(cudaStreamWaitEvent(stream, event, 7));
	R(cudaStreamGetFlags(stream, nullptr));
	RV(flags, cudaStreamGetFlags(nullptr, &flags));
	RV(flags, cudaStreamGetFlags(cudaStreamLegacy, &flags));
	RV(flags, cudaStreamGetFlags(cudaStreamPerThread, &flags));
	R(cudaStreamGetPriority(stream, nullptr));
	RV(v, cudaStreamGetPriority(nullptr, &v));
	R(cudaStreamGetId(stream, nullptr));
	R(cudaStreamGetId(nullptr, &id));
	R(cudaStreamGetDevice(stream, nullptr));
	RV(v, cudaStreamGetDevice(nullptr, &v));
	R(cudaStreamAddCallback(stream, nullptr, nullptr, 0));
	R(cudaStreamAddCallback(stream, returned, &v, 3));
	R(cudaStreamAddCallback(stream, returned, &v, 0));
	R(cudaStreamSynchronize(stream));
	V(v);
	R(cudaLaunchHostFunc(stream, nullptr, nullptr));
	R(cudaLaunchHostFunc(nullptr, nullptr, nullptr));
	within w;
	memset(&w, 0, sizeof w);
	R(cudaLaunchHostFunc(stream, calls, &w));
	R(cudaStreamSynchronize(stream));
	say("cudaGetDeviceCount in a host function", named(w.count));
	say("cudaGetDevice in a host function", named(w.get));
	say("cudaMalloc in a host function", named(w.allocate));
	say("cudaFree(nullptr) in a host function", named(w.frees));
	say("cudaStreamQuery in a host function", named(w.query));
	say("cudaMemsetAsync in a host function", named(w.set));
	say("cudaDeviceSynchronize in a host function", named(w.sync));
	say("a launch in a host function", named(w.launch));
	say("cudaGetLastError in a host function", named(w.last));
	R(cudaDeviceSynchronize());
	R(cudaEventCreate(nullptr));
	R(cudaEventCreateWithFlags(nullptr, 0));
	R(cudaEventCreateWithFlags(&e, 0x100));
	R(cudaEventCreateWithFlags(&e, cudaEventInterprocess));
	R(cudaEventCreateWithFlags(&e, 8));
	R(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	R(cudaEventCreate(&e));
	R(cudaEventCreate(&recorded));
	R(cudaEventDestroy(nullptr));
	R(cudaEventQuery(nullptr));
	R(cudaEventQuery(e));
	R(cudaEventSynchronize(nullptr));
	R(cudaEventSynchronize(e));
	R(cudaEventRecord(nullptr, nullptr));
	R(cudaEventRecord(recorded, nullptr));
	R(cudaEventRecordWithFlags(e, stream, 7));
	R(cudaEventRecordWithFlags(e, stream, cudaEventRecordExternal));
	R(cudaEventSynchronize(recorded));
	R(cudaEventElapsedTime(nullptr, recorded, recorded));
	R(cudaEventElapsedTime(&ms, nullptr, recorded));
	R(cudaEventElapsedTime(&ms, e, recorded));
	R(cudaEventElapsedTime(&ms, untimed, recorded));
	R(cudaEventRecord(untimed, nullptr));
	R(cudaEventSynchronize(untimed));
	R(cudaEventElapsedTime(&ms, untimed, recorded));
	R(cudaEventElapsedTime(&ms, recorded, recorded));
	cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
	RV(flags, cudaStreamGetFlags(other, &flags));
	*(volatile int *)pinned = 0;
	polls<<<1, 1, 0, other>>>(pinned);
	R(cudaStreamQuery(other));
	R(cudaEventRecord(e, other));
	R(cudaEventQuery(e));
	R(cudaEventElapsedTime(&ms, recorded, e));
	R(cudaStreamQuery(nullptr));
	R(cudaEventDestroy(untimed));
	*(volatile int *)pinned = 1;
	R(cudaStreamSynchronize(other));
	R(cudaEventQuery(e));
	cudaStreamCaptureStatus status;
	cudaStreamCaptureMode mode = (cudaStreamCaptureMode)7;
	cudaGraph_t g = nullptr;
	R(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
	R(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
	R(cudaStreamBeginCapture(stream, (cudaStreamCaptureMode)7));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaStreamEndCapture(stream, nullptr));
	R(cudaStreamEndCapture(nullptr, &g));
	R(cudaStreamIsCapturing(stream, nullptr));
	RV(status, cudaStreamIsCapturing(stream, &status));
	RV(status, cudaStreamIsCapturing(nullptr, &status));
	R(cudaThreadExchangeStreamCaptureMode(nullptr));
	R(cudaThreadExchangeStreamCaptureMode(&mode));
	mode = cudaStreamCaptureModeGlobal;
	cudaThreadExchangeStreamCaptureMode(&mode);
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	R(cudaStreamQuery(stream));
	RV(status, cudaStreamIsCapturing(stream, &status));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	void *p = nullptr;
	R(cudaMalloc(&p, 64));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	R(cudaMalloc(&p, 64));
	L(one<<<1, 1>>>(device));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	R(cudaEventRecord(e, stream));
	R(cudaStreamWaitEvent(other, e, 0));
	L(one<<<1, 1, 0, other>>>(device));
	R(cudaStreamEndCapture(other, &g));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	R(cudaLaunchHostFunc(stream, nullptr, nullptr));
	R(cudaStreamAddCallback(stream, returned, &v, 0));
	R(cudaMemcpyAsync(device, host, 16, cudaMemcpyHostToDevice, stream));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	R(cudaEventRecord(recorded, stream));
	R(cudaEventQuery(recorded));
	R(cudaEventElapsedTime(&ms, recorded, recorded));
	R(cudaStreamEndCapture(stream, &g));
	R(cudaDeviceSynchronize());
}

static void launches()
{
	makes();
	int v = 0, w = 0;
	size_t bytes = 0;
	void *args[] = {&device};
	const void *f = (const void *)one;
	cudaFuncAttributes at;
	L(one<<<0, 1>>>(device));
	L(one<<<1, 0>>>(device));
	L(one<<<1, 1025>>>(device));
	L(one<<<dim3(1, 65536), 1>>>(device));
	L(one<<<dim3(1, 1, 65536), 1>>>(device));
	L(one<<<1, dim3(1, 1, 65)>>>(device));
	L(one<<<1, dim3(1, 1025)>>>(device));
	L(one<<<dim3(0x80000000u), 1>>>(device));
	L(one<<<1, 1, 49 << 10>>>(device));
	L(bounded<<<1, 64>>>(device));
	L(bounded<<<1, 65>>>(device));
	L(dynamic<<<1, 32, 48 << 10>>>(device));
	L(dynamic<<<1, 32, (48 << 10) + 1>>>(device));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
	L(dynamic<<<1, 32, 227 << 10>>>(device));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, -2));
	R(cudaFuncSetAttribute(dynamic, (cudaFuncAttribute)0, 1));
	R(cudaFuncSetAttribute(dynamic, (cudaFuncAttribute)99, 1));
	R(cudaFuncSetAttribute(dynamic, cudaFuncAttributeNonPortableClusterSizeAllowed, 2));
	R(cudaFuncSetAttribute((const void *)nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
	R(cudaFuncSetAttribute((const void *)host, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
	R(cudaFuncGetAttributes(nullptr, f));
	R(cudaFuncGetAttributes(&at, (const void *)nullptr));
	R(cudaFuncGetAttributes(&at, (const void *)host));
	R(cudaFuncGetAttributes(&at, (const void *)variable));
	RV(at.maxThreadsPerBlock, cudaFuncGetAttributes(&at, (const void *)bounded));
	RV(at.maxDynamicSharedSizeBytes, cudaFuncGetAttributes(&at, f));
	RV(at.cacheModeCA, cudaFuncGetAttributes(&at, f));
	R(cudaFuncSetCacheConfig(f, (cudaFuncCache)77));
	R(cudaFuncSetCacheConfig(f, cudaFuncCachePreferL1));
	R(cudaFuncSetCacheConfig((const void *)nullptr, cudaFuncCachePreferL1));
	R(cudaFuncSetCacheConfig((const void *)host, cudaFuncCachePreferL1));
	R(cudaLaunchKernel((const void *)nullptr, dim3(1), dim3(1), args, 0, nullptr));
	R(cudaLaunchKernel((const void *)host, dim3(1), dim3(1), args, 0, nullptr));
	R(cudaLaunchKernel(f, dim3(1), dim3(1), nullptr, 0, nullptr));
	R(cudaLaunchKernel(f, dim3(0), dim3(1), args, 0, nullptr));
	R(cudaLaunchKernel(f, dim3(1), dim3(2000), args, 0, nullptr));
	R(cudaLaunchKernel(f, dim3(1), dim3(1), args, (size_t)1 << 40, nullptr));
	R(cudaLaunchCooperativeKernel(f, dim3(1), dim3(32), args, 0, nullptr));
	R(cudaLaunchCooperativeKernel(f, dim3(1 << 20), dim3(1024), args, 0, nullptr));
	R(cudaLaunchCooperativeKernel((const void *)nullptr, dim3(1), dim3(32), args, 0, nullptr));
	cudaLaunchConfig_t c;
	cudaLaunchAttribute a;
	memset(&c, 0, sizeof c);
	memset(&a, 0, sizeof a);
	R(cudaLaunchKernelExC(nullptr, f, args));
	R(cudaLaunchKernelExC(&c, f, args));
	c.gridDim = dim3(4);
	c.blockDim = dim3(32);
	R(cudaLaunchKernelExC(&c, (const void *)nullptr, args));
	R(cudaLaunchKernelExC(&c, f, args));
	c.numAttrs = 1;
	R(cudaLaunchKernelExC(&c, f, args));
	c.attrs = &a;
	R(cudaLaunchKernelExC(&c, f, args));
	a.id = (cudaLaunchAttributeID)999;
	R(cudaLaunchKernelExC(&c, f, args));
	a.id = cudaLaunchAttributeClusterDimension;
	R(cudaLaunchKernelExC(&c, f, args));
	a.val.clusterDim.x = 3, a.val.clusterDim.y = 1, a.val.clusterDim.z = 1;
	R(cudaLaunchKernelExC(&c, f, args));
	a.val.clusterDim.x = 2;
	R(cudaLaunchKernelExC(&c, f, args));
	c.gridDim = dim3(32);
	a.val.clusterDim.x = 16;
	R(cudaLaunchKernelExC(&c, f, args));
	a.val.clusterDim.x = 32;
	R(cudaLaunchKernelExC(&c, f, args));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, f, 32, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void *)nullptr, 32, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void *)host, 32, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 0, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, -1, 0));
	RV(v, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 2000, 0));
	RV(v, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 1024, 0));
	RV(v, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 32, 1 << 30));
	RV(v, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void *)bounded, 128, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&v, f, 32, 0, 77));
	R(cudaOccupancyAvailableDynamicSMemPerBlock(nullptr, f, 1, 32));
	R(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 0, 32));
	RV(bytes, cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 32));
	R(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 99, 32));
	R(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 0));
	R(cudaOccupancyMaxPotentialBlockSize(&v, &w, one, 0, 0));
	R(cudaOccupancyMaxActiveClusters(nullptr, f, &c));
	R(cudaOccupancyMaxActiveClusters(&v, f, nullptr));
	R(cudaOccupancyMaxPotentialClusterSize(&v, f, nullptr));
	cudaFunction_t function = nullptr;
	R(cudaGetFuncBySymbol(nullptr, f));
	R(cudaGetFuncBySymbol(&function, (const void *)nullptr));
	R(cudaGetFuncBySymbol(&function, (const void *)host));
	R(cudaGetFuncBySymbol(&function, f));
	cudaKernel_t kernel = nullptr;
	R(cudaGetKernel(nullptr, f));
	R(cudaGetKernel(&kernel, (const void *)host));
	R(cudaDeviceSynchronize());
}

static void graphs()
{
	makes();
	cudaGraph_t g = nullptr, h = nullptr;
	cudaGraphExec_t x = nullptr;
	cudaGraphNode_t n = nullptr;
	size_t count = 0;
	R(cudaGraphCreate(nullptr, 0));
	R(cudaGraphCreate(&g, 5));
	R(cudaGraphCreate(&g, 0));
	R(cudaGraphDestroy(nullptr));
	R(cudaGraphInstantiate(nullptr, g, 0));
	R(cudaGraphInstantiate(&x, nullptr, 0));
	R(cudaGraphInstantiate(&x, g, 0x7000));
	R(cudaGraphInstantiate(&x, g, 0));
	R(cudaGraphLaunch(nullptr, stream));
	R(cudaGraphLaunch(x, nullptr));
	R(cudaGraphLaunch(x, stream));
	R(cudaGraphUpload(nullptr, stream));
	R(cudaGraphUpload(x, stream));
	R(cudaGraphExecDestroy(nullptr));
	R(cudaGraphClone(nullptr, g));
	R(cudaGraphClone(&h, nullptr));
	R(cudaGraphClone(&h, g));
	R(cudaGraphGetNodes(nullptr, nullptr, &count));
	R(cudaGraphGetNodes(g, nullptr, nullptr));
	RV(count, cudaGraphGetNodes(g, nullptr, &count));
	void *args[] = {&device};
	cudaKernelNodeParams k;
	memset(&k, 0, sizeof k);
	R(cudaGraphAddKernelNode(&n, g, nullptr, 0, nullptr));
	R(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
	k.func = (void *)one, k.gridDim = dim3(1), k.blockDim = dim3(32), k.kernelParams = args;
	R(cudaGraphAddKernelNode(nullptr, g, nullptr, 0, &k));
	R(cudaGraphAddKernelNode(&n, nullptr, nullptr, 0, &k));
	R(cudaGraphAddKernelNode(&n, g, nullptr, 1, &k));
	k.blockDim = dim3(2000);
	R(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
	k.blockDim = dim3(32);
	R(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
	R(cudaGraphAddKernelNode(&n, g, &n, 1, &k));
	RV(count, cudaGraphGetNodes(g, nullptr, &count));
	R(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, device, host, 16, (cudaMemcpyKind)7));
	R(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, device, host, 0, cudaMemcpyHostToDevice));
	R(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, nullptr, host, 16, cudaMemcpyHostToDevice));
	R(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, device, host, 16, cudaMemcpyDeviceToHost));
	R(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, device, host, 16, cudaMemcpyHostToDevice));
	R(cudaGraphAddMemcpyNode(&n, g, nullptr, 0, nullptr));
	cudaMemsetParams m;
	memset(&m, 0, sizeof m);
	R(cudaGraphAddMemsetNode(&n, g, nullptr, 0, nullptr));
	R(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m));
	m.dst = device, m.width = 4, m.height = 1, m.elementSize = 3;
	R(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m));
	m.elementSize = 2;
	R(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m));
	m.elementSize = 4, m.width = 0;
	R(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m));
	m.width = 4, m.dst = host;
	R(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m));
	cudaHostNodeParams f;
	memset(&f, 0, sizeof f);
	R(cudaGraphAddHostNode(&n, g, nullptr, 0, nullptr));
	R(cudaGraphAddHostNode(&n, g, nullptr, 0, &f));
	f.fn = nothing;
	R(cudaGraphAddHostNode(&n, g, nullptr, 0, &f));
	R(cudaGraphAddChildGraphNode(&n, g, nullptr, 0, nullptr));
	R(cudaGraphAddChildGraphNode(&n, g, nullptr, 0, g));
	R(cudaGraphAddEventRecordNode(&n, g, nullptr, 0, nullptr));
	cudaGraphExecUpdateResultInfo info;
	memset(&info, 0, sizeof info);
	R(cudaGraphExecUpdate(x, g, nullptr));
	R(cudaGraphExecUpdate(x, g, &info));
	V(info.result);
	R(cudaGraphExecUpdate(nullptr, g, &info));
	R(cudaGraphExecUpdate(x, nullptr, &info));
	R(cudaGraphDestroy(g));
	R(cudaGraphExecDestroy(x));
	R(cudaDeviceSynchronize());
}

static void shares()
{
	makes();
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t eh;
	cudaEvent_t e = nullptr, shared = nullptr;
	void *p = nullptr;
	memset(&h, 0, sizeof h);
	memset(&eh, 0, sizeof eh);
	R(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess));
	R(cudaIpcGetMemHandle(nullptr, device));
	R(cudaIpcGetMemHandle(&h, nullptr));
	R(cudaIpcGetMemHandle(&h, host));
	R(cudaIpcGetMemHandle(&h, pinned));
	R(cudaIpcGetMemHandle(&h, device));
	R(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess));
	R(cudaIpcOpenMemHandle(&p, h, 0));
	R(cudaIpcOpenMemHandle(&p, h, 5));
	R(cudaIpcOpenMemHandle(nullptr, h, cudaIpcMemLazyEnablePeerAccess));
	R(cudaIpcCloseMemHandle(nullptr));
	R(cudaIpcCloseMemHandle(device));
	R(cudaIpcGetEventHandle(&eh, event));
	R(cudaIpcGetEventHandle(nullptr, event));
	R(cudaIpcGetEventHandle(&eh, nullptr));
	cudaEventCreateWithFlags(&shared, cudaEventInterprocess | cudaEventDisableTiming);
	R(cudaIpcGetEventHandle(&eh, shared));
	R(cudaIpcOpenEventHandle(&e, eh));
	cudaMemPool_t pool = nullptr;
	R(cudaDeviceGetDefaultMemPool(nullptr, 0));
	R(cudaDeviceGetDefaultMemPool(&pool, 99));
	R(cudaDeviceGetDefaultMemPool(&pool, 0));
	R(cudaDeviceGetMemPool(&pool, 99));
	R(cudaMallocAsync((void **)nullptr, 64, stream));
	R(cudaMallocAsync(&p, (size_t)1 << 50, stream));
	p = &p;
	R(cudaMallocAsync(&p, 0, stream));
	V(p == nullptr);
	R(cudaMallocAsync(&p, 64, nullptr));
	R(cudaFreeAsync(nullptr, stream));
	R(cudaFreeAsync(host, stream));
	R(cudaFreeAsync(pinned, stream));
	R(cudaFreeAsync(p, stream));
	R(cudaFreeAsync(p, stream));
	R(cudaFree(p));
	void *q = nullptr;
	cudaMalloc(&q, 64);
	R(cudaFreeAsync(q, stream));
	R(cudaMallocAsync(&p, 64, stream));
	R(cudaFreeAsync((char *)p + 4, stream));
	R(cudaFree(p));
	R(cudaMemPoolTrimTo(nullptr, 0));
	R(cudaMemPoolTrimTo(pool, 0));
	R(cudaMemPoolSetAttribute(pool, (cudaMemPoolAttr)99, &p));
	R(cudaMemPoolSetAttribute(pool, (cudaMemPoolAttr)1, nullptr));
	R(cudaDeviceSynchronize());
}

// fault is a group for each way in which a kernel fails. The error stays until the device is reset.
static void fault(int how)
{
	makes();
	int v;
	void *p;
	fails<<<1, 1>>>(how == 0 ? nullptr : (char *)device, how);
	R(cudaGetLastError());
	R(cudaDeviceSynchronize());
	R(cudaDeviceSynchronize());
	R(cudaPeekAtLastError());
	R(cudaMemset(device, 0, 4));
	R(cudaMalloc(&p, 4));
	R(cudaFree(device));
	R(cudaFree(nullptr));
	R(cudaHostAlloc(&p, 4, 0));
	R(cudaStreamQuery(stream));
	R(cudaStreamCreate(&stream));
	R(cudaEventQuery(event));
	R(cudaEventDestroy(event));
	R(cudaGetDevice(&v));
	R(cudaGetDeviceCount(&v));
	R(cudaSetDevice(0));
	R(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 0));
	L(one<<<1, 1>>>(nullptr));
	D(cuCtxSynchronize());
	D(cuMemFree((CUdeviceptr)device));
	R(cudaDeviceReset());
	R(cudaGetLastError());
	R(cudaMalloc((void **)&device, 64));
	L(one<<<1, 1>>>(device));
	R(cudaDeviceSynchronize());
}
static void nullpointer() { fault(0); }
static void far() { fault(1); }
static void misaligned() { fault(2); }
static void assertion() { fault(3); }
static void traps() { fault(4); }
static void sharedfar() { fault(5); }
static void sharedmisaligned() { fault(6); }
static void atomicmisaligned() { fault(7); }
static void farload() { fault(8); }

static void inDriver()
{
	int v = 0;
	CUcontext c = nullptr;
	CUdeviceptr p = 0;
	CUstream s = nullptr;
	const char *text = nullptr;
	D(cuDeviceGetCount(&v));
	D(cuDeviceGet(&v, 0));
	D(cuCtxGetCurrent(&c));
	D(cuMemAlloc(&p, 4));
	D(cuMemAlloc(nullptr, 4));
	D(cuStreamCreate(&s, 0));
	D(cuCtxSynchronize());
	D(cuDriverGetVersion(&v));
	D(cuDriverGetVersion(nullptr));
	D(cuGetErrorName((CUresult)1, &text));
	D(cuGetErrorName((CUresult)12345, &text));
	D(cuGetErrorString((CUresult)12345, &text));
	D(cuGetErrorName((CUresult)1, nullptr));
	D(cuInit(1));
	D(cuDeviceGetCount(&v));
	D(cuInit(0));
	D(cuInit(0));
	D(cuInit(7));
	D(cuDeviceGetCount(nullptr));
	D(cuDeviceGet(nullptr, 0));
	D(cuDeviceGet(&v, -1));
	D(cuDeviceGet(&v, 99));
	D(cuCtxGetCurrent(nullptr));
	DV(c == nullptr, cuCtxGetCurrent(&c));
	D(cuCtxGetDevice(&v));
	D(cuCtxGetDevice(nullptr));
	D(cuCtxSynchronize());
	D(cuCtxPopCurrent(&c));
	D(cuCtxPopCurrent(nullptr));
	D(cuCtxPushCurrent(nullptr));
	D(cuCtxSetCurrent(nullptr));
	D(cuMemAlloc(&p, 4));
	D(cuMemAlloc(nullptr, 4));
	D(cuMemAlloc(&p, 0));
	D(cuMemFree(0));
	D(cuMemFree(4096));
	D(cuStreamCreate(&s, 0));
	D(cuStreamCreate(nullptr, 0));
	D(cuStreamCreate(&s, 77));
	D(cuStreamSynchronize(nullptr));
	D(cuStreamQuery(nullptr));
	CUevent e = nullptr;
	D(cuEventCreate(&e, 0));
	D(cuEventQuery(nullptr));
	D(cuEventDestroy(nullptr));
	CUmodule m = nullptr;
	D(cuModuleLoadData(&m, "nonsense"));
	D(cuModuleLoadData(&m, nullptr));
	D(cuDevicePrimaryCtxRelease(0));
	D(cuDevicePrimaryCtxRetain(nullptr, 0));
	D(cuDevicePrimaryCtxRetain(&c, 99));
	D(cuDevicePrimaryCtxRelease(99));
	unsigned flags = 0;
	D(cuDevicePrimaryCtxGetState(0, nullptr, nullptr));
	DV(v, cuDevicePrimaryCtxGetState(0, &flags, &v));
	D(cuDevicePrimaryCtxGetState(99, &flags, &v));
	D(cuDevicePrimaryCtxReset(99));
	D(cuDevicePrimaryCtxReset(0));
	char name[64] = "";
	size_t bytes = 0;
	D(cuDeviceGetName(nullptr, 10, 0));
	D(cuDeviceGetName(name, 0, 0));
	D(cuDeviceGetName(name, 5, 0));
	DV(strlen(name), cuDeviceGetName(name, 5, 0));
	D(cuDeviceGetName(name, 64, 99));
	D(cuDeviceTotalMem(nullptr, 0));
	D(cuDeviceTotalMem(&bytes, 99));
	D(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	D(cuDeviceGetAttribute(&v, (CUdevice_attribute)0, 0));
	D(cuDeviceGetAttribute(&v, (CUdevice_attribute)9999, 0));
	D(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
	D(cuDeviceGetUuid((CUuuid *)nullptr, 0));
	D(cuDeviceGetPCIBusId(name, 5, 0));
	D(cuDeviceGetPCIBusId(nullptr, 5, 0));
	D(cuDeviceCanAccessPeer(nullptr, 0, 0));
	DV(v, cuDeviceCanAccessPeer(&v, 0, 0));
	D(cuDeviceCanAccessPeer(&v, 0, 99));
	D(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
	D(cuDeviceGetP2PAttribute(&v, (CUdevice_P2PAttribute)99, 0, 0));
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 there[64];\n"
			  ".visible .entry store(.param .u64 p)\n{\n.reg .b64 a;\n.reg .b32 b;\nld.param.u64 a, [p];\n"
			  "mov.u32 b, 1;\nst.global.u32 [a], b;\nret;\n}\n.visible .entry empty()\n{\nret;\n}\n";

static void inContext()
{
	int v = 0;
	CUcontext c = nullptr, other = nullptr;
	D(cuInit(0));
	D(cuDevicePrimaryCtxRetain(&c, 0));
	D(cuCtxSetCurrent(c));
	D(cuCtxPushCurrent(nullptr));
	D(cuCtxPushCurrent(c));
	DV(other == c, cuCtxPopCurrent(&other));
	D(cuCtxGetDevice(nullptr));
	D(cuCtxEnablePeerAccess(c, 0));
	D(cuCtxEnablePeerAccess(c, 5));
	D(cuCtxEnablePeerAccess(nullptr, 0));
	D(cuCtxDisablePeerAccess(c));
	D(cuCtxDisablePeerAccess(nullptr));
	D(cuCtxGetStreamPriorityRange(nullptr, nullptr));
	unsigned version = 0;
	D(cuCtxGetApiVersion(c, nullptr));
	D(cuCtxGetApiVersion(nullptr, &version));
	CUdeviceptr p = 0, base = 0, q = 0;
	size_t bytes = 0;
	D(cuMemAlloc(nullptr, 64));
	D(cuMemAlloc(&p, 0));
	D(cuMemAlloc(&p, (size_t)1 << 50));
	D(cuMemAlloc(&p, 4096));
	D(cuMemFree(0));
	D(cuMemFree(p + 4));
	D(cuMemFree((CUdeviceptr)host));
	D(cuMemGetInfo(nullptr, nullptr));
	DV(base == p, cuMemGetAddressRange(&base, &bytes, p + 5));
	DV(bytes, cuMemGetAddressRange(nullptr, &bytes, p + 5));
	D(cuMemGetAddressRange(nullptr, nullptr, p));
	D(cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)host));
	D(cuMemGetAddressRange(&base, &bytes, 0));
	void *h = nullptr;
	D(cuMemHostAlloc(nullptr, 64, 0));
	D(cuMemHostAlloc(&h, 0, 0));
	D(cuMemHostAlloc(&h, 64, 0x1000));
	D(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	D(cuMemAllocHost(&h, 0));
	D(cuMemAllocHost(nullptr, 64));
	D(cuMemFreeHost(nullptr));
	D(cuMemFreeHost(host));
	D(cuMemHostRegister(nullptr, 64, 0));
	D(cuMemHostRegister(host, 0, 0));
	D(cuMemHostRegister(host, 64, 0x1000));
	D(cuMemHostUnregister(host));
	D(cuMemHostUnregister(nullptr));
	D(cuMemHostGetDevicePointer(nullptr, h, 0));
	D(cuMemHostGetDevicePointer(&q, h, 1));
	D(cuMemHostGetDevicePointer(&q, host, 0));
	D(cuMemcpy(p, (CUdeviceptr)host, 0));
	D(cuMemcpy(0, 0, 0));
	D(cuMemcpy(0, p, 4));
	D(cuMemcpy(p, 0, 4));
	D(cuMemcpyHtoD(0, host, 4));
	D(cuMemcpyHtoD(p, nullptr, 4));
	D(cuMemcpyHtoD(p, host, 1 << 14));
	D(cuMemcpyHtoD((CUdeviceptr)host, host, 4));
	D(cuMemcpyDtoH(nullptr, p, 4));
	D(cuMemcpyDtoH(host, (CUdeviceptr)host, 4));
	D(cuMemcpyDtoD(p, (CUdeviceptr)host, 4));
	D(cuMemcpyAsync(p, (CUdeviceptr)host, 4, nullptr));
	D(cuMemsetD8(0, 0, 0));
	D(cuMemsetD8(0, 0, 4));
	D(cuMemsetD8((CUdeviceptr)host, 0, 4));
	D(cuMemsetD8(p, 0, 1 << 14));
	D(cuMemsetD8(p, 0, 4096));
	D(cuCtxSynchronize());
	D(cuMemsetD32Async(p + 1, 0, 1, nullptr));
	D(cuMemsetD32Async(p, 0, 0, nullptr));
	CUmemorytype type = (CUmemorytype)0;
	unsigned long long wide = 0;
	CUcontext of = nullptr;
	D(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	D(cuPointerGetAttribute(&wide, (CUpointer_attribute)0, p));
	D(cuPointerGetAttribute(&wide, (CUpointer_attribute)9999, p));
	D(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
	D(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)host));
	DV(type, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	DV(type, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)h));
	DV(of == c, cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	D(cuPointerGetAttribute(&wide, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
	DV(wide == p + 5, cuPointerGetAttribute(&wide, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 5));
	wide = 0;
	DV(wide == p, cuPointerGetAttribute(&wide, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 5));
	DV(wide, cuPointerGetAttribute(&wide, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 5));
	v = 7;
	DV(v & 255, cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	DV(v, cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	D(cuPointerSetAttribute(&v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	D(cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	v = 1;
	D(cuPointerSetAttribute(&v, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	D(cuPointerSetAttribute(&v, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)host));
	CUstream s = nullptr;
	CUevent e = nullptr;
	unsigned flags = 0;
	float ms = 0;
	D(cuStreamCreate(nullptr, 0));
	D(cuStreamCreate(&s, 77));
	D(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	D(cuStreamDestroy(nullptr));
	D(cuStreamDestroy(CU_STREAM_LEGACY));
	D(cuStreamWaitEvent(s, nullptr, 0));
	D(cuStreamGetFlags(s, nullptr));
	DV(flags, cuStreamGetFlags(s, &flags));
	D(cuStreamGetPriority(s, nullptr));
	D(cuStreamGetCtx(s, nullptr));
	DV(of == c, cuStreamGetCtx(s, &of));
	D(cuLaunchHostFunc(s, nullptr, nullptr));
	D(cuEventCreate(nullptr, 0));
	D(cuEventCreate(&e, 0x100));
	D(cuEventCreate(&e, CU_EVENT_INTERPROCESS));
	D(cuEventCreate(&e, 0));
	D(cuEventRecord(nullptr, s));
	D(cuEventRecordWithFlags(e, s, 7));
	D(cuEventRecord(e, s));
	D(cuEventSynchronize(e));
	D(cuEventElapsedTime(&ms, e, nullptr));
	D(cuEventDestroy(nullptr));
	D(cuStreamWriteValue32(s, 0, 1, 0));
	D(cuStreamWriteValue32(s, p + 1, 1, 0));
	D(cuStreamWriteValue32(s, p, 1, 7));
	D(cuStreamWriteValue32(s, (CUdeviceptr)host, 1, 0));
	D(cuStreamWriteValue32(s, p, 1, 0));
	D(cuStreamWaitValue32(s, p, 1, 77));
	D(cuStreamWaitValue32(s, p, 1, CU_STREAM_WAIT_VALUE_EQ));
	D(cuStreamWriteValue64(s, p + 4, 1, 0));
	D(cuStreamWaitValue64(s, p, 1, CU_STREAM_WAIT_VALUE_GEQ));
	D(cuStreamSynchronize(s));
	CUmodule m = nullptr;
	CUfunction f = nullptr, none = nullptr;
	D(cuModuleLoadData(nullptr, ptx));
	D(cuModuleLoadData(&m, nullptr));
	D(cuModuleLoadData(&m, "nonsense"));
	D(cuModuleLoadData(&m, ""));
	D(cuModuleLoadData(&m, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f()\n{\nnothing.u32 a;\n}\n"));
	D(cuModuleLoadData(&m, ".version 99.0\n.target sm_70\n.address_size 64\n"));
	D(cuModuleLoadData(&m, ".version 7.0\n.target sm_999\n.address_size 64\n"));
	D(cuModuleLoadDataEx(&m, ptx, 0, nullptr, nullptr));
	D(cuModuleGetFunction(nullptr, m, "store"));
	D(cuModuleGetFunction(&f, m, nullptr));
	D(cuModuleGetFunction(&f, m, ""));
	D(cuModuleGetFunction(&f, m, "absent"));
	D(cuModuleGetFunction(&f, nullptr, "store"));
	D(cuModuleGetFunction(&f, m, "there"));
	D(cuModuleGetFunction(&none, m, "empty"));
	D(cuModuleGetFunction(&f, m, "store"));
	D(cuModuleGetGlobal(&q, &bytes, m, "absent"));
	D(cuModuleGetGlobal(&q, &bytes, m, nullptr));
	D(cuModuleGetGlobal(nullptr, nullptr, m, "there"));
	DV(bytes, cuModuleGetGlobal(&q, &bytes, m, "there"));
	D(cuModuleUnload(nullptr));
	D(cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	D(cuFuncGetAttribute(&v, (CUfunction_attribute)99, f));
	D(cuFuncGetAttribute(&v, (CUfunction_attribute)-1, f));
	D(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr));
	DV(v, cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
	D(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 5));
	D(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30));
	D(cuFuncSetAttribute(nullptr, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1));
	void *args[] = {&p};
	size_t room = sizeof p;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &room, CU_LAUNCH_PARAM_END};
	D(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, s, args, nullptr));
	D(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s, args, nullptr));
	D(cuLaunchKernel(f, 1, 1, 1, 0, 1, 1, 0, s, args, nullptr));
	D(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, s, args, nullptr));
	D(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, s, args, nullptr));
	D(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, s, args, nullptr));
	D(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 49 << 10, s, args, nullptr));
	D(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
	D(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, args, extra));
	D(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, extra));
	D(cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
	D(cuLaunchKernelEx(nullptr, none, nullptr, nullptr));
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, f, 32, 0));
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, nullptr, 32, 0));
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 0, 0));
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, -1, 0));
	DV(v, cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 2000, 0));
	D(cuStreamSynchronize(s));
	D(cuGetProcAddress(nullptr, &h, 12000, 0, nullptr));
	D(cuGetProcAddress("cuAbsent", &h, 12000, 0, nullptr));
	D(cuGetProcAddress("cuMemAlloc", nullptr, 12000, 0, nullptr));
	D(cuGetProcAddress("cuMemAlloc", &h, 12000, 0, nullptr));
	D(cuGetProcAddress("cuMemAlloc", &h, 1000, 0, nullptr));
	CUgraph g = nullptr;
	CUgraphExec x = nullptr;
	D(cuGraphCreate(nullptr, 0));
	D(cuGraphCreate(&g, 5));
	D(cuGraphCreate(&g, 0));
	D(cuGraphInstantiateWithFlags(nullptr, g, 0));
	D(cuGraphInstantiateWithFlags(&x, g, 0x7000));
	D(cuGraphLaunch(nullptr, s));
	D(cuGraphExecDestroy(nullptr));
	D(cuGraphDestroy(nullptr));
	D(cuStreamBeginCapture(s, (CUstreamCaptureMode)7));
	D(cuStreamEndCapture(s, &g));
	D(cuStreamIsCapturing(s, nullptr));
	D(cuThreadExchangeStreamCaptureMode(nullptr));
	CUuserObject o = nullptr;
	D(cuUserObjectCreate(&o, host, nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	D(cuUserObjectCreate(&o, host, nothing, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	D(cuUserObjectCreate(&o, host, nothing, 1, 0));
	D(cuUserObjectCreate(nullptr, host, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	D(cuUserObjectRelease(nullptr, 1));
	CUipcMemHandle ipc;
	memset(&ipc, 0, sizeof ipc);
	D(cuIpcGetMemHandle(nullptr, p));
	D(cuIpcGetMemHandle(&ipc, (CUdeviceptr)host));
	D(cuIpcOpenMemHandle(&q, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	D(cuIpcCloseMemHandle(p));
}

static void virtualMemory()
{
	CUcontext c = nullptr;
	cuInit(0);
	cuDevicePrimaryCtxRetain(&c, 0);
	cuCtxSetCurrent(c);
	CUmemAllocationProp prop, odd;
	memset(&prop, 0, sizeof prop);
	size_t unit = 0;
	CUmemGenericAllocationHandle h = 0, again = 0;
	CUdeviceptr p = 0;
	D(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	D(cuMemCreate(&h, 2 << 20, &prop, 0));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	odd = prop;
	odd.location.id = 99;
	D(cuMemGetAllocationGranularity(nullptr, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	D(cuMemGetAllocationGranularity(&unit, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	D(cuMemGetAllocationGranularity(&unit, &prop, (CUmemAllocationGranularity_flags)7));
	D(cuMemGetAllocationGranularity(&unit, &odd, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	DV(unit, cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	DV(unit, cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	D(cuMemCreate(nullptr, unit, &prop, 0));
	D(cuMemCreate(&h, unit, nullptr, 0));
	D(cuMemCreate(&h, 0, &prop, 0));
	D(cuMemCreate(&h, unit + 1, &prop, 0));
	D(cuMemCreate(&h, unit, &prop, 7));
	D(cuMemCreate(&h, unit, &odd, 0));
	odd = prop;
	odd.requestedHandleTypes = (CUmemAllocationHandleType)0x77;
	D(cuMemCreate(&h, unit, &odd, 0));
	D(cuMemCreate(&h, (size_t)1 << 45, &prop, 0));
	D(cuMemCreate(&h, unit, &prop, 0));
	D(cuMemAddressReserve(nullptr, unit, 0, 0, 0));
	D(cuMemAddressReserve(&p, 0, 0, 0, 0));
	D(cuMemAddressReserve(&p, 1000, 0, 0, 0));
	D(cuMemAddressReserve(&p, unit, 3, 0, 0));
	D(cuMemAddressReserve(&p, unit, 0, 0, 7));
	D(cuMemAddressReserve(&p, 2 * unit, 0, 0, 0));
	D(cuMemMap(p, unit, 0, 0, 0));
	D(cuMemMap(p, 2 * unit, 0, h, 0));
	D(cuMemMap(p, unit, unit, h, 0));
	D(cuMemMap(p + 1, unit, 0, h, 0));
	D(cuMemMap(p, unit, 0, h, 7));
	D(cuMemMap(4096, unit, 0, h, 0));
	D(cuMemMap(p, unit, 0, h, 0));
	D(cuMemMap(p, unit, 0, h, 0));
	D(cuMemsetD8(p, 0, 4));
	CUmemAccessDesc a;
	memset(&a, 0, sizeof a);
	D(cuMemSetAccess(p, unit, nullptr, 1));
	D(cuMemSetAccess(p, unit, &a, 1));
	a.location = prop.location;
	a.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	D(cuMemSetAccess(p, unit, &a, 0));
	D(cuMemSetAccess(p, 2 * unit, &a, 1));
	D(cuMemSetAccess(p + 1, unit, &a, 1));
	D(cuMemSetAccess(p, unit, &a, 1));
	D(cuMemsetD8(p, 0, 4));
	D(cuMemRetainAllocationHandle(nullptr, (void *)p));
	DV(again == h, cuMemRetainAllocationHandle(&again, (void *)p));
	D(cuMemRetainAllocationHandle(&again, host));
	D(cuMemRelease(again));
	int fd = -1;
	D(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	D(cuMemExportToShareableHandle(nullptr, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	D(cuMemImportFromShareableHandle(&again, (void *)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	D(cuMemAddressFree(p, 2 * unit));
	D(cuMemUnmap(p, 2 * unit));
	D(cuMemUnmap(p, unit / 2));
	D(cuMemUnmap(p, unit));
	D(cuMemAddressFree(p, unit));
	D(cuMemAddressFree(p + unit, unit));
	D(cuMemAddressFree(p, 2 * unit));
	D(cuMemRelease(h));
	D(cuMemRelease(0));
	D(cuMemFree(p));
}

// child asks in the child of a fork.
static void child()
{
	int v = 0;
	void *p = nullptr;
	cudaStream_t s = nullptr;
	cudaPointerAttributes at;
	R(cudaGetDeviceCount(&v));
	R(cudaGetDevice(&v));
	R(cudaSetDevice(0));
	R(cudaMalloc(&p, 64));
	R(cudaFree(nullptr));
	R(cudaFree(device));
	R(cudaMemset(device, 0, 64));
	R(cudaMemcpy(host, device, 4, cudaMemcpyDeviceToHost));
	L(one<<<1, 1>>>(device));
	R(cudaDeviceSynchronize());
	R(cudaStreamSynchronize(stream));
	R(cudaStreamCreate(&s));
	R(cudaStreamQuery(stream));
	R(cudaEventQuery(event));
	R(cudaEventDestroy(event));
	R(cudaHostAlloc(&p, 64, 0));
	R(cudaPointerGetAttributes(&at, device));
	R(cudaDriverGetVersion(&v));
	R(cudaRuntimeGetVersion(&v));
	R(cudaDeviceReset());
	R(cudaSetDevice(99));
	R(cudaMalloc((void **)nullptr, 64));
	D(cuInit(0));
}
static void forks(void (*in)())
{
	fflush(stdout);
	pid_t k = fork();
	if (!k) {
		alarm(20);
		in();
		exit(0);
	}
	int status = 0;
	waitpid(k, &status, 0);
	say("the child ends by", "=", status, true);
}
static void works()
{
	int v = 0;
	R(cudaGetDeviceCount(&v));
	R(cudaMalloc((void **)&device, 64));
	R(cudaMemset(device, 0, 64));
	D(cuCtxSynchronize());
}
// Each of these in a child of its own, as the first one may crash.
static CUdeviceptr asked;
static void driverInit() { D(cuInit(1)); }
static void driverCount() { int v; D(cuDeviceGetCount(&v)); }
static void driverAllocates() { D(cuMemAlloc(&asked, 4)); }
static void driverContext() { CUcontext c; D(cuCtxGetCurrent(&c)); }
static void driverSynchronizes() { D(cuCtxSynchronize()); }
static void driverVersion() { int v; D(cuDriverGetVersion(&v)); }
static void forkAfterUse()
{
	makes();
	one<<<1, 1>>>(device);
	cudaDeviceSynchronize();
	forks(child);
	for (auto f : {driverInit, driverCount, driverAllocates, driverContext, driverSynchronizes, driverVersion})
		forks(f);
	R(cudaMemcpy(host, device, 4, cudaMemcpyDeviceToHost));
	V(host[0]);
	R(cudaDeviceSynchronize());
}
static void forkAfterCount()
{
	int v = 0;
	R(cudaGetDeviceCount(&v));
	forks(works);
}
static void forkAfterVersion()
{
	int v = 0;
	R(cudaDriverGetVersion(&v));
	R(cudaRuntimeGetVersion(&v));
	forks(works);
}
static void forkAfterDriverVersion()
{
	int v = 0;
	D(cuDriverGetVersion(&v));
	forks(works);
}
static void forkAfterInit()
{
	D(cuInit(0));
	forks(works);
}
static void forkAfterError()
{
	R(cudaSetDevice(99));
	R(cudaGetLastError());
	forks(works);
}
static void forkFirst()
{
	forks(works);
	works();
}

// What destructors are answered: those of objects made before the first call and after it, and functions of atexit.
static void ask(const char *who)
{
	static std::string name[8];
	static int n;
	name[n] = std::string(group) + ": " + who;
	group = name[n++].c_str();
	int v = 0;
	void *p = nullptr;
	R(cudaGetDeviceCount(&v));
	R(cudaGetDevice(&v));
	R(cudaSetDevice(0));
	R(cudaStreamSynchronize(stream));
	R(cudaStreamQuery(stream));
	R(cudaMalloc(&p, 64));
	R(cudaMemset(device, 0, 4));
	R(cudaFree(device));
	R(cudaFree(nullptr));
	R(cudaFreeHost(pinned));
	R(cudaEventDestroy(event));
	R(cudaStreamDestroy(stream));
	L(one<<<1, 1>>>(nullptr));
	R(cudaDeviceSynchronize());
	R(cudaDriverGetVersion(&v));
	R(cudaRuntimeGetVersion(&v));
	R(cudaGetLastError());
	R(cudaDeviceReset());
	D(cuCtxSynchronize());
	D(cuDeviceGetCount(&v));
	D(cuInit(0));
	group = "destructors";
}
static bool asks;
struct object {
	const char *who;
	~object()
	{
		if (asks)
			ask(who);
	}
};
static object early = {"of an object made before main"};
__attribute__((destructor)) static void last()
{
	if (asks)
		ask("by attribute");
}
static void atExitEarly() { ask("atexit before the first call"); }
static void atExitLate() { ask("atexit after the first call"); }
static void destructors()
{
	asks = true;
	atexit(atExitEarly);
	makes();
	static object late = {"of an object made after the first call"};
	atexit(atExitLate);
	V(late.who != nullptr);
}
static void destructorsUnused() { asks = true; }

static const struct {
	const char *name;
	void (*run)();
} groups[] = {
    {"about", about},
    {"devices", devices}, {"memory", memory}, {"copies", copies}, {"streams", streams}, {"launches", launches}, {"graphs", graphs},
    {"shares", shares}, {"null pointer", nullpointer}, {"far store", far}, {"far load", farload}, {"misaligned", misaligned}, {"assert", assertion},
    {"trap", traps}, {"far in shared memory", sharedfar}, {"misaligned in shared memory", sharedmisaligned},
    {"misaligned atomic", atomicmisaligned}, {"driver", inDriver}, {"driver in a context", inContext}, {"virtual memory", virtualMemory},
    {"fork after use", forkAfterUse}, {"fork after a count", forkAfterCount}, {"fork after versions", forkAfterVersion},
    {"fork after the driver's version", forkAfterDriverVersion}, {"fork after cuInit", forkAfterInit}, {"fork after an error", forkAfterError},
    {"fork first", forkFirst}, {"destructors", destructors}, {"destructors without a call", destructorsUnused},
};

// run runs a group in a process of its own, and again without the calls that crash.
static void run(const char *program, const char *name)
{
	std::string crashes;
	for (int tries = 0, before = 0; tries < 40; tries++) {
		int to[2], at = 0;
		if (pipe(to))
			exit(3);
		FILE *out = tmpfile();
		pid_t k = fork();
		if (!k) {
			char fd[16];
			snprintf(fd, sizeof fd, "%d", to[1]);
			close(to[0]);
			dup2(fileno(out), 1);
			alarm(60);
			execl(program, program, name, fd, crashes.c_str(), (char *)nullptr);
			_exit(3);
		}
		close(to[1]);
		for (int n; read(to[0], &n, sizeof n) == sizeof n;)
			at = n;
		close(to[0]);
		int status = 0;
		waitpid(k, &status, 0);
		rewind(out);
		char line[4096];
		bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		bool again = !ended && at > before && tries < 39;
		if (!again)
			while (fgets(line, sizeof line, out))
				fputs(line, stdout);
		fclose(out);
		if (!ended && !again)
			printf("%s | after call %d | ends by status %d\n", name, at, status);
		if (!again)
			break;
		before = at;
		crashes += std::to_string(at) + " ";
	}
	fflush(stdout);
}

int main(int count, char **words)
{
	if (count < 2) {
		for (auto &g : groups)
			run("/proc/self/exe", g.name);
		return 0;
	}
	for (auto &g : groups)
		if (!strcmp(g.name, words[1])) {
			group = g.name;
			if (count > 2)
				pipes[1] = atoi(words[2]);
			for (char *at = count > 3 ? words[3] : (char *)""; *at;) {
				leave[strtol(at, &at, 10)] = true;
				at += *at == ' ';
			}
			g.run();
			return 0;
		}
	fprintf(stderr, "answers: no group %s\n", words[1]);
	return 2;
}
