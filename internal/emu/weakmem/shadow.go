package weakmem

import (
	"math/bits"
	"slices"
)

// A cell is the history of 8 bytes: the last writes and the reads since, each
// a record, a list of them, or 0. Each record counts for the bytes it accessed.
type cell uint64

func makeCell(writes, reads uint32) cell { return cell(writes)<<32 | cell(reads) }
func (c cell) writes() uint32            { return uint32(c >> 32) }
func (c cell) reads() uint32             { return uint32(c) }

const (
	cellBytes = 8
	pageCells = 512
	pageBytes = cellBytes * pageCells
)

// A page is the cells of 4 KiB, all equal to uniform while cells is nil.
type page struct {
	uniform cell
	cells   *[pageCells]cell
}

// A shadow is the cells of an allocation's memory. It takes memory for the pages that were accessed.
type shadow struct{ pages []page }

// each calls f for all cells.
func (s *shadow) each(f func(*cell)) {
	for i := range s.pages {
		p := &s.pages[i]
		if p.cells == nil {
			f(&p.uniform)
			continue
		}
		for j := range p.cells {
			f(&p.cells[j])
		}
	}
}

// listMax is how many writes, or reads, of a cell are remembered.
const listMax = 16

// An access is one that is being checked and noted.
type access struct {
	memory *Memory
	block  *Block  // nil: the driver
	warp   *warp   // nil: the driver, or an asynchronous copy,
	clock  *vector // which have a clock of their own
	record *record // also in the history, as number
	number uint32
	fault  *Fault // the first fault that stops the kernel
	again  *Fault // the race found last
}

// touch checks an access of the allocation against the cells of its bytes, and notes
// it there. It returns the first fault that is to stop the kernel.
func (a *access) touch(s *Allocation) *Fault {
	sh := &s.memory.shadow
	if sh.pages == nil {
		sh.pages = make([]page, s.memory.pages())
	}
	off, end := a.record.addr, a.record.addr+a.record.n
	var seen, then cell // the last whole cell, before and after
	known := false
	for off < end {
		p := &sh.pages[off/pageBytes]
		stop := min(end, off&^(pageBytes-1)+pageBytes)
		if p.cells == nil && stop-off == pageBytes {
			p.uniform, _ = a.meet(s, p.uniform, off, stop)
			off = stop
			continue
		}
		if p.cells == nil {
			p.cells = new([pageCells]cell)
			if p.uniform != 0 {
				for i := range p.cells {
					p.cells[i] = p.uniform
				}
			}
		}
		for off < stop {
			next := min(stop, off&^(cellBytes-1)+cellBytes)
			c := &p.cells[off/cellBytes%pageCells]
			if next-off == cellBytes {
				if known && *c == seen {
					*c = then
				} else {
					seen = *c
					*c, known = a.meet(s, seen, off, next)
					then = *c
				}
			} else {
				*c, _ = a.meet(s, *c, off, next)
			}
			off = next
		}
	}
	return a.fault
}

// meet checks the access of [from, to), in one cell or many equal ones, and returns the
// new cell. same says that the new cell holds for all whole cells equal to c.
func (a *access) meet(s *Allocation, c cell, from, to uint64) (after cell, same bool) {
	h := &a.memory.history
	var one [1]uint32
	same = true
	writes := h.of(c.writes(), &one)
	keepWrites := c.writes()
	if a.record.kind&write == 0 {
		for _, w := range writes {
			_, all := a.ordered(s, &h.records[w], from, to)
			same = same && all
		}
		reads := c.reads()
		if reads == 0 || reads == a.number {
			return makeCell(keepWrites, a.number), same
		}
		others := h.of(reads, &one)
		if slices.Contains(others, a.number) { // as when several warps poll
			return c, same
		}
		left, all := a.left(s, others, from, to)
		if left == nil {
			return makeCell(keepWrites, a.number), same && all
		}
		return makeCell(keepWrites, h.ref(append(left, a.number))), false
	}
	left, all := a.left(s, writes, from, to)
	keepWrites = a.number
	if left != nil {
		keepWrites = h.ref(append(left, a.number))
	}
	same = same && all && left == nil
	left, all = a.left(s, h.of(c.reads(), &one), from, to)
	return makeCell(keepWrites, h.ref(left)), same && all && left == nil
}

// left checks the access against the records others, and returns the records that stay in the
// history:
//   - a record of bytes that the access does not cover;
//   - a record that is not before the access;
//   - a record that races with no lane of the access, but may race with a later access.
func (a *access) left(s *Allocation, others []uint32, from, to uint64) (left []uint32, same bool) {
	h := &a.memory.history
	same = true
	lo, hi := from&^(cellBytes-1), (to+cellBytes-1)&^(cellBytes-1)
	for _, o := range others {
		r := &h.records[o]
		before, all := a.ordered(s, r, from, to)
		same = same && all
		if !before || max(r.addr, lo) < from || min(r.addr+r.n, hi) > to || a.stronger(r) {
			left = append(left, o)
		}
	}
	if len(left) >= listMax {
		left = left[len(left)-listMax+1:]
	}
	return left, same
}

// stronger reports whether a later access may race with the record and not with the
// access, though the access is after the record. Records from before the kernel do not
// count.
func (a *access) stronger(r *record) bool {
	if a.record.kind&strong == 0 || r.kind&strong != 0 && r.by == a.record.by && r.scope >= a.record.scope {
		return false
	}
	return a.block == nil || !a.block.grid.before.covers(r, -1)
}

// ordered reports whether the part of the record within [from, to) is before the
// access. If not, and it is a race, it reports the race. all says that the whole record
// is before the access.
func (a *access) ordered(s *Allocation, r *record, from, to uint64) (before, all bool) {
	cur := a.record
	if (r.kind|cur.kind)&(nonCoherent|write) == nonCoherent|write && r.by.grid == cur.by.grid &&
		r.kind&write != cur.kind&write {
		if from, to = max(from, r.addr), min(to, r.addr+r.n); from < to {
			a.race(s, r, from, bits.TrailingZeros32(r.lanesAt(from)), bits.TrailingZeros32(cur.lanesAt(from)))
			return true, false
		}
	}
	if a.allBefore(r) {
		return true, ((r.kind^cur.kind)&async == 0 || a.proxied(s, r, from, to)) &&
			(r.alias == cur.alias || a.aliased(s, r, from, to))
	}
	from, to = max(from, r.addr), min(to, r.addr+r.n)
	conflict := (r.kind|cur.kind)&write != 0 && !mutual(r, cur)
	before = true
	var was, is uint32
	for at := from; at < to; at++ {
		x, y := r.lanesAt(at), cur.lanesAt(at)
		if x == was && y == is {
			continue
		}
		was, is = x, y
		if px, py, ok := a.lanesBefore(r, x, y); !ok {
			before = false
			if conflict {
				a.race(s, r, at, px, py)
				return true, false
			}
		}
	}
	if before && (r.kind^cur.kind)&async != 0 {
		a.proxied(s, r, from, to)
	}
	if before && r.alias != cur.alias {
		a.aliased(s, r, from, to)
	}
	return before, false
}

// allBefore is a quick answer whether all of the record is before all of the access.
func (a *access) allBefore(r *record) bool {
	b := a.block
	if a.warp == nil {
		return a.clock.covers(r, -1)
	}
	if r.by == &b.origin {
		if r.epoch < b.epoch {
			return true
		}
		if r.warp == a.record.warp {
			if r.time < a.warp.synced {
				return true
			}
			if r.size == a.record.size && r.size != 0 && r.origin0() == a.record.origin0() {
				return true // each lane meets only itself
			}
		}
	} else if b.clock.covers(r, -1) {
		return true
	}
	if a.warp.lanes == nil {
		return false
	}
	var last *vector
	for l := range 32 {
		if a.record.mask>>l&1 == 0 {
			continue
		}
		v := a.warp.lanes[l].clock
		if v == nil {
			return false
		}
		if v != last && !v.covers(r, -1) {
			return false
		}
		last = v
	}
	return true
}

// clockOf is the clock of a lane of the access.
func (a *access) clockOf(lane int) *vector {
	if a.warp == nil {
		return a.clock
	}
	return a.block.clockOf(a.warp, lane)
}

// lanesBefore reports whether the part of lanes x of the record is before the access of
// lanes y, and if not returns a lane of each.
func (a *access) lanesBefore(r *record, x, y uint32) (px, py int, ok bool) {
	own := a.block != nil && r.by == &a.block.origin && r.warp == a.record.warp
	for i := range 32 {
		if y>>i&1 == 0 {
			continue
		}
		v := a.clockOf(i)
		for l := range 32 {
			if x>>l&1 != 0 && !(own && l == i) && !v.covers(r, l) {
				return l, i, false
			}
		}
	}
	return 0, 0, true
}
