package cuda

import "unsafe"

func (d *libcuda) MemcpyHtoD(dst uintptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	err := d.callPtr(cuMemcpyHtoD, dst, uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)))
	return d.set(dst, len(src), err)
}

func (d *libcuda) MemcpyDtoH(dst []byte, src uintptr) error {
	if len(dst) == 0 {
		return nil
	}
	err := d.callPtr(cuMemcpyDtoH, uintptr(unsafe.Pointer(&dst[0])), src, uintptr(len(dst)))
	return d.set(src, len(dst), err)
}

func (d *libcuda) PointerSetSyncMemops(p uintptr, on bool) error {
	var v uint32
	if on {
		v = 1
	}
	return d.at(p, d.callPtr(cuPointerSetAttribute, uintptr(unsafe.Pointer(&v)), uintptr(PointerSyncMemops), p))
}
