package p2p

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// pointerMemPool is CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, since CUDA 11.3.
const pointerMemPool cuda.PointerAttribute = 17

// What to do about segments that cannot be registered.
const (
	live = "register live memory of the rank's GPU"
	less = "register no more bytes than are allocated"
)

// bad is why the segment cannot be registered.
func (s *Segment) bad(err error, remedy, format string, a ...any) error {
	return &SegmentError{Rank: s.cfg.Self.Rank, Peer: -1, Reason: fmt.Sprintf(format, a...), Remedy: remedy, Err: err}
}

// inspect finds the pieces of the segment, with the context current.
func (s *Segment) inspect() error {
	switch {
	case s.cfg.Bytes <= 0:
		return s.bad(nil, live, "%d bytes", s.cfg.Bytes)
	case s.offer.Addr == 0:
		return s.bad(nil, live, "the address is null")
	}
	if err := s.ours(); err != nil {
		return err
	}
	if err := s.cut(); err != nil {
		return err
	}
	if s.offer.NoPeer == "" {
		s.prepare()
	}
	return nil
}

// ours finds out whether the segment begins in memory of the rank's GPU, and whether other GPUs may
// reach memory of that kind.
func (s *Segment) ours() error {
	d, addr := s.cfg.Driver, uintptr(s.offer.Addr)
	kind, err := d.PointerGetAttribute(cuda.PointerMemoryType, addr)
	if err != nil {
		return s.bad(err, live, "%#x is no memory of the driver, so it was freed, or is the program's own", addr)
	}
	if kind != cuda.MemoryTypeDevice {
		return s.bad(nil, live, "%#x is host memory", addr)
	}
	ordinal, err := d.PointerGetAttribute(cuda.PointerDeviceOrdinal, addr)
	if err != nil {
		return s.bad(err, live, "device of %#x", addr)
	}
	dev, err := d.DeviceGet(int(ordinal))
	if err != nil || dev != s.cfg.Device {
		return s.bad(err, live, "%#x is memory of device %d, but the rank's GPU is device %d", addr, ordinal, s.cfg.Device)
	}
	managed, err := d.PointerGetAttribute(cuda.PointerIsManaged, addr)
	if err != nil {
		return s.bad(err, live, "kind of %#x", addr)
	}
	if managed != 0 && s.offer.NoPeer == "" {
		s.offer.NoPeer = "managed memory"
	}
	if pool, err := d.PointerGetAttribute(pointerMemPool, addr); err == nil && pool != 0 && s.offer.NoPeer == "" {
		s.offer.NoPeer = "memory of a pool (cudaMallocAsync)"
	}
	return nil
}

// cut finds the allocations that the segment is made of.
func (s *Segment) cut() error {
	d, addr, n := s.cfg.Driver, uintptr(s.offer.Addr), s.cfg.Bytes
	legacy, err := d.PointerGetAttribute(cuda.PointerLegacyIPC, addr)
	if err != nil {
		return s.bad(err, live, "kind of %#x", addr)
	}
	for at, end := addr, addr+uintptr(n); at < end; {
		base, size, err := d.MemGetAddressRange(at)
		if err != nil {
			return s.bad(err, less, "%d of %d bytes at %#x are allocated", at-addr, n, addr)
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
			return s.bad(nil, less, "%d of %d bytes at %#x are of one allocation", base+uintptr(size)-addr, n, addr)
		}
		s.offer.Pieces = append(s.offer.Pieces, p)
		at = base + uintptr(size)
	}
	return nil
}

// prepare makes what other processes need, or finds that they cannot have it.
func (s *Segment) prepare() {
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
