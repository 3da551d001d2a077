package cuda

// The constants have the values of cuda.h; a test compares them where the header is installed.

// A DeviceAttribute is a CUdevice_attribute, for DeviceGetAttribute.
type DeviceAttribute int32

const (
	AttrMaxThreadsPerBlock            DeviceAttribute = 1
	AttrMaxSharedPerBlock             DeviceAttribute = 8
	AttrWarpSize                      DeviceAttribute = 10
	AttrClockRate                     DeviceAttribute = 13
	AttrMultiprocessorCount           DeviceAttribute = 16
	AttrComputeMode                   DeviceAttribute = 20
	AttrPCIBusID                      DeviceAttribute = 33
	AttrPCIDeviceID                   DeviceAttribute = 34
	AttrMemoryClockRate               DeviceAttribute = 36
	AttrGlobalMemoryBusWidth          DeviceAttribute = 37
	AttrL2CacheSize                   DeviceAttribute = 38
	AttrMaxThreadsPerMultiprocessor   DeviceAttribute = 39
	AttrAsyncEngineCount              DeviceAttribute = 40
	AttrUnifiedAddressing             DeviceAttribute = 41
	AttrPCIDomainID                   DeviceAttribute = 50
	AttrComputeCapabilityMajor        DeviceAttribute = 75
	AttrComputeCapabilityMinor        DeviceAttribute = 76
	AttrMaxSharedPerMultiprocessor    DeviceAttribute = 81
	AttrMaxRegistersPerMultiprocessor DeviceAttribute = 82
	AttrManagedMemory                 DeviceAttribute = 83
	AttrComputePreemption             DeviceAttribute = 90
	AttrCooperativeLaunch             DeviceAttribute = 95
	AttrMaxSharedPerBlockOptin        DeviceAttribute = 97
	AttrHostRegisterSupported         DeviceAttribute = 99
	AttrVirtualMemorySupported        DeviceAttribute = 102
	AttrPosixFDSupported              DeviceAttribute = 103
	AttrMaxBlocksPerMultiprocessor    DeviceAttribute = 106
	AttrRDMAVirtualMemorySupported    DeviceAttribute = 110
	AttrMemoryPoolsSupported          DeviceAttribute = 115
	AttrRDMASupported                 DeviceAttribute = 116
	AttrRDMAWritesOrdering            DeviceAttribute = 118
	AttrClusterLaunch                 DeviceAttribute = 120
	AttrStreamValues64                DeviceAttribute = 122 // 64-bit stream memory operations
	AttrStreamWaitNOR                 DeviceAttribute = 123
	AttrDMABufSupported               DeviceAttribute = 124
	AttrIPCEventSupported             DeviceAttribute = 125
	AttrMulticastSupported            DeviceAttribute = 132 // never used; for information only
)

// RDMAWritesOrderingOwner is the least value of AttrRDMAWritesOrdering of a device whose kernels see other
// devices' writes to its memory in order, without a flush.
const RDMAWritesOrderingOwner = 100

// Values of AttrComputeMode that keep programs away from a device.
const (
	computeModeProhibited = 2 // no program may use it
	computeModeExclusive  = 3 // one process at a time
)

// A P2PAttribute is a CUdevice_P2PAttribute, of a pair of devices.
type P2PAttribute int32

const (
	P2PPerformanceRank P2PAttribute = 1
	P2PAccessSupported P2PAttribute = 2
	P2PNativeAtomics   P2PAttribute = 3
)

// A PointerAttribute is a CUpointer_attribute, for PointerGetAttribute.
type PointerAttribute int32

const (
	PointerContext       PointerAttribute = 1
	PointerMemoryType    PointerAttribute = 2
	PointerSyncMemops    PointerAttribute = 6
	PointerBufferID      PointerAttribute = 7
	PointerIsManaged     PointerAttribute = 8
	PointerDeviceOrdinal PointerAttribute = 9
	PointerLegacyIPC     PointerAttribute = 10
	PointerRangeStart    PointerAttribute = 11
	PointerRangeSize     PointerAttribute = 12
)

// Values of PointerMemoryType.
const (
	MemoryTypeHost   = 1
	MemoryTypeDevice = 2
)

// A FunctionAttribute is a CUfunction_attribute of a kernel.
type FunctionAttribute int32

const (
	FuncMaxThreadsPerBlock FunctionAttribute = 0
	FuncSharedBytes        FunctionAttribute = 1
	FuncLocalBytes         FunctionAttribute = 3
	FuncRegisters          FunctionAttribute = 4
	FuncPTXVersion         FunctionAttribute = 5
	FuncBinaryVersion      FunctionAttribute = 6
	FuncMaxDynamicShared   FunctionAttribute = 8
)

// HostAllocFlags are the flags of MemHostAlloc, added up.
type HostAllocFlags uint32

const (
	HostAllocPortable      HostAllocFlags = 1
	HostAllocMapped        HostAllocFlags = 2
	HostAllocWriteCombined HostAllocFlags = 4
)

// HostRegisterFlags are the flags of MemHostRegister, added up.
type HostRegisterFlags uint32

const (
	HostRegisterPortable HostRegisterFlags = 1
	HostRegisterMapped   HostRegisterFlags = 2
)

// StreamFlags say whether a stream is in order with the legacy stream.
type StreamFlags uint32

const (
	StreamDefault     StreamFlags = 0
	StreamNonBlocking StreamFlags = 1
)

// EventFlags are the flags of EventCreate, added up.
type EventFlags uint32

const (
	EventDefault       EventFlags = 0
	EventBlockingSync  EventFlags = 1
	EventDisableTiming EventFlags = 2
	EventInterprocess  EventFlags = 4
)

// WaitFlags say when a wait for value v at address p ends.
type WaitFlags uint32

const (
	WaitGEQ WaitFlags = 0 // (int)(*p - v) >= 0
	WaitEQ  WaitFlags = 1 // *p == v
	WaitAND WaitFlags = 2 // *p & v != 0
	WaitNOR WaitFlags = 3 // ^(*p | v) != 0
)

// Flags of StreamWaitEvent and EventRecordWithFlags in a stream that is being captured: the
// node of the graph waits for, or records for, work outside of the graph. A wait is for the
// last record before the graph's launch.
const (
	EventWaitExternal   = 1
	EventRecordExternal = 1
)

// Flags of StreamUpdateCaptureDependencies: add to the capture's dependencies, or replace them.
const (
	CaptureAddDependencies = 0
	CaptureSetDependencies = 1
)

// A ConditionType says how the value of a conditional node is used.
type ConditionType uint32

const (
	ConditionIf    ConditionType = 0
	ConditionWhile ConditionType = 1
)

// ConditionAssignDefault, a flag of GraphConditionalHandleCreate, has each launch begin with
// the initial value.
const ConditionAssignDefault = 1

// An UpdateResult is why a graph could not be updated.
type UpdateResult uint32

const (
	UpdateSuccess                   UpdateResult = 0
	UpdateError                     UpdateResult = 1
	UpdateTopologyChanged           UpdateResult = 2
	UpdateNodeTypeChanged           UpdateResult = 3
	UpdateFunctionChanged           UpdateResult = 4 // drivers before CUDA 11.2
	UpdateParametersChanged         UpdateResult = 5
	UpdateNotSupported              UpdateResult = 6
	UpdateUnsupportedFunctionChange UpdateResult = 7
	UpdateAttributesChanged         UpdateResult = 8
)

// A CaptureMode says which threads' captures forbid unsafe calls, such as MemAlloc: all, the own ones, or none.
type CaptureMode uint32

const (
	CaptureGlobal      CaptureMode = 0
	CaptureThreadLocal CaptureMode = 1
	CaptureRelaxed     CaptureMode = 2
)

// A CaptureStatus is a CUstreamCaptureStatus.
type CaptureStatus uint32

const (
	CaptureNone        CaptureStatus = 0
	CaptureActive      CaptureStatus = 1
	CaptureInvalidated CaptureStatus = 2
)

// A GranularityOption is a CUmemAllocationGranularity_flags.
type GranularityOption uint32

const (
	GranularityMinimum     GranularityOption = 0
	GranularityRecommended GranularityOption = 1
)
