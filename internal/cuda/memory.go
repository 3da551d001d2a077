// Memory of the real driver; memory_unsafe.go has the calls that get memory of Go.

package cuda

func (d *libcuda) MemGetInfo() (free, total int, err error) {
	f, t, err := d.get2(cuMemGetInfo)
	return int(f), int(t), err
}

func (d *libcuda) MemAlloc(n int) (uintptr, error) {
	p, err := d.get(cuMemAlloc, uintptr(n))
	return p, detail(err, "%d bytes", n)
}

func (d *libcuda) MemFree(p uintptr) error { return d.at(p, d.call(cuMemFree, p)) }

func (d *libcuda) MemGetAddressRange(p uintptr) (base uintptr, n int, err error) {
	b, s, err := d.get2(cuMemGetAddressRange, p)
	return b, int(s), d.at(p, err)
}

func (d *libcuda) MemHostAlloc(n int, flags HostAllocFlags) (uintptr, error) {
	p, err := d.get(cuMemHostAlloc, uintptr(n), uintptr(flags))
	return p, detail(err, "%d bytes of the host", n)
}

func (d *libcuda) MemFreeHost(p uintptr) error { return d.at(p, d.call(cuMemFreeHost, p)) }

func (d *libcuda) MemHostRegister(p uintptr, n int, flags HostRegisterFlags) error {
	return detail(d.call(cuMemHostRegister, p, uintptr(n), uintptr(flags)), "address %#x, %d bytes", p, n)
}

func (d *libcuda) MemHostUnregister(p uintptr) error { return d.at(p, d.call(cuMemHostUnregister, p)) }

func (d *libcuda) MemHostGetDevicePointer(p uintptr) (uintptr, error) {
	q, err := d.get(cuMemHostGetDevicePointer, p, 0)
	return q, d.at(p, err)
}

func (d *libcuda) MemcpyDtoD(dst, src uintptr, n int) error {
	return d.copied(dst, src, n, d.call(cuMemcpyDtoD, dst, src, uintptr(n)))
}

func (d *libcuda) MemcpyAsync(dst, src uintptr, n int, s Stream) error {
	return d.copied(dst, src, n, d.call(cuMemcpyAsync, dst, src, uintptr(n), uintptr(s)))
}

func (d *libcuda) MemcpyPeerAsync(dst uintptr, dstCtx Context, src uintptr, srcCtx Context, n int, s Stream) error {
	return d.copied(dst, src, n, d.call(cuMemcpyPeerAsync, dst, uintptr(dstCtx), src, uintptr(srcCtx), uintptr(n),
		uintptr(s)))
}

func (d *libcuda) MemsetD8(p uintptr, v byte, n int) error {
	return d.set(p, n, d.call(cuMemsetD8, p, uintptr(v), uintptr(n)))
}

func (d *libcuda) MemsetD8Async(p uintptr, v byte, n int, s Stream) error {
	return d.set(p, n, d.call(cuMemsetD8Async, p, uintptr(v), uintptr(n), uintptr(s)))
}

func (d *libcuda) MemsetD32Async(p uintptr, v uint32, words int, s Stream) error {
	return d.set(p, 4*words, d.call(cuMemsetD32Async, p, uintptr(v), uintptr(words), uintptr(s)))
}

func (d *libcuda) PointerGetAttribute(a PointerAttribute, p uintptr) (uint64, error) {
	v, err := d.get(cuPointerGetAttribute, uintptr(a), p)
	return uint64(v), d.at(p, err)
}
