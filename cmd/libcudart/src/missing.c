// missing.c has the names of functions that are not carried out, so that programs which have them begin. One
// says its name once, and fails.
#include <stdio.h>

#include "cuda_runtime_api.h"
#include "driver.h"

static int missing(const char *name, int *said)
{
	if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "libcudart: %s is not carried out on emulated GPUs\n", name);
	return done(because(cudaErrorNotSupported, "%s is not carried out on emulated GPUs", name));
}
#define M(name)                             \
	int name(void);                     \
	int name(void)                      \
	{                                   \
		static int said;            \
		return missing(#name, &said); \
	}

// Arrays, textures, surfaces, graphics
M(cudaMallocArray) M(cudaMalloc3DArray) M(cudaMallocMipmappedArray) M(cudaFreeArray) M(cudaFreeMipmappedArray) M(cudaGetMipmappedArrayLevel)
M(cudaArrayGetInfo) M(cudaArrayGetPlane) M(cudaArrayGetMemoryRequirements) M(cudaArrayGetSparseProperties) M(cudaMipmappedArrayGetMemoryRequirements)
M(cudaMipmappedArrayGetSparseProperties) M(cudaMemcpyToArray) M(cudaMemcpyFromArray) M(cudaMemcpyArrayToArray) M(cudaMemcpyToArrayAsync)
M(cudaMemcpyFromArrayAsync) M(cudaMemcpy2DToArray) M(cudaMemcpy2DFromArray) M(cudaMemcpy2DArrayToArray) M(cudaMemcpy2DToArrayAsync)
M(cudaMemcpy2DFromArrayAsync) M(cudaCreateChannelDesc) M(cudaGetChannelDesc) M(cudaCreateTextureObject) M(cudaDestroyTextureObject)
M(cudaGetTextureObjectResourceDesc) M(cudaGetTextureObjectTextureDesc) M(cudaGetTextureObjectResourceViewDesc) M(cudaCreateSurfaceObject)
M(cudaDestroySurfaceObject) M(cudaGetSurfaceObjectResourceDesc) M(cudaDeviceGetTexture1DLinearMaxWidth) M(cudaGraphicsUnregisterResource)
M(cudaGraphicsResourceSetMapFlags) M(cudaGraphicsMapResources) M(cudaGraphicsUnmapResources) M(cudaGraphicsResourceGetMappedPointer)
M(cudaGraphicsSubResourceGetMappedArray) M(cudaGraphicsResourceGetMappedMipmappedArray)

// External memory and semaphores, pools of one's own, managed ranges
M(cudaImportExternalMemory) M(cudaExternalMemoryGetMappedBuffer) M(cudaExternalMemoryGetMappedMipmappedArray) M(cudaDestroyExternalMemory)
M(cudaImportExternalSemaphore) M(cudaDestroyExternalSemaphore) M(cudaSignalExternalSemaphoresAsync_v2) M(cudaWaitExternalSemaphoresAsync_v2)
M(cudaMemPoolCreate) M(cudaMemPoolDestroy) M(cudaMemPoolGetAttribute) M(cudaMemPoolSetAccess) M(cudaMemPoolGetAccess) M(cudaMemPoolExportToShareableHandle)
M(cudaMemPoolImportFromShareableHandle) M(cudaMemPoolExportPointer) M(cudaMemPoolImportPointer) M(cudaDeviceSetMemPool) M(cudaMemRangeGetAttribute)
M(cudaMemRangeGetAttributes) M(cudaMemcpy3DPeer) M(cudaMemcpy3DPeerAsync) M(cudaMemset3D) M(cudaMemset3DAsync)

// Graphs by hand beyond kernels, copies, sets, host functions and children
M(cudaGraphAddNode) M(cudaGraphAddEmptyNode) M(cudaGraphAddMemcpyNodeToSymbol) M(cudaGraphAddMemcpyNodeFromSymbol)
M(cudaGraphAddEventWaitNode) M(cudaGraphAddMemAllocNode) M(cudaGraphAddMemFreeNode) M(cudaGraphAddExternalSemaphoresSignalNode)
M(cudaGraphAddExternalSemaphoresWaitNode) M(cudaGraphMemAllocNodeGetParams) M(cudaGraphMemFreeNodeGetParams) M(cudaDeviceGraphMemTrim)
M(cudaDeviceGetGraphMemAttribute) M(cudaDeviceSetGraphMemAttribute) M(cudaGraphKernelNodeGetParams) M(cudaGraphKernelNodeSetParams)
M(cudaGraphKernelNodeGetAttribute) M(cudaGraphKernelNodeSetAttribute) M(cudaGraphKernelNodeCopyAttributes) M(cudaGraphMemcpyNodeGetParams)
M(cudaGraphMemcpyNodeSetParams) M(cudaGraphMemcpyNodeSetParams1D) M(cudaGraphMemsetNodeGetParams) M(cudaGraphMemsetNodeSetParams)
M(cudaGraphHostNodeGetParams) M(cudaGraphHostNodeSetParams) M(cudaGraphChildGraphNodeGetGraph) M(cudaGraphEventRecordNodeGetEvent)
M(cudaGraphEventRecordNodeSetEvent) M(cudaGraphEventWaitNodeGetEvent) M(cudaGraphEventWaitNodeSetEvent) M(cudaGraphNodeFindInClone)
M(cudaGraphNodeGetType) M(cudaGraphGetRootNodes) M(cudaGraphGetEdges) M(cudaGraphNodeGetDependencies) M(cudaGraphNodeGetDependentNodes)
M(cudaGraphRemoveDependencies) M(cudaGraphDestroyNode) M(cudaGraphInstantiateWithParams) M(cudaGraphExecGetFlags) M(cudaGraphExecKernelNodeSetParams)
M(cudaGraphExecMemcpyNodeSetParams) M(cudaGraphExecMemcpyNodeSetParams1D) M(cudaGraphExecMemsetNodeSetParams) M(cudaGraphExecHostNodeSetParams)
M(cudaGraphExecChildGraphNodeSetParams) M(cudaGraphExecEventRecordNodeSetEvent) M(cudaGraphExecEventWaitNodeSetEvent) M(cudaGraphNodeSetEnabled)
M(cudaGraphNodeGetEnabled) M(cudaGraphNodeSetParams) M(cudaGraphExecNodeSetParams) M(cudaGraphDebugDotPrint) M(cudaGraphConditionalHandleCreate)
M(cudaUserObjectCreate) M(cudaUserObjectRetain) M(cudaUserObjectRelease) M(cudaGraphRetainUserObject) M(cudaGraphReleaseUserObject)
M(cudaStreamUpdateCaptureDependencies) M(cudaStreamCopyAttributes) M(cudaStreamGetAttribute) M(cudaStreamSetAttribute) M(cudaCtxResetPersistingL2Cache)

// Kernels by handles, clusters, the rest
M(cudaLibraryLoadData) M(cudaLibraryLoadFromFile) M(cudaLibraryUnload) M(cudaLibraryGetKernel) M(cudaLibraryGetGlobal)
M(cudaLibraryGetManaged) M(cudaLibraryGetUnifiedFunction) M(cudaLibraryGetKernelCount) M(cudaLibraryEnumerateKernels) M(cudaKernelSetAttributeForDevice)
M(cudaFuncGetName) M(cudaFuncGetParamInfo) M(cudaSetDoubleForDevice) M(cudaSetDoubleForHost)
M(cudaGetExportTable) M(cudaDeviceFlushGPUDirectRDMAWrites) M(cudaDeviceRegisterAsyncNotification)
M(cudaDeviceUnregisterAsyncNotification) M(cudaDeviceGetNvSciSyncAttributes) M(cudaDeviceGetHostAtomicCapabilities) M(cudaDeviceGetP2PAtomicCapabilities)
M(cudaMemcpyBatchAsync) M(cudaMemcpy3DBatchAsync)
#if CUDART_VERSION < 13000
M(cudaLaunchCooperativeKernelMultiDevice) M(cudaThreadExit) M(cudaThreadSynchronize) M(cudaThreadSetLimit) M(cudaThreadGetLimit) M(cudaThreadGetCacheConfig)
M(cudaThreadSetCacheConfig) M(cudaDeviceGetSharedMemConfig) M(cudaDeviceSetSharedMemConfig) M(cudaGetTextureReference) M(cudaGetSurfaceReference)
M(cudaSignalExternalSemaphoresAsync) M(cudaWaitExternalSemaphoresAsync) M(cudaMemPrefetchAsync_v2) M(cudaMemAdvise_v2) M(cudaGraphAddNode_v2)
M(cudaGraphAddDependencies_v2) M(cudaGraphRemoveDependencies_v2) M(cudaGraphGetEdges_v2) M(cudaGraphNodeGetDependencies_v2)
M(cudaGraphNodeGetDependentNodes_v2) M(cudaStreamUpdateCaptureDependencies_v2)
#else
M(cudaSignalExternalSemaphoresAsync) M(cudaWaitExternalSemaphoresAsync) M(cudaMemPrefetchAsync) M(cudaMemAdvise) M(cudaMemPrefetchBatchAsync)
M(cudaMemDiscardBatchAsync) M(cudaMemDiscardAndPrefetchBatchAsync) M(cudaLogsRegisterCallback) M(cudaLogsUnregisterCallback) M(cudaLogsCurrent)
M(cudaLogsDumpToFile) M(cudaLogsDumpToMemory) M(cudaMemGetDefaultMemPool) M(cudaMemGetMemPool) M(cudaMemSetMemPool)
#endif
