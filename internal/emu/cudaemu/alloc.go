// Allocations: memory of a device, pinned and registered host memory, and the attributes of pointers to them.

package cudaemu

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

func (m *Machine) MemGetInfo() (free, total int, err error) {
	c := m.call("cuMemGetInfo", &err)
	defer c.end()
	c.beginIn()
	d := c.ctx.dev
	return d.Memory - d.used, d.Memory, nil
}

func (m *Machine) MemAlloc(n int) (_ uintptr, err error) {
	c := m.call("cuMemAlloc", &err)
	defer c.end()
	c.beginIn()
	c.unsafe()
	c.refuse(n <= 0, cuda.ErrInvalidValue, "%d bytes", n)
	return uintptr(c.allocate(c.ctx, regionAlloc, n).addr), nil
}

// allocate is new memory of a context's device.
func (c *call) allocate(x *context, kind regionKind, n int) *region {
	d := x.dev
	r := &region{kind: kind, size: uint64(n), dev: d, ctx: x}
	if r.cost() > d.Memory-d.used {
		c.fail(cuda.ErrOutOfMemory, "%d bytes asked for, %d of %d free", n, d.Memory-d.used, d.Memory)
	}
	var err error
	r.chunk, err = newChunk(label{id: hash("", c.id, c.serial+1), size: uint64(n), device: d.UUID, kind: chunkAlloc},
		!c.cfg.Plain && kind != regionGlobal)
	c.system(err)
	r.addr = c.regions.address(r.size, kind == regionOrdered)
	if kind == regionOrdered {
		r.chunk.gone().Store(weakmem.NotYet)
	}
	if err := c.add(r, r.chunk.data, r.chunk.written); err != nil {
		r.chunk.close()
		c.fail(cuda.ErrUnknown, "%v", err)
	}
	d.used += r.cost()
	c.stick(r)
	return r
}

// system fails the call if the operating system has failed.
func (c *call) system(err error) {
	c.refuse(outOfMemory(err), cuda.ErrOutOfMemory, "%v", err)
	c.check(err, cuda.ErrOperatingSystem)
}

func (m *Machine) MemFree(p uintptr) error {
	return m.giveBack("cuMemFree", p, regionAlloc, true, "was not given by cuMemAlloc or is freed already")
}

// giveBack frees the region of a kind that begins at p. A null p is ignored if
// nullable. reason is the text of the error if no such region begins at p.
func (m *Machine) giveBack(name string, p uintptr, kind regionKind, nullable bool, reason string) (err error) {
	c := m.call(name, &err)
	defer c.end()
	c.beginIn()
	if nullable && p == 0 {
		return nil
	}
	c.unsafe()
	r := m.regions.find(uint64(p))
	if r != nil && r.kind == regionOrdered && kind == regionAlloc && r.addr == uint64(p) {
		c.freeOrdered(r)
		return nil
	}
	c.refuse(r == nil || r.kind != kind || r.freed || r.addr != uint64(p), cuda.ErrInvalidValue, "%#x %s", p, reason)
	c.free(r)
	return nil
}

// free waits for the work of the owning context, as hardware does, and drops r.
func (c *call) free(r *region) {
	defer func() {
		if !r.ctx.destroyed && c.regions.find(r.addr) == r {
			c.drop(r)
		}
	}()
	c.awaitAlone(r.ctx)
}

func (m *Machine) MemGetAddressRange(p uintptr) (base uintptr, n int, err error) {
	c := m.call("cuMemGetAddressRange", &err)
	defer c.end()
	c.beginIn()
	r := m.regions.find(uint64(p))
	c.refuse(r == nil, cuda.ErrNotFound, "%#x is not memory that the driver knows", p)
	return uintptr(r.addr), int(r.size), nil
}

func (m *Machine) MemHostAlloc(n int, flags cuda.HostAllocFlags) (_ uintptr, err error) {
	c := m.call("cuMemHostAlloc", &err)
	defer c.end()
	c.beginIn()
	c.unsafe()
	c.refuse(n < 0 || flags&^7 != 0, cuda.ErrInvalidValue, "%d bytes, flags %#x", n, flags)
	if n == 0 {
		return 0, nil
	}
	b, err := hostPages(n)
	c.system(err)
	r := &region{kind: regionHost, addr: addressOf(b), size: uint64(n), ctx: c.ctx, pages: b, flags: uint32(flags)}
	if err := m.add(r, b, nil); err != nil {
		freeHostPages(b)
		c.fail(cuda.ErrUnknown, "%v", err)
	}
	return uintptr(r.addr), nil
}

func (m *Machine) MemFreeHost(p uintptr) error {
	return m.giveBack("cuMemFreeHost", p, regionHost, true, "was not given by cuMemHostAlloc or is freed already")
}

// MemHostGetFlags are the flags of pinned memory. Devices reach all of it, with CU_MEMHOSTALLOC_DEVICEMAP or without.
func (m *Machine) MemHostGetFlags(p uintptr) (_ uint32, err error) {
	c := m.call("cuMemHostGetFlags", &err)
	defer c.end()
	c.beginIn()
	r := m.regions.find(uint64(p))
	if r == nil || r.kind != regionHost && r.kind != regionRegistered {
		c.fail(cuda.ErrInvalidValue, "%#x is not pinned memory of the host", p)
	}
	return r.flags | uint32(cuda.HostAllocMapped), nil
}

func (m *Machine) MemHostRegister(p uintptr, n int, flags cuda.HostRegisterFlags) (err error) {
	c := m.call("cuMemHostRegister", &err)
	defer c.end()
	c.beginIn()
	c.unsafe()
	if p == 0 || n <= 0 || flags&^3 != 0 || uint64(p) >= deviceAddresses {
		c.fail(cuda.ErrInvalidValue, "%d bytes at %#x, flags %#x", n, p, flags)
	}
	switch r := m.regions.overlap(uint64(p), uint64(n)); {
	case r == nil:
	case r.kind == regionRegistered:
		c.fail(cuda.ErrHostMemoryAlreadyRegistered, "%d bytes at %#x", n, p)
	default:
		c.fail(cuda.ErrInvalidValue, "%d bytes at %#x are memory of %s", n, p, regionNames[r.kind])
	}
	r := &region{kind: regionRegistered, addr: uint64(p), size: uint64(n), ctx: c.ctx, flags: uint32(flags)}
	c.check(m.add(r, hostBytes(p, n), nil), cuda.ErrUnknown)
	return nil
}

func (m *Machine) MemHostUnregister(p uintptr) (err error) {
	c := m.call("cuMemHostUnregister", &err)
	defer c.end()
	c.beginIn()
	c.unsafe()
	r := m.regions.find(uint64(p))
	c.refuse(r == nil, cuda.ErrHostMemoryNotRegistered, "%#x", p)
	if r.kind != regionRegistered || r.addr != uint64(p) {
		c.fail(cuda.ErrInvalidValue, "%#x is not the beginning of registered memory, but within %s", p,
			regionNames[r.kind])
	}
	c.free(r)
	return nil
}

func (m *Machine) MemHostGetDevicePointer(p uintptr) (_ uintptr, err error) {
	c := m.call("cuMemHostGetDevicePointer", &err)
	defer c.end()
	c.beginIn()
	r := m.regions.find(uint64(p))
	c.refuse(r == nil || r.dev != nil, cuda.ErrInvalidValue, "%#x is not pinned host memory", p)
	return p, nil
}

// Attributes of pointers that programs of others ask for: the address for kernels, and that for the host.
const (
	pointerDevice cuda.PointerAttribute = 3
	pointerHost   cuda.PointerAttribute = 4
)

func (m *Machine) PointerGetAttribute(a cuda.PointerAttribute, p uintptr) (_ uint64, err error) {
	c := m.call("cuPointerGetAttribute", &err)
	defer c.end()
	c.begin()
	r := c.known(p)
	switch a {
	case cuda.PointerContext:
		if r.ctx == nil {
			return 0, nil
		}
		return uint64(r.ctx.handle), nil
	case cuda.PointerMemoryType:
		if r.dev == nil {
			return cuda.MemoryTypeHost, nil
		}
		return cuda.MemoryTypeDevice, nil
	case pointerDevice, pointerHost:
		c.refuse(a == pointerHost && r.dev != nil, cuda.ErrInvalidValue, "attribute %d is not emulated", a)
		return uint64(p), nil
	case cuda.PointerSyncMemops:
		return uint64(boolInt(r.sync)), nil
	case cuda.PointerBufferID:
		return r.id, nil
	case cuda.PointerIsManaged:
	case cuda.PointerDeviceOrdinal:
		if r.dev == nil {
			return uint64(c.number(r.ctx.dev)), nil
		}
		return uint64(c.number(r.dev)), nil
	case cuda.PointerLegacyIPC:
		return uint64(boolInt(r.kind == regionAlloc && sharing)), nil
	case cuda.PointerRangeStart:
		start, _ := m.rangeOf(r)
		return start, nil
	case cuda.PointerRangeSize:
		_, n := m.rangeOf(r)
		return n, nil
	default:
		c.fail(cuda.ErrInvalidValue, "attribute %d is not emulated", a)
	}
	return 0, nil
}

// rangeOf is the range of addresses that memory belongs to: of a mapping, all
// that was reserved.
func (m *Machine) rangeOf(r *region) (start, n uint64) {
	if r.kind == regionMapping {
		return m.virtual.reservation(r.addr)
	}
	return r.addr, r.size
}

func (m *Machine) PointerSetSyncMemops(p uintptr, on bool) (err error) {
	c := m.call("cuPointerSetAttribute", &err)
	defer c.end()
	c.beginIn()
	c.known(p).sync = on
	return nil
}
