// Allocations: memory of a device, pinned and registered host memory, and the attributes of pointers to them.

package cudaemu

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

func (m *Machine) MemGetInfo() (free, total int, err error) {
	c, err := m.beginIn("cuMemGetInfo")
	if err != nil {
		return 0, 0, err
	}
	defer c.end()
	d := c.ctx.dev
	return d.Memory - d.used, d.Memory, nil
}

func (m *Machine) MemAlloc(n int) (uintptr, error) {
	c, err := m.beginIn("cuMemAlloc")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if err := c.unsafe(); err != nil {
		return 0, err
	}
	if n <= 0 {
		return 0, c.fail(cuda.ErrInvalidValue, "%d bytes", n)
	}
	r, err := c.allocate(c.ctx, regionAlloc, n)
	if err != nil {
		return 0, err
	}
	return uintptr(r.addr), nil
}

// allocate is new memory of a context's device.
func (c *call) allocate(x *context, kind regionKind, n int) (*region, error) {
	d := x.dev
	r := &region{kind: kind, size: uint64(n), dev: d, ctx: x}
	if r.cost() > d.Memory-d.used {
		return nil, c.fail(cuda.ErrOutOfMemory, "%d bytes asked for, %d of %d free", n, d.Memory-d.used, d.Memory)
	}
	var err error
	r.chunk, err = newChunk(label{id: hash("", c.id, c.serial+1), size: uint64(n), device: d.UUID, kind: chunkAlloc},
		!c.cfg.Plain && kind != regionGlobal)
	if err != nil {
		return nil, c.system(err)
	}
	r.addr = c.regions.address(r.size, kind == regionOrdered)
	if kind == regionOrdered {
		r.chunk.gone().Store(weakmem.NotYet)
	}
	if err := c.add(r, r.chunk.data, r.chunk.written); err != nil {
		r.chunk.close()
		return nil, c.fail(cuda.ErrUnknown, "%v", err)
	}
	d.used += r.cost()
	return r, c.stick(r)
}

// system is the driver's error for an error of the operating system.
func (c *call) system(err error) error {
	if outOfMemory(err) {
		return c.fail(cuda.ErrOutOfMemory, "%v", err)
	}
	return c.fail(cuda.ErrOperatingSystem, "%v", err)
}

func (m *Machine) MemFree(p uintptr) error {
	return m.giveBack("cuMemFree", p, regionAlloc, true, "was not given by cuMemAlloc or is freed already")
}

// giveBack frees the region of a kind that begins at p. A null p is ignored if
// nullable. reason is the text of the error if no such region begins at p.
func (m *Machine) giveBack(name string, p uintptr, kind regionKind, nullable bool, reason string) error {
	c, err := m.beginIn(name)
	if err != nil {
		return err
	}
	defer c.end()
	if err := c.unsafe(); err != nil || nullable && p == 0 {
		return err
	}
	r := m.regions.find(uint64(p))
	if r != nil && r.kind == regionOrdered && kind == regionAlloc && r.addr == uint64(p) {
		return c.freeOrdered(r)
	}
	if r == nil || r.kind != kind || r.freed || r.addr != uint64(p) {
		return c.fail(cuda.ErrInvalidValue, "%#x %s", p, reason)
	}
	return c.free(r)
}

// free waits for the work of the owning context, as hardware does, and drops r.
func (c *call) free(r *region) error {
	err := c.awaitAlone(r.ctx)
	if !r.ctx.destroyed && c.regions.find(r.addr) == r {
		c.drop(r)
	}
	return err
}

func (m *Machine) MemGetAddressRange(p uintptr) (base uintptr, n int, err error) {
	c, err := m.beginIn("cuMemGetAddressRange")
	if err != nil {
		return 0, 0, err
	}
	defer c.end()
	r := m.regions.find(uint64(p))
	if r == nil {
		return 0, 0, c.fail(cuda.ErrNotFound, "%#x is not memory that the driver knows", p)
	}
	return uintptr(r.addr), int(r.size), nil
}

func (m *Machine) MemHostAlloc(n int, flags cuda.HostAllocFlags) (uintptr, error) {
	c, err := m.beginIn("cuMemHostAlloc")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if err := c.unsafe(); err != nil {
		return 0, err
	}
	if n < 0 || flags&^7 != 0 {
		return 0, c.fail(cuda.ErrInvalidValue, "%d bytes, flags %#x", n, flags)
	}
	if n == 0 {
		return 0, nil
	}
	b, err := hostPages(n)
	if err != nil {
		return 0, c.system(err)
	}
	r := &region{kind: regionHost, addr: addressOf(b), size: uint64(n), ctx: c.ctx, pages: b}
	if err := m.add(r, b, nil); err != nil {
		freeHostPages(b)
		return 0, c.fail(cuda.ErrUnknown, "%v", err)
	}
	return uintptr(r.addr), nil
}

func (m *Machine) MemFreeHost(p uintptr) error {
	return m.giveBack("cuMemFreeHost", p, regionHost, true, "was not given by cuMemHostAlloc or is freed already")
}

func (m *Machine) MemHostRegister(p uintptr, n int, flags cuda.HostRegisterFlags) error {
	c, err := m.beginIn("cuMemHostRegister")
	if err != nil {
		return err
	}
	defer c.end()
	if err := c.unsafe(); err != nil {
		return err
	}
	if p == 0 || n <= 0 || flags&^3 != 0 || uint64(p) >= deviceAddresses {
		return c.fail(cuda.ErrInvalidValue, "%d bytes at %#x, flags %#x", n, p, flags)
	}
	switch r := m.regions.overlap(uint64(p), uint64(n)); {
	case r == nil:
	case r.kind == regionRegistered:
		return c.fail(cuda.ErrHostMemoryAlreadyRegistered, "%d bytes at %#x", n, p)
	default:
		return c.fail(cuda.ErrInvalidValue, "%d bytes at %#x are memory of %s", n, p, regionNames[r.kind])
	}
	r := &region{kind: regionRegistered, addr: uint64(p), size: uint64(n), ctx: c.ctx}
	if err := m.add(r, hostBytes(p, n), nil); err != nil {
		return c.fail(cuda.ErrUnknown, "%v", err)
	}
	return nil
}

func (m *Machine) MemHostUnregister(p uintptr) error {
	c, err := m.beginIn("cuMemHostUnregister")
	if err != nil {
		return err
	}
	defer c.end()
	if err := c.unsafe(); err != nil {
		return err
	}
	r := m.regions.find(uint64(p))
	if r == nil {
		return c.fail(cuda.ErrHostMemoryNotRegistered, "%#x", p)
	}
	if r.kind != regionRegistered || r.addr != uint64(p) {
		return c.fail(cuda.ErrInvalidValue, "%#x is not the beginning of registered memory, but within %s", p,
			regionNames[r.kind])
	}
	return c.free(r)
}

func (m *Machine) MemHostGetDevicePointer(p uintptr) (uintptr, error) {
	c, err := m.beginIn("cuMemHostGetDevicePointer")
	if err != nil {
		return 0, err
	}
	defer c.end()
	r := m.regions.find(uint64(p))
	if r == nil || r.dev != nil {
		return 0, c.fail(cuda.ErrInvalidValue, "%#x is not pinned host memory", p)
	}
	return p, nil
}

// Attributes of pointers that programs of others ask for: the address for kernels, and that for the host.
const (
	pointerDevice cuda.PointerAttribute = 3
	pointerHost   cuda.PointerAttribute = 4
)

func (m *Machine) PointerGetAttribute(a cuda.PointerAttribute, p uintptr) (uint64, error) {
	c, err := m.begin("cuPointerGetAttribute")
	if err != nil {
		return 0, err
	}
	defer c.end()
	r := m.regions.find(uint64(p))
	if r == nil {
		return 0, c.fail(cuda.ErrInvalidValue, "%#x is not memory that the driver knows", p)
	}
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
		if a == pointerHost && r.dev != nil {
			break
		}
		return uint64(p), nil
	case cuda.PointerSyncMemops:
		return uint64(boolInt(r.sync)), nil
	case cuda.PointerBufferID:
		return r.id, nil
	case cuda.PointerIsManaged:
		return 0, nil
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
	}
	return 0, c.fail(cuda.ErrInvalidValue, "attribute %d is not emulated", a)
}

// rangeOf is the range of addresses that memory belongs to: of a mapping, all
// that was reserved.
func (m *Machine) rangeOf(r *region) (start, n uint64) {
	if r.kind == regionMapping {
		return m.virtual.reservation(r.addr)
	}
	return r.addr, r.size
}

func (m *Machine) PointerSetSyncMemops(p uintptr, on bool) error {
	c, err := m.beginIn("cuPointerSetAttribute")
	if err != nil {
		return err
	}
	defer c.end()
	r := m.regions.find(uint64(p))
	if r == nil {
		return c.fail(cuda.ErrInvalidValue, "%#x is not memory that the driver knows", p)
	}
	r.sync = on
	return nil
}
