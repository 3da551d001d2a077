package cuda

// A symbol is a function of the driver.
type symbol uint8

const (
	cuDeviceGetCount symbol = iota
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUuid
	cuDeviceGetPCIBusId
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDeviceCanAccessPeer
	cuDeviceGetP2PAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuDevicePrimaryCtxGetState
	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxGetCurrent
	cuCtxSetCurrent
	cuCtxGetDevice
	cuCtxSynchronize
	cuCtxEnablePeerAccess
	cuCtxDisablePeerAccess
	cuCtxGetStreamPriorityRange
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemGetAddressRange
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemHostGetDevicePointer
	cuMemcpyHtoD
	cuMemcpyDtoH
	cuMemcpyDtoD
	cuMemcpyAsync
	cuMemcpyPeerAsync
	cuMemsetD8
	cuMemsetD8Async
	cuMemsetD32Async
	cuPointerGetAttribute
	cuPointerSetAttribute
	cuMemGetAllocationGranularity
	cuMemCreate
	cuMemRelease
	cuMemAddressReserve
	cuMemAddressFree
	cuMemMap
	cuMemUnmap
	cuMemSetAccess
	cuMemRetainAllocationHandle
	cuMemExportToShareableHandle
	cuMemImportFromShareableHandle
	cuMemGetHandleForAddressRange
	cuIpcGetMemHandle
	cuIpcOpenMemHandle
	cuIpcCloseMemHandle
	cuIpcGetEventHandle
	cuIpcOpenEventHandle
	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuStreamWaitEvent
	cuStreamGetCtx
	cuStreamGetFlags
	cuStreamGetPriority
	cuStreamGetId
	cuLaunchHostFunc
	cuStreamWriteValue32
	cuStreamWriteValue64
	cuStreamWaitValue32
	cuStreamWaitValue64
	cuStreamBeginCapture
	cuStreamBeginCaptureToGraph
	cuStreamEndCapture
	cuStreamIsCapturing
	cuStreamGetCaptureInfo
	cuStreamUpdateCaptureDependencies
	cuThreadExchangeStreamCaptureMode
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventRecordWithFlags
	cuEventQuery
	cuEventSynchronize
	cuEventElapsedTime
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuModuleGetGlobal
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuFuncGetParamInfo
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuLaunchKernel
	cuLaunchKernelEx
	cuGraphCreate
	cuGraphDestroy
	cuGraphClone
	cuGraphGetNodes
	cuGraphAddChildGraphNode
	cuGraphConditionalHandleCreate
	cuGraphAddNode
	cuGraphAddEventRecordNode
	cuGraphAddDependencies
	cuGraphRemoveDependencies
	cuGraphInstantiateWithFlags
	cuGraphExecUpdate
	cuGraphUpload
	cuGraphLaunch
	cuGraphExecDestroy
	cuUserObjectCreate
	cuUserObjectRetain
	cuUserObjectRelease
	cuGraphRetainUserObject
	symbolCount
)

// symbols says what each function is asked for by: its base name and the CUDA
// version that brought the variant which we call, for cuGetProcAddress, and the
// name under which the library exports that variant. A newer variant with
// other parameters is therefore never called by mistake. The versions are
// those of cudaTypedefs.h.
var symbols = [symbolCount]struct {
	name   string
	export string
	since  int
}{
	cuDeviceGetCount:                  {"cuDeviceGetCount", "cuDeviceGetCount", 2000},
	cuDeviceGet:                       {"cuDeviceGet", "cuDeviceGet", 2000},
	cuDeviceGetName:                   {"cuDeviceGetName", "cuDeviceGetName", 2000},
	cuDeviceGetUuid:                   {"cuDeviceGetUuid", "cuDeviceGetUuid_v2", 11040},
	cuDeviceGetPCIBusId:               {"cuDeviceGetPCIBusId", "cuDeviceGetPCIBusId", 4010},
	cuDeviceTotalMem:                  {"cuDeviceTotalMem", "cuDeviceTotalMem_v2", 3020},
	cuDeviceGetAttribute:              {"cuDeviceGetAttribute", "cuDeviceGetAttribute", 2000},
	cuDeviceCanAccessPeer:             {"cuDeviceCanAccessPeer", "cuDeviceCanAccessPeer", 4000},
	cuDeviceGetP2PAttribute:           {"cuDeviceGetP2PAttribute", "cuDeviceGetP2PAttribute", 8000},
	cuDevicePrimaryCtxRetain:          {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000},
	cuDevicePrimaryCtxRelease:         {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000},
	cuDevicePrimaryCtxGetState:        {"cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxGetState", 7000},
	cuCtxPushCurrent:                  {"cuCtxPushCurrent", "cuCtxPushCurrent_v2", 4000},
	cuCtxPopCurrent:                   {"cuCtxPopCurrent", "cuCtxPopCurrent_v2", 4000},
	cuCtxGetCurrent:                   {"cuCtxGetCurrent", "cuCtxGetCurrent", 4000},
	cuCtxSetCurrent:                   {"cuCtxSetCurrent", "cuCtxSetCurrent", 4000},
	cuCtxGetDevice:                    {"cuCtxGetDevice", "cuCtxGetDevice", 2000},
	cuCtxSynchronize:                  {"cuCtxSynchronize", "cuCtxSynchronize", 2000},
	cuCtxEnablePeerAccess:             {"cuCtxEnablePeerAccess", "cuCtxEnablePeerAccess", 4000},
	cuCtxDisablePeerAccess:            {"cuCtxDisablePeerAccess", "cuCtxDisablePeerAccess", 4000},
	cuCtxGetStreamPriorityRange:       {"cuCtxGetStreamPriorityRange", "cuCtxGetStreamPriorityRange", 5050},
	cuMemGetInfo:                      {"cuMemGetInfo", "cuMemGetInfo_v2", 3020},
	cuMemAlloc:                        {"cuMemAlloc", "cuMemAlloc_v2", 3020},
	cuMemFree:                         {"cuMemFree", "cuMemFree_v2", 3020},
	cuMemGetAddressRange:              {"cuMemGetAddressRange", "cuMemGetAddressRange_v2", 3020},
	cuMemHostAlloc:                    {"cuMemHostAlloc", "cuMemHostAlloc", 2020},
	cuMemFreeHost:                     {"cuMemFreeHost", "cuMemFreeHost", 2000},
	cuMemHostRegister:                 {"cuMemHostRegister", "cuMemHostRegister_v2", 6050},
	cuMemHostUnregister:               {"cuMemHostUnregister", "cuMemHostUnregister", 4000},
	cuMemHostGetDevicePointer:         {"cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2", 3020},
	cuMemcpyHtoD:                      {"cuMemcpyHtoD", "cuMemcpyHtoD_v2", 3020},
	cuMemcpyDtoH:                      {"cuMemcpyDtoH", "cuMemcpyDtoH_v2", 3020},
	cuMemcpyDtoD:                      {"cuMemcpyDtoD", "cuMemcpyDtoD_v2", 3020},
	cuMemcpyAsync:                     {"cuMemcpyAsync", "cuMemcpyAsync", 4000},
	cuMemcpyPeerAsync:                 {"cuMemcpyPeerAsync", "cuMemcpyPeerAsync", 4000},
	cuMemsetD8:                        {"cuMemsetD8", "cuMemsetD8_v2", 3020},
	cuMemsetD8Async:                   {"cuMemsetD8Async", "cuMemsetD8Async", 3020},
	cuMemsetD32Async:                  {"cuMemsetD32Async", "cuMemsetD32Async", 3020},
	cuPointerGetAttribute:             {"cuPointerGetAttribute", "cuPointerGetAttribute", 4000},
	cuPointerSetAttribute:             {"cuPointerSetAttribute", "cuPointerSetAttribute", 6000},
	cuMemGetAllocationGranularity:     {"cuMemGetAllocationGranularity", "cuMemGetAllocationGranularity", 10020},
	cuMemCreate:                       {"cuMemCreate", "cuMemCreate", 10020},
	cuMemRelease:                      {"cuMemRelease", "cuMemRelease", 10020},
	cuMemAddressReserve:               {"cuMemAddressReserve", "cuMemAddressReserve", 10020},
	cuMemAddressFree:                  {"cuMemAddressFree", "cuMemAddressFree", 10020},
	cuMemMap:                          {"cuMemMap", "cuMemMap", 10020},
	cuMemUnmap:                        {"cuMemUnmap", "cuMemUnmap", 10020},
	cuMemSetAccess:                    {"cuMemSetAccess", "cuMemSetAccess", 10020},
	cuMemRetainAllocationHandle:       {"cuMemRetainAllocationHandle", "cuMemRetainAllocationHandle", 11000},
	cuMemExportToShareableHandle:      {"cuMemExportToShareableHandle", "cuMemExportToShareableHandle", 10020},
	cuMemImportFromShareableHandle:    {"cuMemImportFromShareableHandle", "cuMemImportFromShareableHandle", 10020},
	cuMemGetHandleForAddressRange:     {"cuMemGetHandleForAddressRange", "cuMemGetHandleForAddressRange", 11070},
	cuIpcGetMemHandle:                 {"cuIpcGetMemHandle", "cuIpcGetMemHandle", 4010},
	cuIpcOpenMemHandle:                {"cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 11000},
	cuIpcCloseMemHandle:               {"cuIpcCloseMemHandle", "cuIpcCloseMemHandle", 4010},
	cuIpcGetEventHandle:               {"cuIpcGetEventHandle", "cuIpcGetEventHandle", 4010},
	cuIpcOpenEventHandle:              {"cuIpcOpenEventHandle", "cuIpcOpenEventHandle", 4010},
	cuStreamCreateWithPriority:        {"cuStreamCreateWithPriority", "cuStreamCreateWithPriority", 5050},
	cuStreamDestroy:                   {"cuStreamDestroy", "cuStreamDestroy_v2", 4000},
	cuStreamSynchronize:               {"cuStreamSynchronize", "cuStreamSynchronize", 2000},
	cuStreamQuery:                     {"cuStreamQuery", "cuStreamQuery", 2000},
	cuStreamWaitEvent:                 {"cuStreamWaitEvent", "cuStreamWaitEvent", 3020},
	cuStreamGetCtx:                    {"cuStreamGetCtx", "cuStreamGetCtx", 9020},
	cuStreamGetFlags:                  {"cuStreamGetFlags", "cuStreamGetFlags", 5050},
	cuStreamGetPriority:               {"cuStreamGetPriority", "cuStreamGetPriority", 5050},
	cuStreamGetId:                     {"cuStreamGetId", "cuStreamGetId", 12000},
	cuLaunchHostFunc:                  {"cuLaunchHostFunc", "cuLaunchHostFunc", 10000},
	cuStreamWriteValue32:              {"cuStreamWriteValue32", "cuStreamWriteValue32_v2", 11070},
	cuStreamWriteValue64:              {"cuStreamWriteValue64", "cuStreamWriteValue64_v2", 11070},
	cuStreamWaitValue32:               {"cuStreamWaitValue32", "cuStreamWaitValue32_v2", 11070},
	cuStreamWaitValue64:               {"cuStreamWaitValue64", "cuStreamWaitValue64_v2", 11070},
	cuStreamBeginCapture:              {"cuStreamBeginCapture", "cuStreamBeginCapture_v2", 10010},
	cuStreamEndCapture:                {"cuStreamEndCapture", "cuStreamEndCapture", 10000},
	cuStreamIsCapturing:               {"cuStreamIsCapturing", "cuStreamIsCapturing", 10000},
	cuStreamGetCaptureInfo:            {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", 11030},
	cuStreamUpdateCaptureDependencies: {"cuStreamUpdateCaptureDependencies", "cuStreamUpdateCaptureDependencies", 11030},
	cuThreadExchangeStreamCaptureMode: {"cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode", 10010},
	cuEventCreate:                     {"cuEventCreate", "cuEventCreate", 2000},
	cuEventDestroy:                    {"cuEventDestroy", "cuEventDestroy_v2", 4000},
	cuEventRecord:                     {"cuEventRecord", "cuEventRecord", 2000},
	cuEventRecordWithFlags:            {"cuEventRecordWithFlags", "cuEventRecordWithFlags", 11010},
	cuEventQuery:                      {"cuEventQuery", "cuEventQuery", 2000},
	cuEventSynchronize:                {"cuEventSynchronize", "cuEventSynchronize", 2000},
	cuEventElapsedTime:                {"cuEventElapsedTime", "cuEventElapsedTime", 2000},
	cuModuleLoadDataEx:                {"cuModuleLoadDataEx", "cuModuleLoadDataEx", 2010},
	cuModuleUnload:                    {"cuModuleUnload", "cuModuleUnload", 2000},
	cuModuleGetFunction:               {"cuModuleGetFunction", "cuModuleGetFunction", 2000},
	cuModuleGetGlobal:                 {"cuModuleGetGlobal", "cuModuleGetGlobal_v2", 3020},
	cuFuncGetAttribute:                {"cuFuncGetAttribute", "cuFuncGetAttribute", 2020},
	cuFuncSetAttribute:                {"cuFuncSetAttribute", "cuFuncSetAttribute", 9000},
	cuFuncGetParamInfo:                {"cuFuncGetParamInfo", "cuFuncGetParamInfo", 12040},
	cuOccupancyMaxActiveBlocksPerMultiprocessor: {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
		"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050},
	cuLaunchKernel:                 {"cuLaunchKernel", "cuLaunchKernel", 4000},
	cuLaunchKernelEx:               {"cuLaunchKernelEx", "cuLaunchKernelEx", 11060},
	cuGraphCreate:                  {"cuGraphCreate", "cuGraphCreate", 10000},
	cuGraphDestroy:                 {"cuGraphDestroy", "cuGraphDestroy", 10000},
	cuStreamBeginCaptureToGraph:    {"cuStreamBeginCaptureToGraph", "cuStreamBeginCaptureToGraph", 12030},
	cuGraphClone:                   {"cuGraphClone", "cuGraphClone", 10000},
	cuGraphAddChildGraphNode:       {"cuGraphAddChildGraphNode", "cuGraphAddChildGraphNode", 10000},
	cuGraphConditionalHandleCreate: {"cuGraphConditionalHandleCreate", "cuGraphConditionalHandleCreate", 12030},
	cuGraphAddNode:                 {"cuGraphAddNode", "cuGraphAddNode_v2", 12030},
	cuGraphExecUpdate:              {"cuGraphExecUpdate", "cuGraphExecUpdate_v2", 12000},
	cuGraphGetNodes:                {"cuGraphGetNodes", "cuGraphGetNodes", 10000},
	cuGraphAddEventRecordNode:      {"cuGraphAddEventRecordNode", "cuGraphAddEventRecordNode", 11010},
	cuGraphAddDependencies:         {"cuGraphAddDependencies", "cuGraphAddDependencies", 10000},
	cuGraphRemoveDependencies:      {"cuGraphRemoveDependencies", "cuGraphRemoveDependencies", 10000},
	cuGraphInstantiateWithFlags:    {"cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags", 11040},
	cuGraphUpload:                  {"cuGraphUpload", "cuGraphUpload", 11010},
	cuGraphLaunch:                  {"cuGraphLaunch", "cuGraphLaunch", 10000},
	cuGraphExecDestroy:             {"cuGraphExecDestroy", "cuGraphExecDestroy", 10000},
	cuUserObjectCreate:             {"cuUserObjectCreate", "cuUserObjectCreate", 11030},
	cuUserObjectRetain:             {"cuUserObjectRetain", "cuUserObjectRetain", 11030},
	cuUserObjectRelease:            {"cuUserObjectRelease", "cuUserObjectRelease", 11030},
	cuGraphRetainUserObject:        {"cuGraphRetainUserObject", "cuGraphRetainUserObject", 11030},
}
