package cudac

import (
	"maps"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A function carries out one call of the driver.
type function func(l *Library, a *Args) error

// functions are the driver's functions by exported name. Each reads its arguments in the order of cuda.h.
var functions = together(devices, contexts, allocations, copies, virtual, ipc, streams, captures, events, modules,
	modulesOfLibraries, graphs)

func together(parts ...map[string]function) map[string]function {
	all := map[string]function{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// i is argument n as an int, dev as a device, u as an unsigned int.
func (a *Args) i(n int) int           { return int(int32(a[n])) }
func (a *Args) dev(n int) cuda.Device { return cuda.Device(int32(a[n])) }
func (a *Args) u(n int) uint32        { return uint32(a[n]) }

var devices = map[string]function{
	"cuDriverGetVersion": func(l *Library, a *Args) error { return giveInt(l.d.DriverGetVersion()).to(a[0]) },
	"cuDeviceGetCount":   func(l *Library, a *Args) error { return giveInt(l.d.DeviceGetCount()).to(a[0]) },
	"cuDeviceGet":        func(l *Library, a *Args) error { return give(l.d.DeviceGet(a.i(1))).to(a[0]) },
	"cuDeviceGetName": func(l *Library, a *Args) error {
		if a[0] == 0 {
			return cuda.ErrInvalidValue
		}
		s, err := l.d.DeviceGetName(a.dev(2))
		if err == nil {
			putText(a[0], a[1], s)
		}
		return err
	},
	"cuDeviceGetPCIBusId": func(l *Library, a *Args) error {
		s, err := l.d.DeviceGetPCIBusId(a.dev(2))
		if err == nil && (a[0] == 0 || a.i(1) <= len(s)) {
			return cuda.ErrInvalidValue
		}
		if err == nil {
			putText(a[0], a[1], s)
		}
		return err
	},
	"cuDeviceGetUuid_v2":  func(l *Library, a *Args) error { return give(l.d.DeviceGetUuid(a.dev(1))).to(a[0]) },
	"cuDeviceTotalMem_v2": func(l *Library, a *Args) error { return give(l.d.DeviceTotalMem(a.dev(1))).to(a[0]) },
	"cuDeviceGetAttribute": func(l *Library, a *Args) error {
		return giveInt(l.d.DeviceGetAttribute(cuda.DeviceAttribute(a.i(1)), a.dev(2))).to(a[0])
	},
	"cuDeviceComputeCapability": func(l *Library, a *Args) error {
		major, err := l.d.DeviceGetAttribute(cuda.AttrComputeCapabilityMajor, a.dev(2))
		if err := put(a[0], int32(major), err); err != nil {
			return err
		}
		minor, err := l.d.DeviceGetAttribute(cuda.AttrComputeCapabilityMinor, a.dev(2))
		return put(a[1], int32(minor), err)
	},
	"cuDeviceCanAccessPeer": func(l *Library, a *Args) error {
		return giveTruth(l.d.DeviceCanAccessPeer(a.dev(1), a.dev(2))).to(a[0])
	},
	"cuDeviceGetP2PAttribute": func(l *Library, a *Args) error {
		return giveInt(l.d.DeviceGetP2PAttribute(cuda.P2PAttribute(a.i(1)), a.dev(2), a.dev(3))).to(a[0])
	},
}

// A result is what a call of the driver has given.
type result[T any] struct {
	v   T
	err error
}

func give[T any](v T, err error) result[T] { return result[T]{v, err} }

// giveInt and giveTruth are give for what is an int in C.
func giveInt(v int, err error) result[int32]    { return result[int32]{int32(v), err} }
func giveTruth(v bool, err error) result[int32] { return result[int32]{truth(v), err} }

// to writes the result where an argument points.
func (r result[T]) to(p uintptr) error { return put(p, r.v, r.err) }

// truth is a bool as a C int.
func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// A creator is a driver for programs that make contexts of their own.
type creator interface {
	CtxCreate(cuda.Device) (cuda.Context, error)
	CtxDestroy(cuda.Context) error
}

// A flagger is a driver that knows the flags of pinned memory.
type flagger interface {
	MemHostGetFlags(p uintptr) (uint32, error)
}

// A limiter is a driver that has limits of contexts.
type limiter interface {
	CtxSetLimit(limit, n int) error
	CtxGetLimit(limit int) (int, error)
}

// A resetter is a driver for programs that reset devices.
type resetter interface {
	DevicePrimaryCtxReset(cuda.Device) error
}

// apiVersion is the version of the driver's interface, which has not changed since CUDA 3.2.
const apiVersion = 3020

var contexts = map[string]function{
	"cuDevicePrimaryCtxRetain": func(l *Library, a *Args) error {
		return give(l.d.DevicePrimaryCtxRetain(a.dev(1))).to(a[0])
	},
	"cuDevicePrimaryCtxReset_v2": func(l *Library, a *Args) error {
		d, ok := l.d.(resetter)
		if !ok {
			return cuda.ErrNotSupported
		}
		return d.DevicePrimaryCtxReset(a.dev(0))
	},
	"cuCtxGetApiVersion":           func(l *Library, a *Args) error { return put(a[1], uint32(apiVersion), nil) },
	"cuDevicePrimaryCtxRelease_v2": func(l *Library, a *Args) error { return l.d.DevicePrimaryCtxRelease(a.dev(0)) },
	"cuDevicePrimaryCtxGetState": func(l *Library, a *Args) error {
		if a[1] == 0 && a[2] == 0 {
			return cuda.ErrInvalidValue
		}
		flags, active, err := l.d.DevicePrimaryCtxGetState(a.dev(0))
		if err := put(a[1], flags, err); err != nil {
			return err
		}
		return put(a[2], truth(active), err)
	},
	"cuCtxCreate_v2": func(l *Library, a *Args) error { // without the flags, which are about waiting threads
		d, ok := l.d.(creator)
		if !ok {
			return cuda.ErrNotSupported
		}
		c, err := d.CtxCreate(a.dev(2))
		return put(a[0], c, err)
	},
	"cuCtxDestroy_v2": func(l *Library, a *Args) error {
		d, ok := l.d.(creator)
		if !ok {
			return cuda.ErrNotSupported
		}
		return d.CtxDestroy(cuda.Context(a[0]))
	},
	"cuCtxPushCurrent_v2": func(l *Library, a *Args) error {
		if a[0] == 0 {
			return cuda.ErrInvalidValue
		}
		return l.d.CtxPushCurrent(cuda.Context(a[0]))
	},
	"cuCtxPopCurrent_v2": func(l *Library, a *Args) error { return give(l.d.CtxPopCurrent()).to(a[0]) },
	"cuCtxGetCurrent":    func(l *Library, a *Args) error { return give(l.d.CtxGetCurrent()).to(a[0]) },
	"cuCtxSetCurrent":    func(l *Library, a *Args) error { return l.d.CtxSetCurrent(cuda.Context(a[0])) },
	"cuCtxGetDevice":     func(l *Library, a *Args) error { return give(l.d.CtxGetDevice()).to(a[0]) },
	"cuCtxSetLimit": func(l *Library, a *Args) error {
		d, ok := l.d.(limiter)
		if !ok {
			return cuda.ErrNotSupported
		}
		return d.CtxSetLimit(a.i(0), int(a[1]))
	},
	"cuCtxGetLimit": func(l *Library, a *Args) error {
		d, ok := l.d.(limiter)
		if !ok {
			return cuda.ErrNotSupported
		}
		n, err := d.CtxGetLimit(a.i(1))
		return put(a[0], n, err)
	},
	"cuCtxSynchronize":       func(l *Library, a *Args) error { return l.d.CtxSynchronize() },
	"cuCtxEnablePeerAccess":  func(l *Library, a *Args) error { return l.d.CtxEnablePeerAccess(cuda.Context(a[0])) },
	"cuCtxDisablePeerAccess": func(l *Library, a *Args) error { return l.d.CtxDisablePeerAccess(cuda.Context(a[0])) },
	"cuCtxGetStreamPriorityRange": func(l *Library, a *Args) error {
		least, greatest, err := l.d.CtxGetStreamPriorityRange()
		if err := put(a[0], int32(least), err); err != nil {
			return err
		}
		return put(a[1], int32(greatest), err)
	},
}

var allocations = map[string]function{
	"cuMemGetInfo_v2": func(l *Library, a *Args) error {
		free, total, err := l.d.MemGetInfo()
		if err := put(a[0], free, err); err != nil {
			return err
		}
		return put(a[1], total, err)
	},
	"cuMemAlloc_v2": func(l *Library, a *Args) error {
		if int(a[1]) < 0 {
			return cuda.ErrOutOfMemory
		}
		p, err := l.d.MemAlloc(int(a[1]))
		return put(a[0], p, err)
	},
	"cuMemAllocAsync": func(l *Library, a *Args) error {
		return l.ordered(func(d orderer) error {
			p, err := d.MemAllocAsync(int(a[1]), cuda.Stream(a[2]))
			return put(a[0], p, err)
		})
	},
	"cuMemFreeAsync": func(l *Library, a *Args) error {
		return l.ordered(func(d orderer) error { return d.MemFreeAsync(a[0], cuda.Stream(a[1])) })
	},
	"cuMemFree_v2": func(l *Library, a *Args) error { return l.d.MemFree(a[0]) },
	"cuMemGetAddressRange_v2": func(l *Library, a *Args) error {
		base, n, err := l.d.MemGetAddressRange(a[2])
		if err := put(a[0], base, err); err != nil {
			return err
		}
		return put(a[1], n, err)
	},
	"cuMemHostAlloc": func(l *Library, a *Args) error {
		return give(l.d.MemHostAlloc(int(a[1]), cuda.HostAllocFlags(a[2]))).to(a[0])
	},
	"cuMemAllocHost_v2": func(l *Library, a *Args) error { return give(l.d.MemHostAlloc(int(a[1]), 0)).to(a[0]) },
	"cuMemHostGetFlags": func(l *Library, a *Args) error {
		d, ok := l.d.(flagger)
		if !ok {
			return cuda.ErrNotSupported
		}
		flags, err := d.MemHostGetFlags(a[1])
		return put(a[0], flags, err)
	},
	"cuMemFreeHost": func(l *Library, a *Args) error { return l.d.MemFreeHost(a[0]) },
	"cuMemHostRegister_v2": func(l *Library, a *Args) error {
		return l.d.MemHostRegister(a[0], int(a[1]), cuda.HostRegisterFlags(a[2]))
	},
	"cuMemHostUnregister": func(l *Library, a *Args) error { return l.d.MemHostUnregister(a[0]) },
	"cuMemHostGetDevicePointer_v2": func(l *Library, a *Args) error {
		return give(l.d.MemHostGetDevicePointer(a[1])).to(a[0])
	},
	"cuPointerGetAttribute": func(l *Library, a *Args) error {
		v, err := l.d.PointerGetAttribute(cuda.PointerAttribute(a.i(1)), a[2])
		switch cuda.PointerAttribute(a.i(1)) {
		case cuda.PointerMemoryType, cuda.PointerSyncMemops, cuda.PointerIsManaged, cuda.PointerDeviceOrdinal,
			cuda.PointerLegacyIPC:
			return put(a[0], uint32(v), err)
		}
		return put(a[0], v, err)
	},
	"cuPointerSetAttribute": func(l *Library, a *Args) error {
		if cuda.PointerAttribute(a.i(1)) != cuda.PointerSyncMemops {
			return cuda.ErrNotSupported
		}
		return l.d.PointerSetSyncMemops(a[2], *at[uint32](a[0]) != 0)
	},
}

var copies = map[string]function{
	"cuMemcpyHtoD_v2":      func(l *Library, a *Args) error { return l.d.MemcpyHtoD(a[0], list[byte](a[1], a[2])) },
	"cuMemcpyDtoH_v2":      func(l *Library, a *Args) error { return l.d.MemcpyDtoH(list[byte](a[0], a[2]), a[1]) },
	"cuMemcpyDtoD_v2":      func(l *Library, a *Args) error { return l.d.MemcpyDtoD(a[0], a[1], int(a[2])) },
	"cuMemcpy":             func(l *Library, a *Args) error { return l.copy(a[0], a[1], a[2]) },
	"cuMemcpyAsync":        func(l *Library, a *Args) error { return l.copyAsync(a[0], a[1], a[2], a.stream(3)) },
	"cuMemcpyHtoDAsync_v2": func(l *Library, a *Args) error { return l.copyAsync(a[0], a[1], a[2], a.stream(3)) },
	"cuMemcpyDtoHAsync_v2": func(l *Library, a *Args) error { return l.copyAsync(a[0], a[1], a[2], a.stream(3)) },
	"cuMemcpyDtoDAsync_v2": func(l *Library, a *Args) error { return l.copyAsync(a[0], a[1], a[2], a.stream(3)) },
	"cuMemcpyPeer":         func(l *Library, a *Args) error { return l.d.MemcpyDtoD(a[0], a[2], int(a[4])) },
	"cuMemcpyPeerAsync": func(l *Library, a *Args) error {
		return l.d.MemcpyPeerAsync(a[0], cuda.Context(a[1]), a[2], cuda.Context(a[3]), int(a[4]), cuda.Stream(a[5]))
	},
	"cuMemsetD8_v2": func(l *Library, a *Args) error { return l.d.MemsetD8(a[0], byte(a[1]), int(a[2])) },
	"cuMemsetD8Async": func(l *Library, a *Args) error {
		return l.d.MemsetD8Async(a[0], byte(a[1]), int(a[2]), cuda.Stream(a[3]))
	},
	"cuMemsetD32Async": func(l *Library, a *Args) error {
		return l.d.MemsetD32Async(a[0], a.u(1), int(a[2]), cuda.Stream(a[3]))
	},
}

// propOf reads a CUmemAllocationProp.
func propOf(p uintptr) cuda.AllocationProp {
	c := at[memProp](p)
	return cuda.AllocationProp{Device: cuda.Device(c.locationID), Shareable: c.handleTypes&1 != 0, RDMA: c.rdma != 0}
}

var virtual = map[string]function{
	"cuMemGetAllocationGranularity": func(l *Library, a *Args) error {
		if a[1] == 0 {
			return cuda.ErrInvalidValue
		}
		n, err := l.d.MemGetAllocationGranularity(propOf(a[1]), cuda.GranularityOption(a.i(2)))
		return put(a[0], n, err)
	},
	"cuMemCreate": func(l *Library, a *Args) error {
		if a[2] == 0 || a[3] != 0 || !at[memProp](a[2]).fits() {
			return cuda.ErrInvalidValue
		}
		h, err := l.d.MemCreate(int(a[1]), propOf(a[2]))
		return put(a[0], h, err)
	},
	"cuMemRelease": func(l *Library, a *Args) error { return l.d.MemRelease(cuda.MemHandle(a[0])) },
	"cuMemAddressReserve": func(l *Library, a *Args) error {
		if a[4] != 0 {
			return cuda.ErrInvalidValue
		}
		p, err := l.d.MemAddressReserve(int(a[1]), int(a[2]))
		return put(a[0], p, err)
	},
	"cuMemAddressFree": func(l *Library, a *Args) error { return l.d.MemAddressFree(a[0], int(a[1])) },
	"cuMemMap": func(l *Library, a *Args) error {
		if a[2] != 0 { // an offset, which CUDA does not carry out either
			return cuda.ErrNotSupported
		}
		if a[4] != 0 {
			return cuda.ErrInvalidValue
		}
		return l.d.MemMap(a[0], int(a[1]), cuda.MemHandle(a[3]))
	},
	"cuMemUnmap": func(l *Library, a *Args) error { return l.d.MemUnmap(a[0], int(a[1])) },
	"cuMemSetAccess": func(l *Library, a *Args) error {
		var devices []cuda.Device
		if a[2] == 0 || a[3] == 0 {
			return cuda.ErrInvalidValue
		}
		for _, d := range list[memAccess](a[2], a[3]) {
			if d.location != onDevice {
				return cuda.ErrInvalidValue
			}
			devices = append(devices, cuda.Device(d.locationID))
		}
		return l.d.MemSetAccess(a[0], int(a[1]), devices...)
	},
	"cuMemRetainAllocationHandle": func(l *Library, a *Args) error {
		return give(l.d.MemRetainAllocationHandle(a[1])).to(a[0])
	},
	"cuMemExportToShareableHandle": func(l *Library, a *Args) error {
		return giveInt(l.d.MemExportToShareableHandle(cuda.MemHandle(a[1]))).to(a[0])
	},
	"cuMemGetHandleForAddressRange": func(l *Library, a *Args) error {
		return giveInt(l.d.MemGetHandleForAddressRange(a[1], int(a[2]))).to(a[0])
	},
	"cuMemImportFromShareableHandle": func(l *Library, a *Args) error {
		return give(l.d.MemImportFromShareableHandle(a.i(1))).to(a[0])
	},
}

// A handle, which C passes by value, comes as the address of a copy.
var ipc = map[string]function{
	"cuIpcGetMemHandle": func(l *Library, a *Args) error { return give(l.d.IpcGetMemHandle(a[1])).to(a[0]) },
	"cuIpcOpenMemHandle_v2": func(l *Library, a *Args) error {
		return give(l.d.IpcOpenMemHandle(*at[cuda.IPCHandle](a[1]))).to(a[0])
	},
	"cuIpcCloseMemHandle": func(l *Library, a *Args) error { return l.d.IpcCloseMemHandle(a[0]) },
	"cuIpcGetEventHandle": func(l *Library, a *Args) error {
		return give(l.d.IpcGetEventHandle(cuda.Event(a[1]))).to(a[0])
	},
	"cuIpcOpenEventHandle": func(l *Library, a *Args) error {
		return give(l.d.IpcOpenEventHandle(*at[cuda.IPCHandle](a[1]))).to(a[0])
	},
}
