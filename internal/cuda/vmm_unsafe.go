package cuda

import (
	"unsafe"
)

// Values of cuda.h for memory that is pinned, on a device, read and written by
// devices, and handed on as file descriptors.
const (
	allocationPinned = 1
	locationDevice   = 1
	accessReadWrite  = 3
	handlePosixFD    = 1
	rangeDMABuf      = 1
)

// CUmemLocation
type memLocation struct{ kind, id int32 }

// CUmemAllocationProp
type memAllocationProp struct {
	kind, handleTypes int32
	location          memLocation
	win32             uintptr
	compression       uint8
	rdma              uint8
	usage             uint16
	reserved          [4]uint8
}

// CUmemAccessDesc
type memAccessDesc struct {
	location memLocation
	flags    int32
}

func (p AllocationProp) c() *memAllocationProp {
	q := &memAllocationProp{kind: allocationPinned, location: memLocation{locationDevice, int32(p.Device)}}
	if p.Shareable {
		q.handleTypes = handlePosixFD
	}
	if p.RDMA {
		q.rdma = 1
	}
	return q
}

func (d *libcuda) MemGetAllocationGranularity(p AllocationProp, o GranularityOption) (int, error) {
	var n uintptr
	err := d.callPtr(cuMemGetAllocationGranularity, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(p.c())),
		uintptr(o))
	return int(n), err
}

func (d *libcuda) MemCreate(n int, p AllocationProp) (MemHandle, error) {
	var h MemHandle
	err := d.callPtr(cuMemCreate, uintptr(unsafe.Pointer(&h)), uintptr(n), uintptr(unsafe.Pointer(p.c())), 0)
	return h, detail(err, "%d bytes", n)
}

func (d *libcuda) MemRelease(h MemHandle) error { return d.call(cuMemRelease, uintptr(h)) }

func (d *libcuda) MemAddressReserve(n, align int) (uintptr, error) {
	p, err := d.get(cuMemAddressReserve, uintptr(n), uintptr(align), 0, 0)
	return p, detail(err, "%d bytes of addresses", n)
}

func (d *libcuda) MemAddressFree(p uintptr, n int) error {
	return d.set(p, n, d.call(cuMemAddressFree, p, uintptr(n)))
}

func (d *libcuda) MemMap(p uintptr, n int, h MemHandle) error {
	return d.set(p, n, d.call(cuMemMap, p, uintptr(n), 0, uintptr(h), 0))
}

func (d *libcuda) MemUnmap(p uintptr, n int) error {
	return d.set(p, n, d.call(cuMemUnmap, p, uintptr(n)))
}

func (d *libcuda) MemSetAccess(p uintptr, n int, devices ...Device) error {
	if len(devices) == 0 {
		return nil
	}
	access := make([]memAccessDesc, len(devices))
	for i, dev := range devices {
		access[i] = memAccessDesc{memLocation{locationDevice, int32(dev)}, accessReadWrite}
	}
	return d.set(p, n, d.callPtr(cuMemSetAccess, p, uintptr(n), uintptr(unsafe.Pointer(&access[0])), uintptr(len(access))))
}

func (d *libcuda) MemRetainAllocationHandle(p uintptr) (MemHandle, error) {
	h, err := d.get(cuMemRetainAllocationHandle, p)
	return MemHandle(h), d.at(p, err)
}

func (d *libcuda) MemExportToShareableHandle(h MemHandle) (fd int, err error) {
	return d.getInt(cuMemExportToShareableHandle, uintptr(h), handlePosixFD, 0)
}

func (d *libcuda) MemImportFromShareableHandle(fd int) (MemHandle, error) {
	h, err := d.get(cuMemImportFromShareableHandle, uintptr(fd), handlePosixFD)
	return MemHandle(h), detail(err, "file descriptor %d", fd)
}

func (d *libcuda) MemGetHandleForAddressRange(p uintptr, n int) (fd int, err error) {
	fd, err = d.getInt(cuMemGetHandleForAddressRange, p, uintptr(n), rangeDMABuf, 0)
	return fd, d.at(p, err)
}
