package cuda

import "errors"

// A Growing is memory of a device that grows in place: its addresses stay good until
// Close, so graphs may hold them, and nothing is copied. To grow it maps more pages at the
// end of a range of addresses, which unlike MemAlloc waits for no kernel. Where the driver
// has no virtual memory it allocates blocks, each at least twice as large as the one
// before up to a bound, and keeps them all. One goroutine may use it at a time.
type Growing struct {
	driver Driver
	ctx    Context
	dev    Device

	page     int // 0 until the first growth, -1 if there are blocks
	base     uintptr
	reserved int
	pieces   []int // lengths of the mappings
	away     bool  // Suspend has unmapped the pieces

	blocks []uintptr // the last is the largest
	size   int       // bytes at base, or of the last block
}

// NewGrowing is memory of no bytes of a device and its context. It calls no driver.
func NewGrowing(d Driver, c Context, dev Device) *Growing {
	return &Growing{driver: d, ctx: c, dev: dev}
}

// AtLeast is the address of at least n bytes, which all calls share.
func (g *Growing) AtLeast(n int) (p uintptr, err error) {
	if n <= g.size && g.size > 0 {
		return g.at(), nil
	}
	err = Quietly(g.driver, g.ctx, func() error { return g.grow(max(1, n)) })
	return g.at(), err
}

func (g *Growing) at() uintptr {
	if len(g.blocks) > 0 {
		return g.blocks[len(g.blocks)-1]
	}
	return g.base
}

// largestStep bounds the bytes that a Growing takes beyond the request.
const largestStep = 64 << 20

func (g *Growing) grow(n int) error {
	if g.page == 0 {
		g.reserve()
	}
	want := max(n, g.size+min(g.size, largestStep))
	if g.page < 0 {
		return g.allocate(want)
	}
	err := g.mapTo(want)
	if errors.Is(err, ErrOutOfMemory) && n < want {
		err = g.mapTo(n)
	}
	return err
}

// reserve takes a range of addresses for as much memory as the device has, if it can.
func (g *Growing) reserve() {
	g.page = -1
	virtual, err := g.driver.DeviceGetAttribute(AttrVirtualMemorySupported, g.dev)
	if err != nil || virtual == 0 {
		return
	}
	page, err := g.driver.MemGetAllocationGranularity(AllocationProp{Device: g.dev}, GranularityMinimum)
	if err != nil || page <= 0 {
		return
	}
	total, err := g.driver.DeviceTotalMem(g.dev)
	if err != nil {
		return
	}
	g.reserved = (total + page - 1) / page * page
	if g.base, err = g.driver.MemAddressReserve(g.reserved, page); err == nil {
		g.page = page
	}
}

// mapTo maps pages until there are n bytes.
func (g *Growing) mapTo(n int) error {
	piece := (n - g.size + g.page - 1) / g.page * g.page
	if err := g.mapAt(g.base+uintptr(g.size), piece); err != nil {
		return err
	}
	g.pieces, g.size = append(g.pieces, piece), g.size+piece
	return nil
}

// mapAt maps new memory.
func (g *Growing) mapAt(p uintptr, n int) error {
	h, err := g.driver.MemCreate(n, AllocationProp{Device: g.dev})
	if err != nil {
		return err
	}
	if err := g.driver.MemMap(p, n, h); err != nil {
		return errors.Join(err, g.driver.MemRelease(h))
	}
	if err := errors.Join(g.driver.MemSetAccess(p, n, g.dev), g.driver.MemRelease(h)); err != nil {
		// the mapping keeps the memory
		return errors.Join(err, g.driver.MemUnmap(p, n))
	}
	return nil
}

// unmap gives back the memory of the first pieces.
func (g *Growing) unmap(pieces []int) error {
	var errs []error
	at := g.base
	for _, n := range pieces {
		errs = append(errs, g.driver.MemUnmap(at, n))
		at += uintptr(n)
	}
	return errors.Join(errs...)
}

// Suspend gives the mapped memory back and keeps the addresses. Until Resume no work may use
// them, and only Resume and Close may be called.
func (g *Growing) Suspend() error {
	if g.away || len(g.pieces) == 0 {
		return nil
	}
	g.away = true
	return Quietly(g.driver, g.ctx, func() error { return g.unmap(g.pieces) })
}

// Resume maps new memory at these addresses. The content before Suspend is lost.
func (g *Growing) Resume() error {
	if !g.away {
		return nil
	}
	err := Quietly(g.driver, g.ctx, func() error {
		at := g.base
		for i, n := range g.pieces {
			if err := g.mapAt(at, n); err != nil {
				return errors.Join(err, g.unmap(g.pieces[:i]))
			}
			at += uintptr(n)
		}
		return nil
	})
	g.away = err != nil
	return err
}

// Mapped is how many bytes Suspend gives back, or has given back.
func (g *Growing) Mapped() (n int) {
	for _, p := range g.pieces {
		n += p
	}
	return n
}

func (g *Growing) allocate(n int) error {
	p, err := g.driver.MemAlloc(n)
	if err == nil {
		g.blocks, g.size = append(g.blocks, p), n
	}
	return err
}

// Size is how many bytes AtLeast gives without growing.
func (g *Growing) Size() int { return g.size }

// Close gives the memory back. No work may use it any more.
func (g *Growing) Close() error {
	if g.page == 0 {
		return nil
	}
	return Quietly(g.driver, g.ctx, func() error {
		var errs []error
		for _, p := range g.blocks {
			errs = append(errs, g.driver.MemFree(p))
		}
		if !g.away {
			errs = append(errs, g.unmap(g.pieces))
		}
		if g.page > 0 {
			errs = append(errs, g.driver.MemAddressFree(g.base, g.reserved))
		}
		*g = Growing{driver: g.driver, ctx: g.ctx, dev: g.dev}
		return errors.Join(errs...)
	})
}
