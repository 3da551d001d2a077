//go:build linux

// missing.c has the names of functions that are not carried out, so that programs which look for all of the driver's
// begin. One says its name once, and fails. cuGetProcAddress does not find them.
#include <stdio.h>

void ringo_cuda_failed(const char *call, const char *error, int result, const char *why, int follows);

static int refuse(const char *name, int *said)
{
	char why[128];
	snprintf(why, sizeof why, "%s is not carried out on emulated GPUs", name);
	ringo_cuda_failed(name, NULL, 801, why, 0);
	if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "libcuda: %s is not carried out on emulated GPUs\n", name);
	return 801; // CUDA_ERROR_NOT_SUPPORTED
}
#define M(name)                                            \
	int name(void) __attribute__((section("missing"))); \
	int name(void)                                     \
	{                                                  \
		static int said;                           \
		return refuse(#name, &said);               \
	}

// Arrays, textures, surfaces, graphics
M(cuArray3DCreate_v2) M(cuArray3DGetDescriptor_v2) M(cuArrayCreate_v2) M(cuArrayDestroy) M(cuArrayGetDescriptor_v2)
M(cuArrayGetMemoryRequirements) M(cuArrayGetPlane) M(cuArrayGetSparseProperties) M(cuDeviceGetTexture1DLinearMaxWidth)
M(cuGraphicsMapResources) M(cuGraphicsResourceGetMappedMipmappedArray) M(cuGraphicsResourceGetMappedPointer_v2)
M(cuGraphicsResourceSetMapFlags_v2) M(cuGraphicsSubResourceGetMappedArray) M(cuGraphicsUnmapResources) M(cuGraphicsUnregisterResource)
M(cuMemMapArrayAsync) M(cuMemcpyAtoA_v2) M(cuMemcpyAtoD_v2) M(cuMemcpyAtoHAsync_v2) M(cuMemcpyAtoH_v2) M(cuMemcpyDtoA_v2)
M(cuMemcpyHtoAAsync_v2) M(cuMemcpyHtoA_v2) M(cuMipmappedArrayCreate) M(cuMipmappedArrayDestroy) M(cuMipmappedArrayGetLevel)
M(cuMipmappedArrayGetMemoryRequirements) M(cuMipmappedArrayGetSparseProperties) M(cuModuleGetSurfRef) M(cuModuleGetTexRef)
M(cuParamSetTexRef) M(cuSurfObjectCreate) M(cuSurfObjectDestroy) M(cuSurfObjectGetResourceDesc) M(cuSurfRefGetArray) M(cuSurfRefSetArray)
M(cuTexObjectCreate) M(cuTexObjectDestroy) M(cuTexObjectGetResourceDesc) M(cuTexObjectGetResourceViewDesc) M(cuTexObjectGetTextureDesc)
M(cuTexRefCreate) M(cuTexRefDestroy) M(cuTexRefGetAddressMode) M(cuTexRefGetAddress_v2) M(cuTexRefGetArray) M(cuTexRefGetBorderColor)
M(cuTexRefGetFilterMode) M(cuTexRefGetFlags) M(cuTexRefGetFormat) M(cuTexRefGetMaxAnisotropy) M(cuTexRefGetMipmapFilterMode)
M(cuTexRefGetMipmapLevelBias) M(cuTexRefGetMipmapLevelClamp) M(cuTexRefGetMipmappedArray) M(cuTexRefSetAddress2D_v3)
M(cuTexRefSetAddressMode) M(cuTexRefSetAddress_v2) M(cuTexRefSetArray) M(cuTexRefSetBorderColor) M(cuTexRefSetFilterMode)
M(cuTexRefSetFlags) M(cuTexRefSetFormat) M(cuTexRefSetMaxAnisotropy) M(cuTexRefSetMipmapFilterMode) M(cuTexRefSetMipmapLevelBias)
M(cuTexRefSetMipmapLevelClamp) M(cuTexRefSetMipmappedArray)

// Graphs
M(cuDeviceGetGraphMemAttribute) M(cuDeviceGraphMemTrim) M(cuDeviceSetGraphMemAttribute) M(cuGraphAddBatchMemOpNode)
M(cuGraphAddDependencies_v2) M(cuGraphAddEmptyNode) M(cuGraphAddEventWaitNode) M(cuGraphAddExternalSemaphoresSignalNode)
M(cuGraphAddExternalSemaphoresWaitNode) M(cuGraphAddHostNode) M(cuGraphAddKernelNode) M(cuGraphAddKernelNode_v2) M(cuGraphAddMemAllocNode)
M(cuGraphAddMemFreeNode) M(cuGraphAddMemcpyNode) M(cuGraphAddMemsetNode) M(cuGraphAddNode) M(cuGraphBatchMemOpNodeGetParams)
M(cuGraphBatchMemOpNodeSetParams) M(cuGraphChildGraphNodeGetGraph) M(cuGraphDebugDotPrint) M(cuGraphDestroyNode)
M(cuGraphEventRecordNodeGetEvent) M(cuGraphEventRecordNodeSetEvent) M(cuGraphEventWaitNodeGetEvent) M(cuGraphEventWaitNodeSetEvent)
M(cuGraphExecBatchMemOpNodeSetParams) M(cuGraphExecChildGraphNodeSetParams) M(cuGraphExecEventRecordNodeSetEvent)
M(cuGraphExecEventWaitNodeSetEvent) M(cuGraphExecExternalSemaphoresSignalNodeSetParams) M(cuGraphExecExternalSemaphoresWaitNodeSetParams)
M(cuGraphExecGetFlags) M(cuGraphExecHostNodeSetParams) M(cuGraphExecKernelNodeSetParams) M(cuGraphExecKernelNodeSetParams_v2)
M(cuGraphExecMemcpyNodeSetParams) M(cuGraphExecMemsetNodeSetParams) M(cuGraphExecNodeSetParams) M(cuGraphExecUpdate)
M(cuGraphExternalSemaphoresSignalNodeGetParams) M(cuGraphExternalSemaphoresSignalNodeSetParams)
M(cuGraphExternalSemaphoresWaitNodeGetParams) M(cuGraphExternalSemaphoresWaitNodeSetParams) M(cuGraphGetEdges) M(cuGraphGetEdges_v2)
M(cuGraphGetRootNodes) M(cuGraphHostNodeGetParams) M(cuGraphHostNodeSetParams) M(cuGraphInstantiateWithParams) M(cuGraphInstantiate_v2)
M(cuGraphKernelNodeCopyAttributes) M(cuGraphKernelNodeGetAttribute) M(cuGraphKernelNodeGetParams) M(cuGraphKernelNodeGetParams_v2)
M(cuGraphKernelNodeSetAttribute) M(cuGraphKernelNodeSetParams) M(cuGraphKernelNodeSetParams_v2) M(cuGraphMemAllocNodeGetParams)
M(cuGraphMemFreeNodeGetParams) M(cuGraphMemcpyNodeGetParams) M(cuGraphMemcpyNodeSetParams) M(cuGraphMemsetNodeGetParams)
M(cuGraphMemsetNodeSetParams) M(cuGraphNodeFindInClone) M(cuGraphNodeGetDependencies) M(cuGraphNodeGetDependencies_v2)
M(cuGraphNodeGetDependentNodes) M(cuGraphNodeGetDependentNodes_v2) M(cuGraphNodeGetEnabled) M(cuGraphNodeGetType) M(cuGraphNodeSetEnabled)
M(cuGraphNodeSetParams) M(cuGraphReleaseUserObject) M(cuGraphRemoveDependencies_v2) M(cuStreamGetCaptureInfo) M(cuStreamGetCaptureInfo_v3)
M(cuStreamUpdateCaptureDependencies_v2)

// Memory: pools, managed memory, rectangles, external memory and semaphores, multicast
M(cuDestroyExternalMemory) M(cuDestroyExternalSemaphore) M(cuDeviceGetDefaultMemPool) M(cuDeviceGetMemPool) M(cuDeviceSetMemPool)
M(cuExternalMemoryGetMappedBuffer) M(cuExternalMemoryGetMappedMipmappedArray) M(cuFlushGPUDirectRDMAWrites) M(cuImportExternalMemory)
M(cuImportExternalSemaphore) M(cuMemAdvise) M(cuMemAdvise_v2) M(cuMemAllocFromPoolAsync) M(cuMemAllocManaged)
M(cuMemAllocPitch_v2) M(cuMemBatchDecompressAsync) M(cuMemDiscardAndPrefetchBatchAsync) M(cuMemDiscardBatchAsync)
M(cuMemGetAccess) M(cuMemGetAllocationPropertiesFromHandle) M(cuMemGetDefaultMemPool) M(cuMemGetMemPool) M(cuMemHostGetFlags)
M(cuMemPoolCreate) M(cuMemPoolDestroy) M(cuMemPoolExportPointer) M(cuMemPoolExportToShareableHandle) M(cuMemPoolGetAccess)
M(cuMemPoolGetAttribute) M(cuMemPoolImportFromShareableHandle) M(cuMemPoolImportPointer) M(cuMemPoolSetAccess) M(cuMemPoolSetAttribute)
M(cuMemPoolTrimTo) M(cuMemPrefetchAsync) M(cuMemPrefetchAsync_v2) M(cuMemPrefetchBatchAsync) M(cuMemRangeGetAttribute)
M(cuMemRangeGetAttributes) M(cuMemSetMemPool) M(cuMemcpy2DAsync_v2) M(cuMemcpy2DUnaligned_v2) M(cuMemcpy2D_v2) M(cuMemcpy3DAsync_v2)
M(cuMemcpy3DBatchAsync) M(cuMemcpy3DBatchAsync_v2) M(cuMemcpy3DPeer) M(cuMemcpy3DPeerAsync) M(cuMemcpy3D_v2) M(cuMemcpyBatchAsync)
M(cuMemcpyBatchAsync_v2) M(cuMemsetD16Async) M(cuMemsetD16_v2) M(cuMemsetD2D16Async) M(cuMemsetD2D16_v2) M(cuMemsetD2D32Async)
M(cuMemsetD2D32_v2) M(cuMemsetD2D8Async) M(cuMemsetD2D8_v2) M(cuMemsetD32_v2) M(cuMulticastAddDevice) M(cuMulticastBindAddr)
M(cuMulticastBindMem) M(cuMulticastCreate) M(cuMulticastGetGranularity) M(cuMulticastUnbind) M(cuPointerGetAttributes)
M(cuSignalExternalSemaphoresAsync) M(cuStreamAttachMemAsync) M(cuWaitExternalSemaphoresAsync)

// Contexts, devices, green contexts, streams and events
M(cuCoredumpGetAttribute) M(cuCoredumpGetAttributeGlobal) M(cuCoredumpSetAttribute) M(cuCoredumpSetAttributeGlobal) M(cuCtxAttach)
M(cuCtxCreate_v3) M(cuCtxDetach) M(cuCtxFromGreenCtx) M(cuCtxGetCacheConfig) M(cuCtxGetDevResource) M(cuCtxGetDevice_v2)
M(cuCtxGetExecAffinity) M(cuCtxGetFlags) M(cuCtxGetId) M(cuCtxGetSharedMemConfig) M(cuCtxRecordEvent)
M(cuCtxResetPersistingL2Cache) M(cuCtxSetCacheConfig) M(cuCtxSetFlags) M(cuCtxSetSharedMemConfig) M(cuCtxSynchronize_v2)
M(cuCtxWaitEvent) M(cuDevResourceGenerateDesc) M(cuDevSmResourceSplitByCount) M(cuDeviceGetByPCIBusId) M(cuDeviceGetDevResource)
M(cuDeviceGetExecAffinitySupport) M(cuDeviceGetHostAtomicCapabilities) M(cuDeviceGetLuid) M(cuDeviceGetP2PAtomicCapabilities)
M(cuDeviceGetProperties) M(cuDeviceGetUuid) M(cuDevicePrimaryCtxSetFlags_v2) M(cuDeviceRegisterAsyncNotification)
M(cuDeviceUnregisterAsyncNotification) M(cuEventElapsedTime_v2) M(cuGreenCtxCreate) M(cuGreenCtxDestroy) M(cuGreenCtxGetDevResource)
M(cuGreenCtxGetId) M(cuGreenCtxRecordEvent) M(cuGreenCtxStreamCreate) M(cuGreenCtxWaitEvent) M(cuLogsCurrent) M(cuLogsDumpToFile)
M(cuLogsDumpToMemory) M(cuLogsRegisterCallback) M(cuLogsUnregisterCallback) M(cuProfilerInitialize) M(cuProfilerStart) M(cuProfilerStop)
M(cuStreamAddCallback) M(cuStreamBatchMemOp) M(cuStreamBatchMemOp_v2) M(cuStreamCopyAttributes) M(cuStreamGetAttribute)
M(cuStreamGetCtx_v2) M(cuStreamGetDevice) M(cuStreamGetGreenCtx) M(cuStreamSetAttribute) M(cuStreamWaitValue32) M(cuStreamWaitValue64)
M(cuStreamWriteValue32) M(cuStreamWriteValue64)

// Kernels, modules, linking, occupancy, tensor maps
M(cuFuncGetModule) M(cuFuncGetName) M(cuFuncIsLoaded) M(cuFuncLoad) M(cuFuncSetBlockShape) M(cuFuncSetCacheConfig)
M(cuFuncSetSharedMemConfig) M(cuFuncSetSharedSize) M(cuKernelGetLibrary) M(cuKernelGetName) M(cuKernelGetParamInfo)
M(cuKernelSetCacheConfig) M(cuLaunch) M(cuLaunchCooperativeKernelMultiDevice) M(cuLaunchGrid) M(cuLaunchGridAsync)
M(cuLibraryEnumerateKernels) M(cuLibraryGetKernelCount) M(cuLibraryGetManaged) M(cuLibraryGetUnifiedFunction) M(cuLibraryLoadFromFile)
M(cuLinkAddData_v2) M(cuLinkAddFile_v2) M(cuLinkComplete) M(cuLinkCreate_v2) M(cuLinkDestroy) M(cuModuleEnumerateFunctions)
M(cuModuleGetFunctionCount) M(cuModuleGetLoadingMode) M(cuModuleLoad) M(cuOccupancyAvailableDynamicSMemPerBlock)
M(cuParamSetv) M(cuTensorMapEncodeIm2col) M(cuTensorMapEncodeIm2colWide) M(cuTensorMapEncodeTiled) M(cuTensorMapReplaceAddress)
