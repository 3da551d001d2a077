// Package cuda is the part of the CUDA driver API that Ringo needs, under the
// driver's own names, for all GPU packages. Driver is an interface: Open gives the real
// one, opened lazily without cgo; internal/emu/cudaemu is one in Go for machines without a
// GPU. The trap: the current context belongs to the OS thread, see With.
//
// Nothing of CUDA is loaded before Open is called. With the build tag
// ringo_nogpu, Open only says that it was left out, and the program stays static.
//
// Methods are the functions of cuda.h without the prefix "cu" and without
// version suffixes; outputs that C returns through pointers are results.
// Device memory, and host memory that a device can access, is a plain uintptr.
// Errors are *Error. A Driver is safe for use by any number of goroutines; calls that
// depend on the current context need a locked OS thread.
package cuda

// Handles of the driver. The zero handle is none (for Stream: the legacy
// default stream).
type (
	Device     int32 // a device, by its number
	Context    uintptr
	Module     uintptr
	Function   uintptr
	Stream     uintptr
	Event      uintptr
	Graph      uintptr
	GraphNode  uintptr
	GraphExec  uintptr
	UserObject uintptr
	Condition  uint64 // a value that decides whether a conditional node runs its body
	MemHandle  uint64 // an allocation of the virtual-memory API
)

// Streams that always exist.
const (
	StreamLegacy    Stream = 1 // CU_STREAM_LEGACY
	StreamPerThread Stream = 2 // CU_STREAM_PER_THREAD
)

// IPCHandle names device memory or an event to another process.
type IPCHandle [64]byte

// Dim3 is the extent of a grid or of a block. Zero counts as one.
type Dim3 struct{ X, Y, Z uint32 }

// A Launch says how a kernel is launched.
type Launch struct {
	Grid, Block Dim3
	Shared      int // bytes of dynamic shared memory a block
	Stream      Stream
	Cooperative bool // all blocks have to be resident at once, or the launch fails
	// of the kernel's blocks over those of other kernels, since CUDA 11.8; 0: the stream's priority
	Priority int
}

// A Driver is the CUDA driver API.
type Driver interface {
	// Name is "cuda" for the real driver, "emu" for the emulated one.
	Name() string
	// DriverGetVersion is 1000 × major + 10 × minor of the CUDA version, 13000 for 13.0.
	DriverGetVersion() (int, error)

	Devices
	Contexts
	Memory
	VirtualMemory
	IPC
	Streams
	Events
	Modules
	Graphs
}

// Devices lists and describes devices.
type Devices interface {
	DeviceGetCount() (int, error)
	DeviceGet(ordinal int) (Device, error)
	DeviceGetName(d Device) (string, error)
	DeviceGetUuid(d Device) ([16]byte, error)
	DeviceGetPCIBusId(d Device) (string, error)
	DeviceTotalMem(d Device) (int, error)
	DeviceGetAttribute(a DeviceAttribute, d Device) (int, error)
	DeviceCanAccessPeer(d, peer Device) (bool, error)
	DeviceGetP2PAttribute(a P2PAttribute, src, dst Device) (int, error)
}

// Contexts handles primary contexts only, which the CUDA runtime uses and so every
// framework. The current context belongs to the OS thread.
type Contexts interface {
	DevicePrimaryCtxRetain(d Device) (Context, error)
	DevicePrimaryCtxRelease(d Device) error
	DevicePrimaryCtxGetState(d Device) (flags uint32, active bool, err error)
	CtxPushCurrent(c Context) error
	CtxPopCurrent() (Context, error)
	CtxGetCurrent() (Context, error) // 0 and no error when there is none
	CtxSetCurrent(c Context) error
	CtxGetDevice() (Device, error)
	CtxSynchronize() error
	CtxEnablePeerAccess(peer Context) error
	CtxDisablePeerAccess(peer Context) error
	CtxGetStreamPriorityRange() (least, greatest int, err error)
}

// Memory of devices and of the host. Addresses are unified: MemcpyAsync finds
// out by itself which device or host an address belongs to.
type Memory interface {
	MemGetInfo() (free, total int, err error)
	MemAlloc(n int) (uintptr, error)
	MemFree(p uintptr) error
	// MemGetAddressRange is the allocation that p lies in.
	MemGetAddressRange(p uintptr) (base uintptr, n int, err error)

	MemHostAlloc(n int, flags HostAllocFlags) (uintptr, error)
	MemFreeHost(p uintptr) error
	MemHostRegister(p uintptr, n int, flags HostRegisterFlags) error
	MemHostUnregister(p uintptr) error
	MemHostGetDevicePointer(p uintptr) (uintptr, error)

	// MemcpyHtoD returns when it has read src, see Write. MemcpyDtoD and MemsetD8
	// return before they are done, too; MemcpyDtoH does not.
	MemcpyHtoD(dst uintptr, src []byte) error
	MemcpyDtoH(dst []byte, src uintptr) error
	MemcpyDtoD(dst, src uintptr, n int) error
	// MemcpyAsync copies between any two of device memory and pinned host memory.
	MemcpyAsync(dst, src uintptr, n int, s Stream) error
	// MemcpyPeerAsync copies by copy engine between the devices of two contexts. Unlike
	// MemcpyAsync, which does the same, it cannot be captured.
	MemcpyPeerAsync(dst uintptr, dstCtx Context, src uintptr, srcCtx Context, n int, s Stream) error
	MemsetD8(p uintptr, v byte, n int) error
	MemsetD8Async(p uintptr, v byte, n int, s Stream) error
	MemsetD32Async(p uintptr, v uint32, words int, s Stream) error

	PointerGetAttribute(a PointerAttribute, p uintptr) (uint64, error)
	// PointerSetSyncMemops makes synchronous copies of this memory wait for all work on it.
	PointerSetSyncMemops(p uintptr, on bool) error
}

// VirtualMemory separates addresses from memory, so that memory can be handed
// to other processes as file descriptors.
type VirtualMemory interface {
	MemGetAllocationGranularity(p AllocationProp, o GranularityOption) (int, error)
	MemCreate(n int, p AllocationProp) (MemHandle, error)
	MemRelease(h MemHandle) error
	MemAddressReserve(n, align int) (uintptr, error)
	MemAddressFree(p uintptr, n int) error
	MemMap(p uintptr, n int, h MemHandle) error
	MemUnmap(p uintptr, n int) error
	// MemSetAccess lets the devices read and write [p, p+n).
	MemSetAccess(p uintptr, n int, devices ...Device) error
	MemRetainAllocationHandle(p uintptr) (MemHandle, error)
	// MemExportToShareableHandle makes a file descriptor, which the caller closes.
	MemExportToShareableHandle(h MemHandle) (fd int, err error)
	// MemGetHandleForAddressRange exports whole pages of device memory for other devices of the
	// host: a dma-buf, in which p is the first byte, and which the caller closes. Since CUDA 11.7.
	MemGetHandleForAddressRange(p uintptr, n int) (fd int, err error)
	// MemImportFromShareableHandle leaves fd open.
	MemImportFromShareableHandle(fd int) (MemHandle, error)
}

// IPC hands device memory of MemAlloc, and events, to other processes of this host.
type IPC interface {
	IpcGetMemHandle(p uintptr) (IPCHandle, error)
	IpcOpenMemHandle(h IPCHandle) (uintptr, error)
	IpcCloseMemHandle(p uintptr) error
	IpcGetEventHandle(e Event) (IPCHandle, error)
	IpcOpenEventHandle(h IPCHandle) (Event, error)
}

// Streams are queues of work on a device.
type Streams interface {
	StreamCreate(flags StreamFlags, priority int) (Stream, error) // cuStreamCreateWithPriority
	StreamDestroy(s Stream) error
	StreamSynchronize(s Stream) error
	// StreamQuery reports whether all work is done; ErrNotReady is false here, not an error.
	StreamQuery(s Stream) (bool, error)
	StreamWaitEvent(s Stream, e Event, flags uint32) error
	StreamGetCtx(s Stream) (Context, error)
	StreamGetFlags(s Stream) (StreamFlags, error)
	StreamGetPriority(s Stream) (int, error)
	// StreamGetId is a number that no other stream of the process has, before or after:
	// handles are used again, and StreamPerThread is another stream on each thread. It fails
	// for a stream that captures. Since CUDA 12.
	StreamGetId(s Stream) (uint64, error)
	// LaunchHostFunc has the driver call f when the work before it is done. f
	// runs on a thread of the driver and must not call the driver. In a stream
	// that is being captured f runs in each launch of the graph, and is kept
	// until the graph and the graphs made of it are gone.
	LaunchHostFunc(s Stream, f func()) error
	StreamWriteValue32(s Stream, p uintptr, v uint32, flags uint32) error
	StreamWriteValue64(s Stream, p uintptr, v uint64, flags uint32) error
	StreamWaitValue32(s Stream, p uintptr, v uint32, flags WaitFlags) error
	StreamWaitValue64(s Stream, p uintptr, v uint64, flags WaitFlags) error

	StreamBeginCapture(s Stream, mode CaptureMode) error
	// StreamBeginCaptureToGraph adds to an existing graph, such as the body of a conditional
	// node. StreamEndCapture returns the same graph. Since CUDA 12.3.
	StreamBeginCaptureToGraph(s Stream, g Graph, after []GraphNode, mode CaptureMode) error
	StreamEndCapture(s Stream) (Graph, error)
	StreamIsCapturing(s Stream) (CaptureStatus, error)
	// StreamGetCaptureInfo gives the graph being captured and its id, unique in the process.
	StreamGetCaptureInfo(s Stream) (CaptureInfo, error)
	StreamUpdateCaptureDependencies(s Stream, nodes []GraphNode, flags uint32) error
	// ThreadExchangeStreamCaptureMode sets the mode of this thread and gives the one before.
	ThreadExchangeStreamCaptureMode(mode CaptureMode) (CaptureMode, error)
}

// Events are points in streams.
type Events interface {
	EventCreate(flags EventFlags) (Event, error)
	EventDestroy(e Event) error
	EventRecord(e Event, s Stream) error
	EventRecordWithFlags(e Event, s Stream, flags uint32) error
	EventQuery(e Event) (bool, error)
	EventSynchronize(e Event) error
	EventElapsedTime(start, end Event) (ms float32, err error)
}

// Modules hold kernels and variables.
type Modules interface {
	// ModuleLoadData takes PTX text or a cubin. When the driver refuses it, the
	// error holds the compiler's log.
	ModuleLoadData(image []byte) (Module, error)
	ModuleUnload(m Module) error
	ModuleGetFunction(m Module, name string) (Function, error)
	ModuleGetGlobal(m Module, name string) (p uintptr, n int, err error)
	FuncGetAttribute(a FunctionAttribute, f Function) (int, error)
	FuncSetAttribute(f Function, a FunctionAttribute, v int) error
	OccupancyMaxActiveBlocksPerMultiprocessor(f Function, threads, shared int) (int, error)
	// LaunchKernel queues a kernel. args are the bytes of its parameters, each
	// at its natural alignment, as a C struct with the same fields has them, but
	// without padding at the end; ArgsOf makes them of a Go struct. They are
	// copied before it returns. Another number of bytes than the kernel takes
	// is ErrLaunchOutOfResources on hardware.
	LaunchKernel(f Function, l *Launch, args []byte) error
}

// Graphs are recorded work.
type Graphs interface {
	GraphCreate() (Graph, error)
	GraphDestroy(g Graph) error
	GraphClone(g Graph) (Graph, error)
	GraphGetNodes(g Graph) ([]GraphNode, error)
	// GraphAddChildGraphNode adds a copy of child as one node.
	GraphAddChildGraphNode(g Graph, after []GraphNode, child Graph) (GraphNode, error)
	// GraphConditionalHandleCreate makes a value for one conditional node of g. Kernels set
	// it with cudaGraphSetConditional; with ConditionAssignDefault each launch begins with
	// initial. Since CUDA 12.3, as are the calls below for it.
	GraphConditionalHandleCreate(g Graph, c Context, initial, flags uint32) (Condition, error)
	// GraphAddConditionalNode adds a node that runs a graph of its own if, or while, the
	// value is not 0. The body is empty and belongs to the node; it may have kernels,
	// copies, sets, children and conditional nodes alone, all of one context. This is
	// cuGraphAddNode.
	GraphAddConditionalNode(g Graph, after []GraphNode, v Condition, t ConditionType, c Context) (n GraphNode, body Graph,
		err error)
	// GraphAddEventRecordNode, GraphAddDependencies and GraphRemoveDependencies may change a
	// graph that is being captured. An edge is from from[i] to to[i].
	GraphAddEventRecordNode(g Graph, after []GraphNode, e Event) (GraphNode, error)
	GraphAddDependencies(g Graph, from, to []GraphNode) error
	GraphRemoveDependencies(g Graph, from, to []GraphNode) error
	GraphInstantiate(g Graph, flags uint64) (GraphExec, error)
	// GraphExecUpdate has x do what g does. g must have the same nodes and edges, made in
	// the same order; if not, the error is ErrGraphExecUpdateFailure, the update says why,
	// and x is as it was. Since CUDA 12.
	GraphExecUpdate(x GraphExec, g Graph) (GraphUpdate, error)
	GraphUpload(x GraphExec, s Stream) error
	GraphLaunch(x GraphExec, s Stream) error
	GraphExecDestroy(x GraphExec) error
	// UserObjectCreate makes a count of references; when it falls to zero the
	// driver calls destroy, on a thread of its own, which must not call the driver.
	UserObjectCreate(destroy func(), references int) (UserObject, error)
	UserObjectRetain(o UserObject, references int) error
	UserObjectRelease(o UserObject, references int) error
	// GraphRetainUserObject gives references to the graph; with move they are the caller's own.
	GraphRetainUserObject(g Graph, o UserObject, references int, move bool) error
}

// A GraphUpdate says how GraphExecUpdate went: why it failed, at which node of the new
// graph, and at which edge of that node.
type GraphUpdate struct {
	Result   UpdateResult
	Node     GraphNode
	FromNode GraphNode
}

// CaptureInfo describes the capture of a stream.
type CaptureInfo struct {
	Status       CaptureStatus
	ID           uint64
	Graph        Graph
	Dependencies []GraphNode
}

// AllocationProp describes memory of MemCreate: pinned, on a device, shareable
// as a file descriptor or not.
type AllocationProp struct {
	Device    Device
	Shareable bool // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	RDMA      bool // gpuDirectRDMACapable
}
