package cudaemu

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A region is a range of mapped addresses.
type region struct {
	kind   regionKind
	addr   uint64
	size   uint64
	dev    *device  // nil for host memory
	ctx    *context // that owns it; nil for mappings of the virtual-memory API
	chunk  *chunk   // nil for host memory
	pages  []byte   // of MemHostAlloc
	flags  uint32   // of MemHostAlloc and MemHostRegister
	id     uint64   // PointerBufferID
	offset int      // of its first byte in the device's memory, if that has bad cells
	sync   bool
	// devices that may always touch it, as bits
	granted uint64
	handle  cuda.MemHandle // of a mapping
	foreign bool           // others write it too
	kept    bool           // see Keep
	freed   bool           // by MemFreeAsync, to which its stream has not come yet
	by      Caller
}

type regionKind uint8

const (
	regionAlloc regionKind = iota
	regionGlobal
	regionOpened // of another process
	regionMapping
	regionHost
	regionRegistered
	regionHeap    // of malloc in a kernel
	regionOrdered // of MemAllocAsync
)

var regionNames = [...]string{"MemAlloc", "a variable of a module", "IpcOpenMemHandle", "MemMap", "MemHostAlloc",
	"MemHostRegister", "malloc in a kernel", "MemAllocAsync"}

func (r *region) end() uint64 { return r.addr + r.size }
func (r *region) holds(p uint64, n int) bool {
	return p >= r.addr && p <= r.end() && uint64(n) <= r.end()-p
}

// release gives the memory back to the system.
func (r *region) release() {
	switch {
	case r.kind == regionMapping: // the chunk belongs to the handle
	case r.chunk != nil:
		r.chunk.close()
	case r.pages != nil:
		freeHostPages(r.pages)
	}
}

// regions are all regions of a machine.
type regions struct {
	sorted []*region
	addressPool
}

// Device addresses begin above all that operating systems give to processes (47
// bits on amd64, 48 on arm64, and Go's heap may be anywhere in them).
const (
	deviceAddresses  = 1 << 48
	virtualAddresses = 1<<48 + 1<<47
	gap              = 1 << 24 // between allocations, unmapped: as much as an allocation takes, and at least this
)

// addressPool are ranges of addresses that are given to memory.
type addressPool struct {
	next  uint64
	sizes map[uint64]uint64 // bytes at each address that was ever given
	free  []uint64          // the one freed last is at the end
	fresh bool              // see Config.FreshAddresses
}

// take is the range freed last that holds n bytes, or a new one. Its address is
// a multiple of align, plus odd.
func (g *addressPool) take(n, align, odd uint64, fresh bool) uint64 {
	for i, a := range slices.Backward(g.free) {
		if !fresh && g.sizes[a] >= n && a%align == odd {
			g.free = slices.Delete(g.free, i, i+1)
			return a
		}
	}
	a := roundUp(g.next+max(gap, n), align) + odd
	g.next = a + n
	if !g.fresh && !fresh {
		g.sizes[a] = n
	}
	return a
}

// back takes a range that is no longer used.
func (g *addressPool) back(addr uint64) {
	if !g.fresh {
		g.free = append(g.free, addr)
	}
}

func (g *regions) init(offset uint64, fresh bool) {
	g.addressPool = addressPool{next: deviceAddresses + offset%1024<<32, sizes: map[uint64]uint64{}, fresh: fresh}
}

// address is one for n bytes, aligned to 256 bytes and no more. A fresh one was never given.
func (g *regions) address(n uint64, fresh bool) uint64 { return g.take(n, 512, 256, fresh) }

// find is the region that the address lies in.
func (g *regions) find(p uint64) *region {
	i, ok := slices.BinarySearchFunc(g.sorted, p, func(r *region, p uint64) int { return cmp.Compare(r.addr, p) })
	if !ok {
		i--
	}
	if i >= 0 && p < g.sorted[i].end() {
		return g.sorted[i]
	}
	return nil
}

// overlap is a region that lies in [p, p+n), nil if there is none.
func (g *regions) overlap(p, n uint64) *region {
	i := slices.IndexFunc(g.sorted, func(r *region) bool { return p < r.end() && r.addr < p+n })
	if i < 0 {
		return nil
	}
	return g.sorted[i]
}

// hole is weakmem.Allocation.Hole of the region.
func (r *region) hole() func(off, n uint64) bool {
	if r.chunk == nil {
		return nil
	}
	return r.chunk.hole
}

// add maps the region for kernels and copies.
func (m *Machine) add(r *region, data []byte, written []uint64) error {
	m.serial++
	r.id = m.serial
	r.by = m.caller(r.dev)
	device := -1
	if r.dev != nil {
		device = r.dev.ordinal
	}
	if r.kind == regionMapping { // nobody has access before MemSetAccess
		device += maxDevices
	}
	err := m.mem.Map(weakmem.Allocation{Addr: r.addr, Data: data, Written: written, Device: device, Foreign: r.foreign,
		Gone: r.gone(), Hole: r.hole(), Physical: r.physical(), Name: fmt.Sprintf("%s #%d", regionNames[r.kind], r.id)})
	if err != nil {
		return err
	}
	if r.kind == regionOpened || r.kind == regionMapping && r.chunk.exported {
		m.share(r)
	}
	i, _ := slices.BinarySearchFunc(m.regions.sorted, r.addr,
		func(r *region, p uint64) int { return cmp.Compare(r.addr, p) })
	m.regions.sorted = slices.Insert(m.regions.sorted, i, r)
	return nil
}

// gone is the word in which another process, the owner, tells that it has freed the memory, or beginWork that own
// memory is there; nil for other memory.
func (r *region) gone() *atomic.Uint32 {
	if r.chunk == nil || !r.foreign && r.kind != regionOrdered {
		return nil
	}
	return r.chunk.gone()
}

// physical is the number of the region's memory, 0 if the memory has no other address in this machine. Memory of
// MemAlloc has another in other machines alone.
func (r *region) physical() uint64 {
	if r.kind != regionMapping && r.kind != regionOpened {
		return 0
	}
	return r.chunk.label.id
}

// forget says that a mapping or a handle of memory is gone. Of the last one the memory's history goes too.
func (m *Machine) forget(id uint64) {
	for _, r := range m.regions.sorted {
		if r.physical() == id {
			return
		}
	}
	for _, p := range m.virtual.handles {
		if p.chunk.label.id == id {
			return
		}
	}
	m.mem.Forget(id)
}

// drop unmaps a region and frees its memory.
func (m *Machine) drop(r *region) {
	m.mem.Unmap(r.addr) // an error where Vanish has done so
	i := slices.Index(m.regions.sorted, r)
	m.regions.sorted = slices.Delete(m.regions.sorted, i, i+1)
	if r.kind == regionOpened {
		m.forget(r.chunk.label.id)
	}
	switch r.kind {
	case regionAlloc, regionGlobal, regionHeap, regionOrdered:
		if !r.freed {
			r.dev.used -= r.cost()
		}
	}
	if r.kind == regionAlloc {
		r.chunk.gone().Store(1)
	}
	switch r.kind {
	case regionAlloc, regionGlobal, regionOpened, regionHeap:
		if !r.freed {
			m.regions.back(r.addr)
		}
	}
	r.release()
}

// cost is the device memory that an allocation takes.
func (r *region) cost() int { return int(roundUp(r.size, 512)) }

// share marks memory as written by others too, unseen by the emulator.
func (m *Machine) share(r *region) {
	if s, ok := m.mem.Find(r.addr); ok {
		s.Foreign = true
		if r.chunk != nil && s.Trail == nil {
			s.Trail = m.trailed(r.chunk)
		}
	}
}

// access says whether kernels of a device may touch an allocation; weakmem asks.
func (m *Machine) access(device int, s *weakmem.Allocation) bool {
	if s.Device == device || s.Device < 0 {
		return true
	}
	r := m.regions.find(s.Addr)
	if r == nil {
		return false
	}
	if r.granted>>device&1 != 0 {
		return true
	}
	x := m.devices[device].primary
	return r.kind != regionMapping && x != nil && x.peers>>s.Device&1 != 0
}

// lines says whether a device reaches an allocation by lines of 128 bytes as a whole; weakmem asks.
func (m *Machine) lines(device int, s *weakmem.Allocation) bool {
	owner := s.Device % maxDevices
	if owner < 0 || m.devices[device].Major < 7 {
		return false
	}
	return owner == device || m.cfg.Link(device, owner).Whole() && (m.cfg.Tears == nil || !m.cfg.Tears(device, owner))
}

// known is the region that holds p.
func (c *call) known(p uintptr) *region {
	r := c.regions.find(uint64(p))
	c.refuse(r == nil, cuda.ErrInvalidValue, "%#x is not memory that the driver knows", p)
	return r
}

// memory is the region that holds [p, p+n).
func (c *call) memory(p uintptr, n int) *region {
	c.refuse(n < 0, cuda.ErrInvalidValue, "%d bytes", n)
	r := c.known(p)
	// A range may cover several adjacent mappings.
	for q := r; !q.holds(uint64(p), n); {
		n -= int(q.end() - uint64(p))
		p = uintptr(q.end())
		if q = c.regions.find(uint64(p)); q == nil || q.kind != regionMapping {
			c.fail(cuda.ErrInvalidValue, "%d bytes beyond the end of %s #%d at %#x", n, regionNames[r.kind],
				r.id, r.addr)
		}
	}
	return r
}
