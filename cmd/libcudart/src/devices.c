// devices.c has errors' names, versions, devices and limits.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "driver.h"
#include "run.h"

static const struct {
	int error;
	const char *name, *text;
} names[] = {
#define E_(name, text) {name, #name, text},
#include "names.h"
#undef E_
};

const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].error == (int)error)
			return names[i].name;
	return "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].error == (int)error)
			return names[i].text;
	return "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int *version)
{
	GIVEN(version);
	*version = 0; // of no driver
	return ready() == cudaErrorInsufficientDriver ? 0 : done(driver.cuDriverGetVersion(version));
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
	GIVEN(version);
	*version = CUDART_VERSION;
	return 0;
}
cudaError_t cudaGetDeviceCount(int *count)
{
	GIVEN(count);
	int result = ready();
	*count = devices();
	return done(*count ? 0 : result ? result : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int *device)
{
	GIVEN(device);
	word context = 0;
	int result = ready();
	if (!result)
		result = driver.cuCtxGetCurrent(&context);
	*device = 0;
	return done(result ? result : context ? driver.cuCtxGetDevice(device) : 0);
}
cudaError_t cudaSetDevice(int device)
{
	word context;
	ready();
	WANT(!devices() || (unsigned)device < (unsigned)devices(), cudaErrorInvalidDevice, "there is no device %d", device);
	int result = contextOf(device, &context);
	return done(result ? result : driver.cuCtxSetCurrent(context));
}
enum { cudaInitDeviceFlagsAreValid = 1 };
static unsigned deviceFlags; // how threads wait, which makes no difference

static int flagsFit(unsigned flags)
{
	unsigned how = flags & 7; // one of the ways to wait
	return !(flags & ~31u) && !(how & (how - 1));
}

cudaError_t cudaInitDevice(int device, unsigned own, unsigned flags)
{
	word context;
	WANT(!(flags & cudaInitDeviceFlagsAreValid) || flagsFit(own), cudaErrorInvalidValue, "flags %#x", own);
	return done(contextOf(device, &context));
}
cudaError_t cudaSetValidDevices(int *list, int count)
{
	ready();
	WANT(count >= 0 && (list || !count), cudaErrorInvalidValue, "%d devices", count);
	for (int i = 0; i < count; i++)
		WANT((unsigned)list[i] < (unsigned)devices(), cudaErrorInvalidDevice, "there is no device %d", list[i]);
	return OPENED(0);
}
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *want)
{
	GIVEN(device);
	GIVEN(want); // all are good
	*device = 0;
	return OPENED(0);
}
cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	WANT(flagsFit(flags), cudaErrorInvalidValue, "flags %#x", flags);
	deviceFlags = flags;
	return OPENED(0);
}
cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
	GIVEN(flags);
	*flags = deviceFlags | cudaDeviceMapHost;
	return OPENED(0);
}
/* added says which attributes devices have by this library, in front of a driver without them: managed memory, which lies on the host,
   and memory in the order of a stream. */
static int added(int attr) { return attr == 83 || attr == 115; }

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	cudaError_t result = OPENED(driver.cuDeviceGetAttribute(value, attr, device));
	if (!result && added(attr))
		*value = 1;
	return result;
}

static int attribute(int device, int attr)
{
	int v = 0;
	driver.cuDeviceGetAttribute(&v, attr, device);
	return added(attr) ? 1 : v;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	GIVEN(p);
	int result = ready();
	memset(p, 0, sizeof *p);
	if (!result)
		result = driver.cuDeviceGetName(p->name, sizeof p->name, device);
	if (result)
		return done(result);
	driver.cuDeviceGetUuid_v2(&p->uuid, device);
	driver.cuDeviceTotalMem_v2(&p->totalGlobalMem, device);
#define A(number) attribute(device, number)
	p->sharedMemPerBlock = A(8), p->regsPerBlock = A(12), p->warpSize = A(10), p->memPitch = A(11), p->maxThreadsPerBlock = A(1);
	for (int i = 0; i < 3; i++)
		p->maxThreadsDim[i] = A(2 + i), p->maxGridSize[i] = A(5 + i);
	p->totalConstMem = A(9), p->major = A(75), p->minor = A(76), p->textureAlignment = A(14), p->texturePitchAlignment = A(51);
	p->multiProcessorCount = A(16), p->integrated = A(18), p->canMapHostMemory = A(19), p->surfaceAlignment = A(30);
	p->concurrentKernels = A(31), p->ECCEnabled = A(32), p->pciBusID = A(33), p->pciDeviceID = A(34), p->pciDomainID = A(50);
	p->asyncEngineCount = A(40), p->unifiedAddressing = A(41), p->memoryBusWidth = A(37), p->l2CacheSize = A(38);
	p->persistingL2CacheMaxSize = A(108), p->maxThreadsPerMultiProcessor = A(39), p->streamPrioritiesSupported = A(78);
	p->globalL1CacheSupported = A(79), p->localL1CacheSupported = A(80), p->sharedMemPerMultiprocessor = A(81), p->regsPerMultiprocessor = A(82);
	p->managedMemory = A(83), p->isMultiGpuBoard = A(84), p->multiGpuBoardGroupID = A(85), p->hostNativeAtomicSupported = A(86);
	p->pageableMemoryAccess = A(88), p->concurrentManagedAccess = A(89), p->computePreemptionSupported = A(90);
	p->canUseHostPointerForRegisteredMem = A(91), p->cooperativeLaunch = A(95), p->sharedMemPerBlockOptin = A(97);
	p->pageableMemoryAccessUsesHostPageTables = A(100), p->directManagedMemAccessFromHost = A(101), p->maxBlocksPerMultiProcessor = A(106);
	p->accessPolicyMaxWindowSize = A(109), p->reservedSharedMemPerBlock = A(111), p->hostRegisterSupported = A(99);
	p->sparseCudaArraySupported = A(112), p->hostRegisterReadOnlySupported = A(113), p->timelineSemaphoreInteropSupported = A(114);
	p->memoryPoolsSupported = A(115), p->gpuDirectRDMASupported = A(116), p->gpuDirectRDMAFlushWritesOptions = A(117);
	p->gpuDirectRDMAWritesOrdering = A(118), p->memoryPoolSupportedHandleTypes = A(119), p->clusterLaunch = A(120);
	p->deferredMappingCudaArraySupported = A(121), p->ipcEventSupported = A(125), p->unifiedFunctionPointers = A(129);
#if CUDART_VERSION < 13000
	p->clockRate = A(13), p->deviceOverlap = A(15), p->kernelExecTimeoutEnabled = A(17), p->computeMode = A(20), p->memoryClockRate = A(36);
	p->singleToDoublePrecisionPerfRatio = A(87);
#endif
#undef A
	return 0;
}
#if CUDART_VERSION < 13000
_Static_assert(sizeof(struct cudaDeviceProp) == 1032, "CUDA 12 has 1032 bytes");
#undef cudaGetDeviceProperties
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) { return cudaGetDeviceProperties_v2(p, device); }
#endif

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) { return OPENED(driver.cuDeviceGetPCIBusId(id, length, device)); }
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	GIVEN(device);
	GIVEN(id);
	WANT(strchr(id, ':'), cudaErrorInvalidValue, "%s is no bus ID", id);
	char have[64];
	int count = 0, result = ready();
	if (!result)
		result = driver.cuDeviceGetCount(&count);
	for (int d = 0; !result && d < count; d++)
		if (!driver.cuDeviceGetPCIBusId(have, sizeof have, d) && (!strcasecmp(have, id) || !strcasecmp(have + 5, id))) {
			*device = d;
			return 0;
		}
	return done(result ? result : because(cudaErrorInvalidDevice, "no device has the bus ID %s", id));
}
cudaError_t cudaDeviceSynchronize(void)
{
	return RUN(driver.cuCtxSynchronize());
}
cudaError_t cudaDeviceReset(void)
{
	int device, result = entered();
	if (!result)
		result = driver.cuCtxGetDevice(&device);
	if (result)
		return done(result);
	driver.cuCtxSynchronize();
	driver.cuCtxSetCurrent(0);
	forgetModules(device);
	return done(driver.cuDevicePrimaryCtxReset_v2(device));
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return RUN(driver.cuCtxGetStreamPriorityRange(least, greatest)); }
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	GIVEN(value);
	WANT((unsigned)limit <= cudaLimitPersistingL2CacheSize, cudaErrorInvalidValue, "there is no limit %d", limit);
	return RUN(driver.cuCtxGetLimit(value, limit));
}
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	WANT((unsigned)limit <= cudaLimitPersistingL2CacheSize, cudaErrorInvalidValue, "there is no limit %d", limit);
	return RUN(driver.cuCtxSetLimit(limit, value));
}
static enum cudaFuncCache cacheConfig;
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	GIVEN(config);
	*config = cacheConfig;
	return RUN(0);
}
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	WANT((unsigned)config <= cudaFuncCachePreferEqual, cudaErrorInvalidValue, "there is no cache configuration %d", config);
	cacheConfig = config; // which makes no difference
	return RUN(0);
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) { return OPENED(driver.cuDeviceCanAccessPeer(can, device, peer)); }
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	word context;
	int result = entered();
	if (!result)
		result = contextOf(peer, &context);
	WANT(result || !flags, cudaErrorInvalidValue, "flags %#x: they have to be 0", flags);
	return done(result ? result : driver.cuCtxEnablePeerAccess(context, flags));
}
cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	word context;
	int result = entered();
	if (!result)
		result = contextOf(peer, &context);
	return done(result ? result : driver.cuCtxDisablePeerAccess(context));
}
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int source, int target)
{
	return OPENED(driver.cuDeviceGetP2PAttribute(value, attr, source, target));
}
cudaError_t cudaProfilerStart(void) { return RUN(0); }
cudaError_t cudaProfilerStop(void) { return RUN(0); }

// cudaGetDriverEntryPoint gives a function of the driver by its name without a version.
static int entryPoint(const char *name, void **f, unsigned long long flags, int *status)
{
	int result = ready(), version = 0;
	if (result)
		return result;
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*get)(const char *, void **, int, unsigned long long, int *) = dlsym(library, "cuGetProcAddress_v2");
	driver.cuDriverGetVersion(&version);
	result = get ? get(name, f, version, flags, status) : cudaErrorNotSupported;
	dlclose(library);
	return result;
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long flags, int *status)
{
	int result = entryPoint(name, f, flags, status);
	return done(result == cudaErrorSymbolNotFound && status ? 0 : result);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned version, unsigned long long flags, int *status)
{
	(void)version;
	return cudaGetDriverEntryPoint(name, f, flags, status);
}
enum { perThread = 2 }; // cudaEnablePerThreadDefaultStream
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **f, unsigned long long flags, int *status)
{
	return cudaGetDriverEntryPoint(name, f, flags ? flags : perThread, status);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **f, unsigned version, unsigned long long flags, int *status)
{
	return cudaGetDriverEntryPointByVersion(name, f, version, flags ? flags : perThread, status);
}
