package cudaemu

import (
	"cmp"
	"slices"
)

// stick makes the bad cells of a device hold in a new allocation.
func (c *call) stick(r *region) {
	bad := func(l Cell) bool { return l.Device == r.dev.ordinal }
	if !slices.ContainsFunc(c.cfg.Cells, bad) {
		return
	}
	r.offset = c.lowest(r)
	for _, l := range c.cfg.Cells {
		if at := l.Byte - r.offset; bad(l) && at >= 0 && at < int(r.size) {
			c.system(c.mem.Stick(r.addr+uint64(at), l.Bit, l.One))
		}
	}
}

// lowest is the lowest offset in its device's memory where an allocation fits.
func (c *call) lowest(r *region) (offset int) {
	var others []*region
	for _, o := range c.regions.sorted {
		if o != r && o.dev == r.dev && (o.kind == regionAlloc || o.kind == regionGlobal) {
			others = append(others, o)
		}
	}
	slices.SortFunc(others, func(a, b *region) int { return cmp.Compare(a.offset, b.offset) })
	for _, o := range others {
		if o.offset-offset >= r.cost() {
			break
		}
		offset = o.offset + o.cost()
	}
	return offset
}
