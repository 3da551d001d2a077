package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

// virtualMemory is the state of the virtual-memory API.
type virtualMemory struct {
	addressPool
	handles  map[cuda.MemHandle]*physical
	reserved map[uint64]reservation // by address
}

// reservation is a range of addresses.
type reservation struct {
	n  uint64
	by Caller
}

// physical is memory without an address.
type physical struct {
	chunk     *chunk
	dev       *device
	refs      int // of handles
	maps      int
	lent      int // of refs and maps, those of libraries on memory that they have not made
	shareable bool
	rdma      bool
	foreign   bool // another entry, of this process or another, answers for it
	kept      bool // see Keep
	by        Caller
}

const (
	granularity = 2 << 20
	hostPage    = 4096
)

func (v *virtualMemory) init(base uint64, fresh bool) {
	v.addressPool = addressPool{next: virtualAddresses + base%1024<<32, sizes: map[uint64]uint64{}, fresh: fresh}
	v.handles, v.reserved = map[cuda.MemHandle]*physical{}, map[uint64]reservation{}
}

func (v *virtualMemory) release() {
	for _, p := range v.handles {
		p.chunk.close()
	}
}

// dropPhysical frees memory that no handle and no mapping keeps.
func (m *Machine) dropPhysical(h cuda.MemHandle, p *physical) {
	if p.refs > 0 || p.maps > 0 {
		return
	}
	delete(m.virtual.handles, h)
	m.handles.back(memHandle, uintptr(h))
	if x := m.virtual.other(p); x != nil && !p.foreign { // this process has imported it
		x.foreign, x.kept = false, p.kept
	} else if !p.foreign {
		if !p.kept { // else it lives as long as others have it mapped
			p.chunk.gone().Store(1)
		}
		p.dev.used -= int(p.chunk.label.size)
	}
	m.forget(p.chunk.label.id)
	p.chunk.close()
}

// other is another handle's entry for the same memory, nil if there is none.
func (v *virtualMemory) other(p *physical) *physical {
	for _, x := range v.handles {
		if x != p && x.chunk.label.id == p.chunk.label.id {
			return x
		}
	}
	return nil
}

func (m *Machine) MemGetAllocationGranularity(p cuda.AllocationProp, o cuda.GranularityOption) (int, error) {
	return of(m, "cuMemGetAllocationGranularity", (*call).device, p.Device, func(c *call, d *device) int {
		c.refuse(o > cuda.GranularityRecommended, cuda.ErrInvalidValue, "option %d", o)
		return granularity
	})
}

func (m *Machine) MemCreate(n int, p cuda.AllocationProp) (cuda.MemHandle, error) {
	return of(m, "cuMemCreate", (*call).device, p.Device, func(c *call, d *device) cuda.MemHandle {
		switch {
		case n <= 0 || n%granularity != 0:
			c.fail(cuda.ErrInvalidValue, "%d bytes, not a multiple of %d", n, granularity)
		case p.RDMA && !m.cfg.RDMA:
			c.fail(cuda.ErrNotSupported, "emulated memory is out of reach for network cards")
		case p.Shareable && !sharing:
			c.fail(cuda.ErrNotSupported, "emulated memory is shared between processes on Linux alone")
		case n > d.Memory-d.used:
			c.fail(cuda.ErrOutOfMemory, "%d bytes asked for, %d of %d free", n, d.Memory-d.used, d.Memory)
		}
		m.serial++
		chunk, err := newChunk(label{id: hash("virtual", m.id, m.serial), owner: m.id, size: uint64(n), device: d.UUID,
			kind: chunkVirtual}, !m.cfg.Plain)
		c.system(err)
		d.used += n
		return m.newPhysical(&physical{chunk: chunk, dev: d, refs: 1, shareable: p.Shareable, rdma: p.RDMA})
	})
}

func (m *Machine) newPhysical(p *physical) cuda.MemHandle {
	h := cuda.MemHandle(m.handles.give(memHandle))
	p.by = m.caller(p.dev)
	m.virtual.handles[h] = p
	return h
}

// physical is the memory of a handle that is still held.
func (c *call) physical(h cuda.MemHandle) *physical {
	p := c.virtual.handles[h]
	c.refuse(p == nil || p.refs == 0, cuda.ErrInvalidValue, "%#x is no allocation, or was released", uint64(h))
	return p
}

func (m *Machine) MemRelease(h cuda.MemHandle) (err error) {
	c := m.call("cuMemRelease", &err)
	defer c.end()
	c.begin()
	p := c.physical(h)
	p.refs--
	if p.lent > 0 && m.caller(p.dev).Library {
		p.lent--
	}
	m.dropPhysical(h, p)
	return nil
}

func (m *Machine) MemAddressReserve(n, align int) (_ uintptr, err error) {
	c := m.call("cuMemAddressReserve", &err)
	defer c.end()
	c.begin()
	if n <= 0 || n%granularity != 0 || align < 0 || align&(align-1) != 0 {
		c.fail(cuda.ErrInvalidValue,
			"%d bytes, alignment %d: the size is a multiple of %d, the alignment a power of two", n, align, granularity)
	}
	p := m.virtual.take(uint64(n), uint64(max(align, granularity)), 0, false)
	m.virtual.reserved[p] = reservation{uint64(n), m.caller(nil)}
	return uintptr(p), nil
}

func (m *Machine) MemAddressFree(p uintptr, n int) (err error) {
	c := m.call("cuMemAddressFree", &err)
	defer c.end()
	c.begin()
	if m.virtual.reserved[uint64(p)].n != uint64(n) || n == 0 {
		c.fail(cuda.ErrInvalidValue, "%d bytes at %#x were not reserved", n, p)
	}
	used := m.regions.overlap(uint64(p), uint64(n)) != nil
	c.refuse(used, cuda.ErrInvalidValue, "memory is mapped at %#x: unmap it first", p)
	delete(m.virtual.reserved, uint64(p))
	m.virtual.back(uint64(p))
	return nil
}

// reservation is the reserved range that an address lies in; n is 0 if there is none.
func (v *virtualMemory) reservation(p uint64) (base, n uint64) {
	for base, r := range v.reserved {
		if p >= base && p < base+r.n {
			return base, r.n
		}
	}
	return 0, 0
}

func (m *Machine) MemMap(at uintptr, n int, h cuda.MemHandle) (err error) {
	c := m.call("cuMemMap", &err)
	defer c.end()
	c.begin()
	p := c.physical(h)
	addr, size := uint64(at), uint64(n)
	base, length := m.virtual.reservation(addr)
	switch {
	case n <= 0 || n%granularity != 0 || addr%granularity != 0:
		c.fail(cuda.ErrInvalidValue, "%d bytes at %#x, not in multiples of %d", n, at, granularity)
	case size > p.chunk.label.size:
		c.fail(cuda.ErrNotSupported, "%d bytes of an allocation of %d", n, p.chunk.label.size)
	case addr+size > base+length:
		c.fail(cuda.ErrInvalidValue, "%d bytes at %#x were not reserved", n, at)
	case m.regions.overlap(addr, size) != nil:
		c.fail(cuda.ErrInvalidValue, "memory is mapped at %#x already", at)
	}
	r := &region{kind: regionMapping, addr: addr, size: size, dev: p.dev, chunk: p.chunk, handle: h, foreign: p.shareable}
	c.check(m.add(r, p.chunk.data[:n], p.chunk.written), cuda.ErrUnknown)
	p.maps++
	p.lent += boolInt(r.by.Library)
	return nil
}

// mapped are the mappings that make up exactly [p, p+n).
func (c *call) mapped(p uintptr, n int) (list []*region) {
	end := uint64(p) + uint64(n)
	for at := uint64(p); at < end; {
		r := c.regions.find(at)
		if n <= 0 || r == nil || r.kind != regionMapping || r.addr != at || r.end() > end {
			c.fail(cuda.ErrInvalidValue, "%d bytes at %#x are not whole mappings", n, p)
		}
		list = append(list, r)
		at = r.end()
	}
	c.refuse(len(list) == 0, cuda.ErrInvalidValue, "%d bytes", n)
	return list
}

func (m *Machine) MemUnmap(p uintptr, n int) (err error) {
	c := m.call("cuMemUnmap", &err)
	defer c.end()
	c.begin()
	for _, r := range c.mapped(p, n) {
		if x := r.dev.primary; x != nil { // as hardware does
			c.await(nil, x.idle)
		}
		c.refuse(c.regions.find(r.addr) != r, cuda.ErrInvalidValue, "%#x was unmapped meanwhile", p)
		m.drop(r)
		phys := m.virtual.handles[r.handle]
		phys.maps--
		phys.lent -= boolInt(r.by.Library)
		m.dropPhysical(r.handle, phys)
	}
	return nil
}

func (m *Machine) MemSetAccess(p uintptr, n int, devices ...cuda.Device) (err error) {
	c := m.call("cuMemSetAccess", &err)
	defer c.end()
	c.begin()
	list := c.mapped(p, n)
	var grant uint64
	for _, h := range devices {
		d := c.device(h)
		for _, r := range list {
			if d != r.dev && !d.canAccess(r.dev) {
				c.fail(cuda.ErrInvalidDevice, "device %d cannot access memory of device %d", d.ordinal, r.dev.ordinal)
			}
		}
		grant |= 1 << d.ordinal
	}
	for _, r := range list {
		r.granted |= grant
	}
	return nil
}

func (m *Machine) MemRetainAllocationHandle(at uintptr) (_ cuda.MemHandle, err error) {
	c := m.call("cuMemRetainAllocationHandle", &err)
	defer c.end()
	c.begin()
	r := m.regions.find(uint64(at))
	c.refuse(r == nil || r.kind != regionMapping, cuda.ErrInvalidValue, "%#x is not memory of cuMemMap", at)
	p := m.virtual.handles[r.handle]
	p.refs++
	p.lent += boolInt(m.caller(p.dev).Library)
	return r.handle, nil
}

func (m *Machine) MemExportToShareableHandle(h cuda.MemHandle) (fd int, err error) {
	c := m.call("cuMemExportToShareableHandle", &err)
	defer c.end()
	c.begin()
	p := c.physical(h)
	c.refuse(!p.shareable, cuda.ErrInvalidValue, "the allocation was not made shareable")
	fd, err = dup(p.chunk.fd)
	c.system(err)
	c.export(p.chunk)
	return fd, nil
}

// MemGetHandleForAddressRange gives the file of the memory, so a range begins where the memory does.
// What a card may write counts as written from then on, as the emulator does not see its writes.
func (m *Machine) MemGetHandleForAddressRange(p uintptr, n int) (fd int, err error) {
	c := m.call("cuMemGetHandleForAddressRange", &err)
	defer c.end()
	c.begin()
	r := m.regions.find(uint64(p))
	switch {
	case r == nil || n <= 0 || p%hostPage != 0 || n%hostPage != 0 || !r.holds(uint64(p), n):
		c.fail(cuda.ErrInvalidValue, "%d bytes at %#x are not whole pages of one allocation", n, p)
	case r.kind != regionMapping || !m.virtual.handles[r.handle].rdma:
		c.fail(cuda.ErrNotSupported, "%#x is not memory of cuMemCreate that was made for RDMA", p)
	case r.addr != uint64(p):
		c.fail(cuda.ErrNotSupported, "emulated memory is exported from its first byte on, which is at %#x", r.addr)
	}
	fd, err = dup(r.chunk.fd)
	c.system(err)
	if s, ok := m.mem.Find(r.addr); ok {
		s.Expose(0, uint64(n))
	}
	return fd, nil
}

func (m *Machine) MemImportFromShareableHandle(fd int) (_ cuda.MemHandle, err error) {
	c := m.call("cuMemImportFromShareableHandle", &err)
	defer c.end()
	c.begin()
	own, err := dup(fd)
	c.refuse(err != nil, cuda.ErrInvalidValue, "descriptor %d: %v", fd, err)
	chunk, err := openChunk(own)
	if err != nil || chunk.label.kind != chunkVirtual {
		if err == nil {
			chunk.close()
		}
		c.fail(cuda.ErrInvalidValue, "descriptor %d: %v", fd, errNoChunk)
	}
	d := m.deviceOf(chunk.label.device)
	if d == nil {
		chunk.close()
		c.fail(cuda.ErrInvalidDevice, "descriptor %d: memory of a device that this process does not have", fd)
	}
	if chunk.label.owner != m.id {
		chunk.exported = true
		m.opened++
	}
	return m.newPhysical(&physical{chunk: chunk, dev: d, refs: 1, shareable: true, foreign: true}), nil
}
