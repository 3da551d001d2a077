package simt

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Shades are what registers hold of memory that nobody wrote. That a program moves such bytes about is no fault, as
// structs have padding; it is one where they decide something. Nearly always there are none, and the quick path of a
// warp asks only for that.
//
// Of moves, logic and shifts each bit is followed. Any other result is undefined if an operand is in part, and to
// store it is a fault. So is a store in global memory of what came from bytes that lie farther from written ones than
// padding does.

// A shade says which bits of a register nobody wrote.
type shade struct {
	bits     alu.Lanes
	computed uint32         // threads whose value is a result
	wide     uint32         // see weakmem.Shade
	from     *weakmem.Fault // describes the load
}

// shades are those of a warp.
type shades struct {
	n      int      // registers that have one
	of     []*shade // by slot
	loaded weakmem.Shade
	stored weakmem.Shade
	local  map[privateAt]privateShade
}

// A privateAt is a byte of a thread's private memory.
type privateAt struct{ lane, offset int }

// A privateShade is that of a byte.
type privateShade struct {
	bits           byte
	computed, wide bool
	from           *weakmem.Fault
}

// forget drops all shades.
func (h *shades) forget() {
	if h.n > 0 {
		clear(h.of)
		h.n = 0
	}
	clear(h.local)
}

// at is the shade of a slot, nil if it has none.
func (h *shades) at(slot int32) *shade {
	if slot < 0 || h.n == 0 {
		return nil
	}
	return h.of[slot]
}

// lanes are the threads of mask for which a slot has a shade.
func (h *shades) lanes(slot int32, mask uint32) (some uint32) {
	s := h.at(slot)
	if s == nil {
		return 0
	}
	for m := mask; m != 0; m &= m - 1 {
		if lane := bits.TrailingZeros32(m); s.bits[lane] != 0 {
			some |= 1 << lane
		}
	}
	return some
}

// set gives a slot the shade v for the threads of mask.
func (w *warp) set(slot int32, mask uint32, v *shade) {
	h := &w.shades
	if h.of == nil {
		h.of = make([]*shade, len(w.regs))
	}
	s := h.of[slot]
	if s == nil {
		s = &shade{}
		h.of[slot] = s
		h.n++
		w.odd = true
	}
	copyLanes(&s.bits, &v.bits, mask)
	s.computed = s.computed&^mask | v.computed&mask
	s.wide = s.wide&^mask | v.wide&mask
	s.from = v.from
	if s.bits == (alu.Lanes{}) {
		h.of[slot] = nil
		h.n--
	}
}

// unshade makes registers defined for the threads of mask.
func (h *shades) unshade(slots []int32, mask uint32) {
	for _, slot := range slots {
		s := h.at(slot)
		if s == nil {
			continue
		}
		for m := mask; m != 0; m &= m - 1 {
			s.bits[bits.TrailingZeros32(m)] = 0
		}
		if s.bits == (alu.Lanes{}) {
			h.of[slot] = nil
			h.n--
		}
	}
}

// oddly does what an instruction wants before it is executed where loads are late, threads have parted before an
// aligned barrier, or registers have shades or unknown values. It is false if that stopped the grid.
func (w *warp) oddly(in *inst, all uint32) bool {
	if len(w.late) > 0 && !w.passesLate(in) && !w.catchUp() || in.joins && len(w.apart) > 0 && !w.passes(in) ||
		w.shades.n > 0 && !w.follow(in, all) || w.unknown.any && !w.unknown.follow(w, in, all) {
		return false
	}
	w.odd = len(w.late)+len(w.apart)+w.shades.n > 0 || w.unknown.any
	return true
}

// follow looks at an instruction that threads are about to execute, while registers have shades. It is false if that
// stopped the grid.
func (w *warp) follow(in *inst, all uint32) bool {
	h, mask := &w.shades, all
	if in.guard != noSlot {
		mask &= w.guard(in)
		if s := h.at(in.guard); s != nil {
			for m := all; m != 0; m &= m - 1 {
				if s.bits[bits.TrailingZeros32(m)]&1 != 0 {
					if !w.decides(in, in.guard, "it decides a branch") {
						return false
					}
					break
				}
			}
		}
	}
	if mask == 0 {
		return true
	}
	if in.alu != nil {
		w.compute(in, mask)
		return true
	}
	src, why := in.src, "it is an operand"
	switch in.ptx.Op {
	case "ld", "ldu":
		why = "it is an address"
	case "st":
		if _, ok := in.x.(*access); ok {
			src, why = src[:1], "it is an address"
		}
	case "shfl":
		src, why = src[1:], "it decides which thread's value is taken"
	}
	for _, slot := range src {
		if h.lanes(slot, mask) != 0 && !w.decides(in, slot, why) {
			return false
		}
	}
	if in.ptx.Op != "shfl" {
		h.unshade(in.dst, mask)
	}
	return true
}

// decides reports what a slot holds of unwritten memory, and takes it for written then. It is false if the grid stops.
func (w *warp) decides(in *inst, slot int32, why string) bool {
	s := w.shades.at(slot)
	f := w.block.mem.Undefined(s.from, fmt.Sprintf("%s in line %d", why, in.ptx.Line))
	w.shades.unshade([]int32{slot}, everyLane)
	if f == nil {
		return true
	}
	w.stopped(in, f)
	return false
}

// exact are the instructions of which each bit of the result is followed, and which of their operands say how bits
// are moved. Those without any are logic of bits.
var exact = map[string][]int{
	"and": nil, "or": nil, "xor": nil, "not": nil, "lop3": nil,
	"mov": {9}, "brev": {9}, "cvt": {9}, "shl": {1}, "shr": {1}, "shf": {2}, "szext": {1}, "prmt": {2}, "selp": {2},
	"bfe": {1, 2}, "bfi": {2, 3},
}

// compute gives the result of an instruction its shade.
func (w *warp) compute(in *inst, mask uint32) {
	h := &w.shades
	var from shade // of all operands
	var some uint32
	for _, slot := range in.src {
		lanes := h.lanes(slot, mask)
		if lanes == 0 {
			continue
		}
		s := h.at(slot)
		some |= lanes
		from.from = s.from
		from.computed |= s.computed & lanes
		from.wide |= s.wide & lanes
	}
	if some == 0 {
		h.unshade(in.dst, mask)
		return
	}
	how, known := exact[in.ptx.Op]
	if in.ptx.Op == "cvt" {
		t := in.ptx.Types
		known = len(t) == 2 && !t[0].Float() && !t[1].Float() && !in.ptx.Has("sat")
	}
	unknown := some // threads of whose result no bit is known
	results := make([]alu.Lanes, len(in.dst))
	if known && !in.helper && len(in.src) <= 8 {
		unknown = 0
		for _, i := range how {
			if i < len(in.src) {
				unknown |= h.lanes(in.src[i], mask)
			}
		}
		if how == nil {
			w.logic(in, some, results)
		} else {
			w.moved(in, some, how, results)
		}
	}
	for i, slot := range in.dst {
		v := from
		v.computed |= unknown
		for m := some; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			v.bits[lane] = results[i][lane]
			if unknown>>lane&1 != 0 {
				v.bits[lane] = w.smeared(in, lane)
			}
		}
		w.set(slot, mask, &v)
	}
}

// smeared are the bits of a result that may depend on what nobody wrote: all, or those of the halves of a pair.
func (w *warp) smeared(in *inst, lane int) (v uint64) {
	t := in.ptx.Types
	if len(t) == 0 || !strings.HasSuffix(t[0].String(), "x2") || t[0] != t[len(t)-1] || len(in.dst) > 1 {
		return ^uint64(0)
	}
	for _, slot := range in.src {
		if s := w.shades.at(slot); s != nil {
			v |= s.bits[lane]
		}
	}
	return uint64(b2i(v&0xffff != 0))*0xffff | uint64(b2i(v>>16 != 0))*0xffff0000
}

// pointers are pointers to lanes.
func pointers(l []alu.Lanes) []*alu.Lanes {
	p := make([]*alu.Lanes, len(l))
	for i := range l {
		p[i] = &l[i]
	}
	return p
}

// moved are the shades of the results of an instruction that moves bits: it moves the shades.
func (w *warp) moved(in *inst, mask uint32, how []int, results []alu.Lanes) {
	src := make([]alu.Lanes, len(in.src))
	for i, slot := range in.src {
		control := false
		for _, k := range how {
			control = control || k == i
		}
		if control {
			src[i] = *w.slot(slot)
		} else if s := w.shades.at(slot); s != nil {
			src[i] = s.bits
		}
	}
	in.alu(mask, pointers(results), pointers(src))
}

// logic are the shades of the results of logic: bits that differ when bits that nobody wrote are other ones.
func (w *warp) logic(in *inst, mask uint32, results []alu.Lanes) {
	var shaded []int
	src := make([]alu.Lanes, len(in.src))
	for i, slot := range in.src {
		src[i] = *w.slot(slot)
		if w.shades.at(slot) != nil {
			shaded = append(shaded, i)
		}
	}
	ones, zeros := make([]alu.Lanes, len(results)), make([]alu.Lanes, len(results))
	for choice := range 1 << len(shaded) {
		for k, i := range shaded {
			for lane, b := range w.shades.at(in.src[i]).bits {
				if src[i][lane] &^= b; choice>>k&1 != 0 {
					src[i][lane] |= b
				}
			}
		}
		in.alu(mask, pointers(results), pointers(src))
		for i := range results {
			for lane, v := range results[i] {
				ones[i][lane] |= v
				zeros[i][lane] |= ^v
			}
		}
	}
	for i := range results {
		for lane := range results[i] {
			results[i][lane] = ones[i][lane] & zeros[i][lane]
		}
	}
}

// shadeLoaded gives the registers of a load the shades of what was loaded.
func (w *warp) shadeLoaded(in *inst, a *access, mask uint32) {
	l := &w.shades.loaded
	for i := range l.Bits {
		if a.extend != nil && in.ptx.Types[0].Signed() {
			alu.Extend(mask, &l.Bits[i], 8*a.size, a.extend[i])
		}
		w.set(in.dst[i], mask, &shade{bits: l.Bits[i], wide: l.Wide, from: l.Fault})
	}
	l.Mask = 0
}

// shadeStored is the shade of what threads store in memory, global or shared. It is nil if there is none, and false if
// the store is a fault that stops the grid.
func (w *warp) shadeStored(in *inst, mask uint32, global bool) (*weakmem.Shade, bool) {
	h := &w.shades
	t := &h.stored
	t.Mask = 0
	t.Bits = append(t.Bits[:0], make([]alu.Lanes, len(in.src)-1)...)
	for i, slot := range in.src[1:] {
		some := h.lanes(slot, mask)
		if some == 0 {
			continue
		}
		s := h.at(slot)
		if s.computed&some != 0 {
			if !w.decides(in, slot, "a result of it is stored") {
				return nil, false
			}
			continue
		}
		if global && w.whole(s, s.wide&some, in) {
			if !w.decides(in, slot, "it is stored") {
				return nil, false
			}
			continue
		}
		t.Mask |= some
		copyLanes(&t.Bits[i], &s.bits, some)
	}
	if t.Mask == 0 {
		return nil, true
	}
	return t, true
}

// whole reports whether nobody wrote a bit of what some thread of mask stores.
func (w *warp) whole(s *shade, mask uint32, in *inst) bool {
	full := ^uint64(0) >> (64 - 8*in.x.(*access).size)
	for m := mask; m != 0; m &= m - 1 {
		if s.bits[bits.TrailingZeros32(m)]&full == full {
			return true
		}
	}
	return false
}

// shadeShuffled gives the result of a shuffle the shades of the values; src are the operands of all threads.
func (w *warp) shadeShuffled(op *syncOp, of func(lane int) *inst, mask uint32, src []*alu.Lanes) {
	var value, result alu.Lanes
	var v shade
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if s := w.shades.at(of(lane).src[0]); s != nil && s.bits[lane] != 0 {
			value[lane] = s.bits[lane]
			v.from = s.from
			v.computed |= s.computed
			v.wide |= s.wide
		}
	}
	if v.from != nil {
		op.run(mask, []*alu.Lanes{&result}, append([]*alu.Lanes{&value}, src[1:]...))
		v.bits = result
		v.computed = -min(v.computed, 1)
		v.wide = -min(v.wide, 1)
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		dst := of(lane).dst
		w.shades.unshade(dst, 1<<lane)
		if v.bits[lane] != 0 {
			w.set(dst[0], 1<<lane, &v)
		}
	}
}

// shadePrivate moves shades between registers and the private memory of threads: from them if store.
func (w *warp) shadePrivate(in *inst, a *access, mask uint32, addr *alu.Lanes, store bool) {
	h := &w.shades
	slots := in.dst
	switch {
	case store && len(in.src) == 0: // a result of package library, which is known
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			h.unshadePrivate(lane, int(addr[lane]), a.size)
		}
		return
	case store:
		slots = in.src[1:]
	}
	if len(h.local) == 0 && (!store || h.n == 0) {
		return
	}
	if h.local == nil {
		h.local = map[privateAt]privateShade{}
	}
	for i, slot := range slots {
		s := h.at(slot)
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			at := int(addr[lane]) + i*a.size
			if !store {
				w.loadPrivate(slot, lane, at, a.size)
				continue
			}
			for k := range a.size {
				b := privateShade{}
				if s != nil {
					b = privateShade{byte(s.bits[lane] >> (8 * k)), s.computed>>lane&1 != 0, s.wide>>lane&1 != 0, s.from}
				}
				if b.bits == 0 {
					delete(h.local, privateAt{lane, at + k})
				} else {
					h.local[privateAt{lane, at + k}] = b
				}
			}
		}
	}
}

func (w *warp) loadPrivate(slot int32, lane, at, size int) {
	var v shade
	for k := range size {
		if b, ok := w.shades.local[privateAt{lane, at + k}]; ok {
			v.bits[lane] |= uint64(b.bits) << (8 * k)
			v.computed |= uint32(b2i(b.computed)) << lane
			v.wide |= uint32(b2i(b.wide)) << lane
			v.from = b.from
		}
	}
	if v.from != nil {
		w.set(slot, 1<<lane, &v)
	}
}

// unshadePrivate makes bytes of a thread's private memory defined.
func (h *shades) unshadePrivate(lane, from, n int) {
	for k := 0; k < n && len(h.local) > 0; k++ {
		delete(h.local, privateAt{lane, from + k})
	}
}

// movePrivate moves the shades of arguments and results of calls.
func (w *warp) movePrivate(mask uint32, moves []move) {
	local := w.shades.local
	if len(local) == 0 {
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		for _, v := range moves {
			for k := range v.n {
				if b, ok := local[privateAt{lane, v.from + k}]; ok {
					local[privateAt{lane, v.to + k}] = b
				} else {
					delete(local, privateAt{lane, v.to + k})
				}
			}
		}
	}
}
