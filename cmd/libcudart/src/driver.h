// driver.h has the driver's functions that the runtime calls. libcuda.so.1 is opened by the first call, as NVIDIA's
// runtime does, so a program starts without a driver and hears cudaErrorInsufficientDriver.
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t word;

// An ipc handle and a UUID go by value and by address as 64 and 16 bytes.
typedef struct {
	char bytes[64];
} handle64;

#define DRIVER                                                                                                     \
	D(cuInit, (unsigned)) D(cuDriverGetVersion, (int *)) D(cuDeviceGetCount, (int *)) D(cuDeviceGet, (int *, int)) \
	D(cuDeviceGetName, (char *, int, int)) D(cuDeviceGetUuid_v2, (void *, int)) D(cuDeviceTotalMem_v2, (size_t *, int)) \
	D(cuDeviceGetAttribute, (int *, int, int)) D(cuDeviceGetPCIBusId, (char *, int, int)) \
	D(cuDeviceCanAccessPeer, (int *, int, int)) D(cuDeviceGetP2PAttribute, (int *, int, int, int)) \
	D(cuDevicePrimaryCtxRetain, (word *, int)) D(cuDevicePrimaryCtxReset_v2, (int)) D(cuDevicePrimaryCtxGetState, (int, unsigned *, int *)) \
	D(cuCtxSetCurrent, (word)) D(cuCtxGetCurrent, (word *)) D(cuCtxGetDevice, (int *)) D(cuCtxSynchronize, (void)) \
	D(cuCtxEnablePeerAccess, (word, unsigned)) D(cuCtxDisablePeerAccess, (word)) D(cuCtxGetStreamPriorityRange, (int *, int *)) \
	D(cuCtxSetLimit, (int, size_t)) D(cuCtxGetLimit, (size_t *, int)) \
	D(cuMemGetInfo_v2, (size_t *, size_t *)) D(cuMemAlloc_v2, (word *, size_t)) D(cuMemFree_v2, (word)) \
	D(cuMemAllocAsync, (word *, size_t, word)) D(cuMemFreeAsync, (word, word)) \
	D(cuMemHostAlloc, (void **, size_t, unsigned)) D(cuMemFreeHost, (void *)) D(cuMemHostRegister_v2, (void *, size_t, unsigned)) \
	D(cuMemHostUnregister, (void *)) D(cuMemHostGetDevicePointer_v2, (word *, void *, unsigned)) \
	D(cuPointerGetAttribute, (void *, int, word)) D(cuIpcGetMemHandle, (void *, word)) D(cuIpcOpenMemHandle_v2, (word *, handle64, unsigned)) \
	D(cuIpcCloseMemHandle, (word)) D(cuIpcGetEventHandle, (void *, word)) D(cuIpcOpenEventHandle, (word *, handle64)) \
	D(cuMemcpy, (word, word, size_t)) D(cuMemcpyAsync, (word, word, size_t, word)) D(cuMemsetD8_v2, (word, unsigned char, size_t)) \
	D(cuMemsetD8Async, (word, unsigned char, size_t, word)) D(cuMemsetD32Async, (word, unsigned, size_t, word)) \
	D(cuStreamCreateWithPriority, (word *, unsigned, int)) D(cuStreamDestroy_v2, (word)) D(cuStreamSynchronize, (word)) \
	D(cuStreamQuery, (word)) D(cuStreamWaitEvent, (word, word, unsigned)) D(cuStreamGetFlags, (word, unsigned *)) \
	D(cuStreamGetPriority, (word, int *)) D(cuStreamGetId, (word, unsigned long long *)) D(cuStreamGetCtx, (word, word *)) \
	D(cuLaunchHostFunc, (word, void (*)(void *), void *)) D(cuEventCreate, (word *, unsigned)) D(cuEventDestroy_v2, (word)) \
	D(cuEventRecordWithFlags, (word, word, unsigned)) D(cuEventQuery, (word)) D(cuEventSynchronize, (word)) \
	D(cuEventElapsedTime, (float *, word, word)) D(cuModuleLoadData, (word *, const void *)) D(cuModuleUnload, (word)) \
	D(cuModuleGetFunction, (word *, word, const char *)) D(cuModuleGetGlobal_v2, (word *, size_t *, word, const char *)) \
	D(cuFuncGetAttribute, (int *, int, word)) D(cuFuncSetAttribute, (word, int, int)) \
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, word, int, size_t)) D(cuLaunchKernelEx, (const void *, word, void **, void **)) \
	D(cuOccupancyMaxActiveClusters, (int *, word, const void *)) D(cuOccupancyMaxPotentialClusterSize, (int *, word, const void *)) \
	D(cuStreamBeginCapture_v2, (word, int)) D(cuStreamEndCapture, (word, word *)) D(cuStreamIsCapturing, (word, int *)) \
	D(cuStreamGetCaptureInfo_v2, (word, int *, unsigned long long *, word *, const word **, size_t *)) \
	D(cuThreadExchangeStreamCaptureMode, (int *)) D(cuStreamBeginCaptureToGraph, (word, word, const word *, const void *, size_t, int)) \
	D(cuGraphCreate, (word *, unsigned)) D(cuGraphDestroy, (word)) D(cuGraphClone, (word *, word)) D(cuGraphGetNodes, (word, word *, size_t *)) \
	D(cuGraphInstantiateWithFlags, (word *, word, unsigned long long)) D(cuGraphExecUpdate_v2, (word, word, void *)) \
	D(cuGraphUpload, (word, word)) D(cuGraphLaunch, (word, word)) D(cuGraphExecDestroy, (word)) \
	D(cuGraphAddChildGraphNode, (word *, word, const word *, size_t, word)) D(cuGraphAddEventRecordNode, (word *, word, const word *, size_t, word)) \
	D(cuGraphAddDependencies, (word, const word *, const word *, size_t))

extern struct driver {
#define D(name, parameters) int(*name) parameters;
	DRIVER
#undef D
	void (*ringo_cuda_failed)(const char *call, const char *error, int result, const char *why, int follows);
} driver;

// ready opens the driver. 0, or an error of the runtime.
int ready(void);
// entered makes a context current on this thread, if there is none: that of device 0.
int entered(void);
// contextOf is a device's primary context, which the runtime retains once.
int contextOf(int device, word *context);
// done ends a call: it keeps an error for cudaGetLastError and the report of ringo emulate, and is it.
int done(int result);
// because is a result that the runtime itself gives, with the reason.
int because(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));
// functionOf is the kernel behind a host function on the current device, variableOf the memory behind a host variable.
int functionOf(const void *host, word *function);
int variableOf(const void *host, word *p, size_t *bytes);
// forgetModules unloads what is loaded on a device.
void forgetModules(int device);
