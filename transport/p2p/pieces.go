package p2p

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// pointerMemPool is CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, since CUDA 11.3.
const pointerMemPool cuda.PointerAttribute = 17

// inspect finds the pieces of the span, with the context current.
func (s *Span) inspect() error {
	d, addr, n := s.cfg.Driver, uintptr(s.offer.Addr), s.cfg.Bytes
	bad := func(err error, remedy, format string, a ...any) error {
		return &SpanError{Rank: s.cfg.Self.Rank, Peer: -1, Reason: fmt.Sprintf(format, a...), Remedy: remedy, Err: err}
	}
	const live = "register live memory of the rank's GPU"
	switch {
	case n <= 0:
		return bad(nil, live, "%d bytes", n)
	case addr == 0:
		return bad(nil, live, "the address is null")
	}
	kind, err := d.PointerGetAttribute(cuda.PointerMemoryType, addr)
	if err != nil {
		return bad(err, live, "%#x is no memory of the driver, so it was freed, or is the program's own", addr)
	}
	if kind != cuda.MemoryTypeDevice {
		return bad(nil, live, "%#x is host memory", addr)
	}
	dev, err := d.PointerGetAttribute(cuda.PointerDeviceOrdinal, addr)
	if err != nil {
		return bad(err, live, "device of %#x", addr)
	}
	if cuda.Device(dev) != s.cfg.Device {
		return bad(nil, live, "%#x is memory of device %d, but the rank's GPU is device %d", addr, dev, s.cfg.Device)
	}
	managed, err := d.PointerGetAttribute(cuda.PointerIsManaged, addr)
	if err != nil {
		return bad(err, live, "kind of %#x", addr)
	}
	if managed != 0 && s.offer.NoPeer == "" {
		s.offer.NoPeer = "managed memory"
	}
	if pool, err := d.PointerGetAttribute(pointerMemPool, addr); err == nil && pool != 0 && s.offer.NoPeer == "" {
		s.offer.NoPeer = "memory of a pool (cudaMallocAsync)"
	}
	legacy, err := d.PointerGetAttribute(cuda.PointerLegacyIPC, addr)
	if err != nil {
		return bad(err, live, "kind of %#x", addr)
	}
	for at, end := addr, addr+uintptr(n); at < end; {
		base, size, err := d.MemGetAddressRange(at)
		if err != nil {
			return bad(err, "register no more bytes than are allocated", "%d of %d bytes at %#x are allocated", at-addr, n, addr)
		}
		p := Piece{Addr: uint64(base), Bytes: size}
		if id, err := d.PointerGetAttribute(cuda.PointerBufferID, at); err == nil {
			p.ID = id
		}
		if legacy == 0 {
			if h, err := d.MemRetainAllocationHandle(at); err == nil {
				p.Mapped = true
				s.handles = append(s.handles, h)
			}
		}
		if !p.Mapped && (base+uintptr(size) < end || len(s.offer.Pieces) > 0) {
			return bad(nil, "register no more bytes than are allocated", "%d of %d bytes at %#x are of one allocation", base+uintptr(size)-addr, n, addr)
		}
		s.offer.Pieces = append(s.offer.Pieces, p)
		at = base + uintptr(size)
	}
	if s.offer.NoPeer == "" {
		s.prepare()
	}
	return nil
}

// prepare makes what other processes need, or finds that they cannot have it.
func (s *Span) prepare() {
	d := s.cfg.Driver
	if len(s.handles) == 0 {
		p := &s.offer.Pieces[0]
		h, err := d.IpcGetMemHandle(uintptr(p.Addr))
		if err != nil {
			s.offer.NoIPC = err.Error()
			return
		}
		p.Handle = h[:]
		return
	}
	for _, h := range s.handles {
		fd, err := d.MemExportToShareableHandle(h)
		if err != nil {
			s.offer.NoIPC = fmt.Sprintf("its virtual memory was not made to be shared as a file: %v", err)
			return
		}
		closeFile(fd)
	}
}
