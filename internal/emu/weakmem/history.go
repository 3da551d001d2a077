package weakmem

// An origin is the maker of an access: a block, or the driver.
type origin struct {
	agent      uint32
	grid       *Grid    // nil for the driver
	cluster    *cluster // nil outside of one
	index, dim [3]int
	process    int    // another one, see Trail; 0: this one
	source     string // of the line of an access by another process
	what       string // of the driver: "copy"; else "asynchronous copy" or empty
	life       string // of a call that begins or ends the memory's life, see Memory.Appear
}

// A record is an access by one thread or by neighbouring lanes of a warp, of
// bytes without gaps. Shadow memory holds the numbers of records.
type record struct {
	by          *origin
	addr        uint64 // in the shadow's memory: the offset
	n           uint64
	epoch, time uint32 // of the block and of the warp
	serial      uint32 // of a strong write, see warp.strongs
	line        int32
	mask        uint32 // the lanes
	alias       uint16 // of the address, see physical.addrs
	warp        uint8
	first       uint8 // lane of the first byte
	size        uint8 // bytes a lane; 0: all lanes access the same bytes
	kind        kind
	scope       Scope
	element     uint8 // bytes of an element of a vector, or of the access; 0: bytes without elements
}

// A kind is the kind of a record's access.
type kind uint8

const (
	write kind = 1 << iota
	strong
	atomically
	nonCoherent
	async // through the async proxy
)

// lanesAt is the lanes of the record that access a byte.
func (r *record) lanesAt(addr uint64) uint32 {
	if r.size == 0 {
		return r.mask
	}
	return 1 << (uint64(r.first) + (addr-r.addr)/uint64(r.size))
}

// origin0 is the address at which lane 0 accesses or would.
func (r *record) origin0() uint64 { return r.addr - uint64(r.first)*uint64(r.size) }

// mutual reports whether the two are strong, of elements of one size, and each at a scope that holds both
// threads: such accesses never race. PTX calls them morally strong; if they overlap in part, they are not.
func mutual(a, b *record) bool {
	need := System
	switch {
	case a.kind&b.kind&strong == 0 || partly(a, b):
		return false
	case a.by == b.by:
		need = CTA
	case a.by.inCluster(b.by):
		need = Cluster
	case a.by.grid != nil && b.by.grid != nil && a.by.grid.device == b.by.grid.device:
		need = GPU
	}
	return a.scope >= need && b.scope >= need
}

// partly reports whether the elements that the two access differ in size: as each is aligned to its size, those that
// overlap overlap in part.
func partly(a, b *record) bool { return a.element != b.element && a.element != 0 && b.element != 0 }

// history is the records that shadow memory refers to.
type history struct {
	records   []record   // 0 is none
	spare     []record   // memory for them to move to
	lists     [][]uint32 // of records, for cells with several; never changed
	limit     int        // at which those that nothing refers to are dropped
	compacted int        // how often that was; numbers are new then
	blocks    map[*Block]struct{}
}

// listed marks the number of a list instead of a record's.
const listed = 1 << 31

// historyLimit is how many records and lists there are at least before any are dropped: some MB, which caches hold and
// the garbage collector looks through.
const historyLimit = 1 << 15

func newHistory() history {
	return history{records: make([]record, 1), lists: make([][]uint32, 1), limit: historyLimit,
		blocks: map[*Block]struct{}{}}
}

// add returns the number of a new record.
func (h *history) add(r *record) uint32 {
	h.records = append(h.records, *r)
	return uint32(len(h.records) - 1)
}

// of is the records that a half of a cell refers to. It needs memory for one.
func (h *history) of(ref uint32, one *[1]uint32) []uint32 {
	switch {
	case ref == 0:
		return nil
	case ref&listed != 0:
		return h.lists[ref&^listed]
	}
	one[0] = ref
	return one[:]
}

// ref is what a cell holds for some records. It keeps the slice.
func (h *history) ref(records []uint32) uint32 {
	switch len(records) {
	case 0:
		return 0
	case 1:
		return records[0]
	}
	h.lists = append(h.lists, records)
	return uint32(len(h.lists)-1) | listed
}

// compact drops records that no shadow refers to, and gives the others new numbers.
func (m *Memory) compact() {
	h := &m.history
	if len(h.records)+len(h.lists) < h.limit {
		return
	}
	old := *h
	h.records, h.lists = append(old.spare[:0], record{}), make([][]uint32, 1)
	to := make([]uint32, len(old.records))
	toList := make([]uint32, len(old.lists))
	one := func(r uint32) uint32 {
		if to[r] == 0 {
			to[r] = h.add(&old.records[r])
		}
		return to[r]
	}
	move := func(ref uint32) uint32 {
		switch i := ref &^ listed; {
		case ref == 0:
			return 0
		case ref == i:
			return one(ref)
		case toList[i] == 0:
			list := make([]uint32, len(old.lists[i]))
			for k, r := range old.lists[i] {
				list[k] = one(r)
			}
			toList[i] = h.ref(list)
			return toList[i]
		default:
			return toList[i]
		}
	}
	var from, now cell
	cells := 0
	each := func(c *cell) {
		cells++
		if *c != from {
			from, now = *c, makeCell(move(c.writes()), move(c.reads()))
		}
		*c = now
	}
	for _, s := range m.allocations.sorted {
		if s.Physical == 0 {
			s.memory.shadow.each(each)
		}
	}
	for _, p := range m.physicals {
		p.shadow.each(each)
	}
	for b := range h.blocks {
		b.shared.memory.shadow.each(each)
	}
	clear(old.records)
	h.spare = old.records
	h.compacted++
	h.limit = max(historyLimit, 2*(len(h.records)+len(h.lists)), cells/16) // a look at a cell takes 1/100 of an access
}
