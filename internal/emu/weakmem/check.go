package weakmem

// at finds the allocation that the lanes of r access, drops lanes beyond the allocation's end,
// and checks that the kernel may make the access.
func (b *Block) at(warp int, r *run, k kind, how *How) (*Allocation, *Fault) {
	if r.addr&uint64(r.each-1) != 0 {
		return nil, b.refuse(Misaligned, warp, r, k, how)
	}
	s := b.shared
	switch {
	case !how.Shared:
		s = b.find(&b.warps[warp], r.addr)
		if s == nil || s.gone() {
			return nil, b.refuse(OutOfBounds, warp, r, k, how)
		}
	case how.Of != nil:
		if why := b.visit(how.Of, warp, r.mask); why != "" {
			f := b.refuse(OutOfBounds, warp, r, k, how)
			f.Detail = why
			return nil, f
		}
		s = how.Of.shared
	}
	n := uint64(len(s.Data))
	if s.parts != nil {
		n = s.limit(r.addr)
	}
	if r.addr-s.Addr > n || r.bytes() > n-(r.addr-s.Addr) {
		var lanes uint64
		if off := r.addr - s.Addr; off < n {
			lanes = (n - off) / uint64(r.each)
		}
		if lanes == 0 {
			return nil, b.refuse(OutOfBounds, warp, r, k, how)
		}
		r.lanes = int(lanes)
		r.mask = ^uint32(0) >> (32 - r.lanes) << r.first
	}
	if s.Device != b.grid.device && !b.mayAccess(s) {
		return nil, b.refuse(NoAccess, warp, r, k, how)
	}
	return s, nil
}

// find is allocationTable.find, remembering what the warp found last.
func (b *Block) find(w *warp, addr uint64) *Allocation {
	t := &b.memory.allocations
	if w.changed != t.changed {
		w.allocations, w.changed = [2]*Allocation{}, t.changed
	}
	if s := w.allocations[0]; s != nil && addr-s.Addr < uint64(len(s.Data)) {
		return s
	}
	s := w.allocations[1]
	if s == nil || addr-s.Addr >= uint64(len(s.Data)) {
		s = t.find(addr)
	}
	w.allocations[0], w.allocations[1] = s, w.allocations[0]
	return s
}

// mayAccess asks Config.Access, once for each allocation.
func (b *Block) mayAccess(s *Allocation) bool {
	if b.memory.config.Access == nil {
		return true
	}
	may, asked := b.access[s]
	if !asked {
		may = b.memory.config.Access(b.grid.device, s)
		if b.access == nil {
			b.access = map[*Allocation]bool{}
		}
		b.access[s] = may
	}
	return may
}

// refuse describes an access that cannot be made, by its first lane.
func (b *Block) refuse(kind FaultKind, warp int, r *run, k kind, how *How) *Fault {
	rec := record{by: &b.origin, line: int32(how.Line), warp: uint8(warp), n: uint64(r.each), kind: k}
	f := rec.fault(kind, nil, 0, r.first)
	f.Addr, f.Shared = r.addr, how.Shared
	switch s := b.memory.allocations.find(r.addr); {
	case kind == Misaligned:
		f.Detail = "the address must be a multiple of the size"
	case kind == NoAccess:
		f.Where = where(s, r.addr)
		f.Detail = "the kernel's device has no access to it: enable peer access, or set it for mapped memory"
	case how.Shared:
		s := b.shared
		if how.Of != nil {
			s = how.Of.shared
		}
		f.Detail = s.nearPart(r.addr)
	default:
		f.Detail = b.memory.allocations.near(r.addr)
	}
	return f
}

// note checks an access for races and unwritten memory, and remembers it.
func (b *Block) note(warp int, r *run, s *Allocation, k kind, how *How) *Fault {
	w := &b.warps[warp]
	rec := &b.memory.noting
	*rec = record{
		by: &b.origin, addr: r.addr - s.Addr, n: r.bytes(), epoch: b.epoch, time: w.time, line: int32(how.Line),
		mask: r.mask, warp: uint8(warp), first: uint8(r.first), size: uint8(r.each), kind: k, scope: how.Scope,
		element: how.element, alias: s.alias,
	}
	if r.same {
		rec.size = 0
	}
	if how.Order != Weak {
		if rec.kind |= strong; k&write != 0 {
			rec.serial = w.strongs
		}
	}
	if how.NonCoherent {
		rec.kind |= nonCoherent
	}
	if how.Async {
		rec.kind |= async
	}
	a := access{memory: b.memory, block: b, warp: w, record: rec}
	if how.Shade == nil && (k&write == 0 || k&atomically != 0) {
		if f := a.initialized(s); f != nil {
			return f
		}
	}
	if how.Shade != nil && k&write == 0 {
		if at, bad := s.unwritten(rec.addr, rec.n); bad {
			b.shade(&a, r, s, at, int(how.element), how.Shade)
		}
	}
	a.number = b.number(w, rec)
	if r.same && rec.kind&(write|strong) == write {
		a.clash(s)
	}
	if f := a.touch(s); f != nil || s.Trail == nil || how.Shared {
		return f
	}
	return a.trail(s)
}

// number is the record's number in the history. A repeated access of a warp, such as a
// poll, keeps its number.
func (b *Block) number(w *warp, rec *record) uint32 {
	h := &b.memory.history
	if rec.size != 0 && rec.kind&strong == 0 {
		b.memory.compact()
		return h.add(rec)
	}
	if w.compact != h.compacted {
		w.recent, w.compact = [8]uint32{}, h.compacted
	}
	slot := &w.recent[rec.line&7]
	if *slot == 0 || h.records[*slot] != *rec {
		b.memory.compact()
		if w.compact != h.compacted {
			w.recent, w.compact = [8]uint32{}, h.compacted
		}
		*slot = h.add(rec)
	}
	return *slot
}
