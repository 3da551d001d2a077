package cuda

import "errors"

// A Growing is memory of a device that grows in place: addresses that it has given stay
// good until Close, so graphs may hold them, and nothing is copied. It maps more pages at
// the end of a range of addresses, which waits for no kernel, as MemAlloc may. Where the
// driver has no virtual memory it allocates blocks, each at least twice as large as the
// one before, and keeps them all. It may be used by one goroutine at a time.
type Growing struct {
	driver Driver
	ctx    Context
	dev    Device

	page     int // 0 until the first growth, -1 if there are blocks
	base     uintptr
	reserved int
	pieces   []int // lengths of the mappings

	blocks []uintptr // the last is the largest
	size   int       // that there is at base, or of the last block
}

// NewGrowing is memory of no bytes of a device and its context. It calls no driver.
func NewGrowing(d Driver, c Context, dev Device) *Growing {
	return &Growing{driver: d, ctx: c, dev: dev}
}

// Room is the address of at least n bytes, which all calls share.
func (g *Growing) Room(n int) (p uintptr, err error) {
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

// largestStep bounds how much more memory than was asked for is taken.
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
	h, err := g.driver.MemCreate(piece, AllocationProp{Device: g.dev})
	if err != nil {
		return err
	}
	p := g.base + uintptr(g.size)
	if err := g.driver.MemMap(p, piece, h); err != nil {
		return errors.Join(err, g.driver.MemRelease(h))
	}
	if err := errors.Join(g.driver.MemSetAccess(p, piece, g.dev), g.driver.MemRelease(h)); err != nil { // the mapping keeps the memory
		return errors.Join(err, g.driver.MemUnmap(p, piece))
	}
	g.pieces, g.size = append(g.pieces, piece), g.size+piece
	return nil
}

func (g *Growing) allocate(n int) error {
	p, err := g.driver.MemAlloc(n)
	if err == nil {
		g.blocks, g.size = append(g.blocks, p), n
	}
	return err
}

// Size is how many bytes Room gives without growing.
func (g *Growing) Size() int { return g.size }

// Close gives the memory back. No work uses it any more.
func (g *Growing) Close() error {
	if g.page == 0 {
		return nil
	}
	return Quietly(g.driver, g.ctx, func() error {
		var errs []error
		for _, p := range g.blocks {
			errs = append(errs, g.driver.MemFree(p))
		}
		at := g.base
		for _, n := range g.pieces {
			errs = append(errs, g.driver.MemUnmap(at, n))
			at += uintptr(n)
		}
		if g.page > 0 {
			errs = append(errs, g.driver.MemAddressFree(g.base, g.reserved))
		}
		*g = Growing{driver: g.driver, ctx: g.ctx, dev: g.dev}
		return errors.Join(errs...)
	})
}
