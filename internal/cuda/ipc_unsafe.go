package cuda

import (
	"runtime"
	"unsafe"
)

// lazyEnablePeerAccess is the only flag there is, and must be given.
const lazyEnablePeerAccess = 1

func (d *libcuda) IpcGetMemHandle(p uintptr) (IPCHandle, error) {
	var h IPCHandle
	err := d.callPtr(cuIpcGetMemHandle, uintptr(unsafe.Pointer(&h)), p)
	return h, d.at(p, err)
}

func (d *libcuda) IpcOpenMemHandle(h IPCHandle) (uintptr, error) {
	return d.openIPC(cuIpcOpenMemHandle, h, lazyEnablePeerAccess)
}

func (d *libcuda) IpcCloseMemHandle(p uintptr) error { return d.at(p, d.call(cuIpcCloseMemHandle, p)) }

func (d *libcuda) IpcGetEventHandle(e Event) (IPCHandle, error) {
	var h IPCHandle
	err := d.callPtr(cuIpcGetEventHandle, uintptr(unsafe.Pointer(&h)), uintptr(e))
	return h, err
}

func (d *libcuda) IpcOpenEventHandle(h IPCHandle) (Event, error) {
	e, err := d.openIPC(cuIpcOpenEventHandle, h, 0)
	return Event(e), err
}

// openIPC calls a function of (void **out, struct of 64 bytes by value, flags).
// On amd64 a struct of that size is passed on the stack, and the other arguments take
// the integer registers as if it were not there. On arm64 the caller copies it and
// passes the address of the copy.
func (d *libcuda) openIPC(s symbol, h IPCHandle, flags uintptr) (uintptr, error) {
	var out uintptr
	var err error
	if runtime.GOARCH == "amd64" {
		w := *(*[8]uintptr)(unsafe.Pointer(&h))
		err = d.callPtr(s, uintptr(unsafe.Pointer(&out)), flags, 0, 0, 0, 0,
			w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])
	} else {
		err = d.callPtr(s, uintptr(unsafe.Pointer(&out)), uintptr(unsafe.Pointer(&h)), flags)
	}
	return out, err
}
