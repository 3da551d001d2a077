package cuda

import (
	"bytes"
	"unsafe"
)

func (d *libcuda) DeviceGetUuid(dev Device) ([16]byte, error) {
	var u [16]byte
	err := d.callPtr(cuDeviceGetUuid, uintptr(unsafe.Pointer(&u)), uintptr(dev))
	return u, err
}

// getText is the text that a function of (char *, int, CUdevice) writes.
func (d *libcuda) getText(s symbol, dev Device) (string, error) {
	var b [256]byte
	if err := d.callPtr(s, uintptr(unsafe.Pointer(&b)), uintptr(len(b)), uintptr(dev)); err != nil {
		return "", err
	}
	n := bytes.IndexByte(b[:], 0)
	if n < 0 {
		n = len(b)
	}
	return string(b[:n]), nil
}
