package weakmem

// A Plan is what an asynchronous copy is to do.
type Plan struct {
	Dst, Src             uint64
	ToShared, FromShared bool // the address is an offset in the block's shared memory,
	// of the copy's target in that of another block of the cluster, if set. The barrier is there too.
	To    *Block
	Bytes int
	Zeros int  // bytes that follow them at Dst
	Align int  // of both addresses
	Async bool // through the async proxy
	Line  int  // of PTX, for reports

	// Value, if set, are the Bytes to write, of registers: nothing is read at Src.
	Value []byte

	// Update, if set, gives what an element of Size bytes at Dst becomes: a reduction,
	// of which each element is an atomic operation, relaxed, of GPU scope.
	Update func(old, v uint64) uint64
	Size   int

	// The barrier in shared memory that is told of the end, if Signals. BarrierFenced says
	// that its initialisation was made visible to the async proxy.
	Signals       bool
	Barrier       uint64
	BarrierFenced bool
}

// A Transfer is an asynchronous copy that goes on while the thread that began it does
// other things. It reads and writes piece by piece, in any order, when Advance or Finish
// is called. Its reads and its writes count as made by two agents that began after all
// that the thread knew; they are before what others do only where those were told so by
// Block.Know.
type Transfer struct {
	plan           Plan
	block          *Block
	warp, lane     int
	number         int // of its warp
	reader, writer origin
	data           []byte  // until all is written
	order          []int32 // of its pieces, likewise
	pieces         int
	read, wrote    int  // how many of them were
	blank          bool // some of what it reads nobody wrote
}

// pieceBytes is what is read or written at once; a pending store holds as much.
const pieceBytes = 512

// Begin begins an asynchronous copy by a lane. The fault says that the copy must not be
// made.
func (b *Block) Begin(warp, lane int, p Plan) (*Transfer, *Fault) {
	m := b.memory
	t := &Transfer{plan: p, block: b, warp: warp, lane: lane, number: b.warps[warp].copies}
	b.warps[warp].copies++
	t.reader = origin{agent: b.helper(b2i(p.ToShared)), grid: b.grid, cluster: b.origin.cluster, index: b.origin.index,
		dim: b.origin.dim, what: "asynchronous copy"}
	t.writer = t.reader
	t.writer.agent = b.helper(2 + b2i(p.ToShared))
	var known *vector
	if !m.config.Plain {
		known = b.until(warp, lane, b.moment(warp, lane))
		b.warps[warp].time++
	}
	var proxy kind
	if p.Async {
		proxy = async
	}
	if p.Value == nil {
		if f := t.touch(&t.reader, p.Src, p.Bytes, p.Align, How{Shared: p.FromShared}, proxy, known); f != nil {
			return nil, f
		}
	}
	if p.Signals {
		k := proxy
		if p.BarrierFenced {
			k = 0
		}
		if f := t.touch(&t.writer, p.Barrier, 8, 8, How{Shared: true, Of: p.To}, k|strong, known); f != nil {
			return nil, f
		}
	}
	k := proxy | write
	if p.Update != nil {
		k |= strong | atomically
	}
	n := p.Bytes + p.Zeros
	if f := t.touch(&t.writer, p.Dst, n, p.Align, How{Shared: p.ToShared, Of: p.To}, k, known); f != nil {
		return nil, f
	}
	if t.blank {
		t.copyWritten()
	}
	t.data = make([]byte, n)
	t.pieces = (n + pieceBytes - 1) / pieceBytes
	if p.Value != nil {
		copy(t.data, p.Value)
		t.read = t.pieces
	}
	t.order = make([]int32, t.pieces)
	for i := range t.order {
		k := int(m.rand() >> 33 % uint64(i+1))
		t.order[i] = t.order[k]
		t.order[k] = int32(i)
	}
	return t, nil
}

// A pool is agents for copies of a block: there are four, for what copies to and from its
// shared memory read, and write. Others learn of those of a pool about in order, and of
// neighbours clocks are short.
type pool struct {
	free agents
	size uint32 // of the last piece that was taken
}

const smallestPool, largestPool = 16, 1024

// helper is a new agent of a pool.
func (b *Block) helper(number int) uint32 {
	p := &b.pools[number]
	if p.free.first == p.free.last {
		m := b.memory
		p.size = max(smallestPool, min(2*p.size, largestPool))
		p.free = agents{m.agents + 1, m.agents + 1 + p.size}
		m.agents += p.size
		b.grid.helpers = append(b.grid.helpers, p.free)
	}
	p.free.first++
	return p.free.first - 1
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// touch checks an access of the copy, and notes it.
func (t *Transfer) touch(by *origin, addr uint64, n, align int, how How, k kind, known *vector) *Fault {
	b := t.block
	m := b.memory
	how.Line = t.plan.Line
	refuse := func(kind FaultKind) *Fault {
		return b.refuse(kind, t.warp, &run{addr: addr, first: t.lane, each: n, mask: 1 << t.lane}, k, &how)
	}
	if n > 0 && addr%uint64(align) != 0 {
		f := refuse(Misaligned)
		f.Detail = "the address of an asynchronous copy must be a multiple of its unit"
		return f
	}
	for end := addr + uint64(n); addr < end; {
		s := b.shared
		switch {
		case !how.Shared:
			s = b.find(&b.warps[t.warp], addr)
		case how.Of != nil:
			if why := b.visit(how.Of, t.warp, 1<<t.lane); why != "" {
				f := refuse(OutOfBounds)
				f.Detail = why
				return f
			}
			s = how.Of.shared
		}
		if s == nil || s.gone() || addr-s.Addr >= uint64(len(s.Data)) || s.parts != nil && end-s.Addr > s.limit(addr) ||
			how.Shared && end-s.Addr > uint64(len(s.Data)) {
			return refuse(OutOfBounds)
		}
		if s.Device != b.grid.device && !b.mayAccess(s) {
			return refuse(NoAccess)
		}
		part := min(end, s.end()) - addr
		if !m.config.Plain {
			r := record{by: by, addr: addr - s.Addr, n: part, line: int32(t.plan.Line), mask: 1 << t.lane, warp: uint8(t.warp),
				first: uint8(t.lane), kind: k, scope: GPU, alias: s.alias}
			m.compact()
			a := access{memory: m, block: b, clock: known, record: &r, number: m.history.add(&r)}
			if k&strong != 0 || k&write == 0 && t.plan.Update != nil {
				if f := a.initialized(s); f != nil {
					return f
				}
			} else if k&write == 0 {
				_, bad := s.unwritten(r.addr, r.n)
				t.blank = t.blank || bad
			}
			if f := a.touch(s); f != nil {
				return f
			}
			if k&write != 0 {
				s.setWritten(addr-s.Addr, part)
			}
		}
		addr += part
	}
	return nil
}

// copyWritten has bytes stay unwritten that the copy moves.
func (t *Transfer) copyWritten() {
	from, to := t.block.shared, t.target().shared
	if !t.plan.FromShared {
		from = nil
	}
	if !t.plan.ToShared {
		to = nil
	}
	t.each(t.plan.Dst, t.plan.Bytes, to, func(d *Allocation, at uint64, first, last int) {
		t.each(t.plan.Src+uint64(first), last-first, from, func(s *Allocation, off uint64, lo, hi int) {
			d.copyWritten(at+uint64(lo), s, off, uint64(hi-lo))
		})
	})
}

// Advance reads or writes some more. It reports whether all is done.
func (t *Transfer) Advance() (done bool) {
	r := t.block.memory.rand() >> 32
	n := 1 + int(r>>2%uint64(t.pieces+1))
	if r&3 == 0 {
		n = t.pieces
	}
	if r>>1&1 == 0 {
		t.load(min(t.read+n, t.pieces))
	} else {
		t.store(min(t.wrote+n, t.read))
	}
	return t.wrote == t.pieces
}

// Number is the number of the copy among those of its warp.
func (t *Transfer) Number() int { return t.number }

// Left are the parts of the copy that are not done, as bits: 1 for what it reads, 2 for what it writes.
func (t *Transfer) Left() uint64 { return uint64(b2i(t.read < t.pieces) | 2*b2i(t.wrote < t.pieces)) }

// Read finishes the reads.
func (t *Transfer) Read() { t.load(t.pieces) }

// Finish finishes all of it.
func (t *Transfer) Finish() {
	t.load(t.pieces)
	t.store(t.pieces)
}

// Seen is the Clock of its reads, and Done that of all of it.
func (t *Transfer) Seen() Clock { return Clock{endedVector([]uint32{t.reader.agent})} }
func (t *Transfer) Done() Clock {
	return Clock{endedVector([]uint32{t.reader.agent, t.writer.agent})}
}

// target is the block to whose shared memory the copy goes.
func (t *Transfer) target() *Block {
	if t.plan.To != nil {
		return t.plan.To
	}
	return t.block
}

// Leaves reports whether the copy may still use the shared memory of a block, which has
// ended: no thread waited for it. Ask after Block.End.
func (t *Transfer) Leaves(b *Block) bool {
	v := b.grid.seen
	if b.origin.cluster != nil {
		v = b.left
	}
	if b.memory.config.Plain {
		return false
	}
	return t.plan.FromShared && t.block == b && !v.hasEnded(t.reader.agent) ||
		t.plan.ToShared && t.target() == b && !v.hasEnded(t.writer.agent)
}

// piece is where a piece lies in data.
func (t *Transfer) piece(i int) (from, to int) {
	from = int(t.order[i]) * pieceBytes
	return from, min(from+pieceBytes, len(t.data))
}

// each calls f for the parts of n bytes at addr, which may lie in several allocations, or in
// memory that was unmapped since.
func (t *Transfer) each(addr uint64, n int, shared *Allocation, f func(s *Allocation, off uint64, from, to int)) {
	for from := 0; from < n; {
		s := shared
		if s == nil {
			s = t.block.memory.allocations.find(addr + uint64(from))
		}
		if s == nil {
			return
		}
		off := addr + uint64(from) - s.Addr
		to := min(n, from+len(s.Data)-int(off))
		f(s, off, from, to)
		from = to
	}
}

// load reads pieces until so many were.
func (t *Transfer) load(until int) {
	for ; t.read < until; t.read++ {
		from, to := t.piece(t.read)
		to = min(to, t.plan.Bytes)
		if to <= from {
			continue
		}
		addr := t.plan.Src + uint64(from)
		p := t.data[from:to]
		var shared *Allocation
		if t.plan.FromShared {
			shared = t.block.shared
		}
		b := &t.block.warps[t.warp].buffer
		t.each(addr, to-from, shared, func(s *Allocation, off uint64, from, to int) {
			if b.memory.late > 0 {
				b.carryOut(s.base+off, uint64(to-from))
			}
			copy(p[from:to], s.Data[off:])
			b.overlay(p[from:to], s.base+off)
		})
	}
}

// store writes pieces until so many were.
func (t *Transfer) store(until int) {
	b := t.block
	m := b.memory
	var shared *Allocation
	if t.plan.ToShared {
		shared = t.target().shared
	}
	for ; t.wrote < until; t.wrote++ {
		from, to := t.piece(t.wrote)
		data := t.data[from:to]
		t.each(t.plan.Dst+uint64(from), to-from, shared, func(s *Allocation, off uint64, from, to int) {
			part := data[from:to]
			b.warps[t.warp].buffer.drainBefore(nil, s.base+off, uint64(to-from))
			switch {
			case t.plan.Update != nil:
				t.update(s, off, part)
			case m.config.Plain:
				m.write(s.Data[off:][:len(part)], part)
			default:
				t.keep(s, off, part, t.wrote)
			}
		})
	}
	if t.wrote == t.pieces {
		t.data, t.order = nil, nil
	}
}

// keep stores a part. In global memory the device sees it at once and others later, unless a
// fence or the end of the kernel comes first.
func (t *Transfer) keep(s *Allocation, off uint64, part []byte, piece int) {
	m := t.block.memory
	p := m.pending()
	p.allocation, p.addr, p.n, p.release = s, s.base+off, uint64(len(part)), nil
	p.units = all(p.addr, p.n)
	p.by, p.warp, p.strong, p.near, p.far, p.whole, p.tears = &t.writer, uint8(t.warp), false, true, true, false, false
	copy(p.data[:], part)
	if t.plan.ToShared {
		m.reveal(p, p.units)
		m.release(p)
		return
	}
	m.delay(p, uint8(t.warp), int32(t.plan.Line), copyNumber(t.number, int(t.order[piece])))
	m.device(t.block.grid.device).add(p)
}

// update carries out the reduction of a part.
func (t *Transfer) update(s *Allocation, off uint64, part []byte) {
	m := t.block.memory
	size := t.plan.Size
	for i := 0; i < len(part); i += size {
		at := off + uint64(i)
		v := get(part[i:], size)
		if !m.config.Plain {
			m.remember(s, at, uint64(size), &t.writer, seenBy{device: t.block.grid.device, warp: uint8(t.warp)})
		}
		was, now := m.change(s.Data[at:][:size], 0, func(_ int, old uint64) uint64 { return t.plan.Update(old, v) })
		if !m.config.Plain {
			s.replaced(m, at, size, was, now, nil, signal{}, 0)
		}
	}
}
