package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// merge lets registers of a function that never hold a value at the same time
// share a slot: compilers name a new register for every value, and a slot takes
// 256 bytes a warp. Slots hold a value for each thread, so only the path of a single
// thread matters, even if others are elsewhere. It returns how many 32-bit registers hold
// values at the same time; functions that are called keep theirs beside the kernel's.
// The slots of frames become those after merge.
func (c *compiler) merge() (live int) {
	moved := make([]int32, c.code.slots) // new slot of each
	used := int32(0)
	for i, fr := range c.order {
		end := int32(len(c.code.ins))
		if i+1 < len(c.order) {
			end = c.order[i+1].at[0]
		}
		l := newLiveness(c.code.ins[fr.at[0]:end], fr.at[0], fr.regs, fr.ret+1)
		live += l.pressure(fr.f.Regs)
		if fr.activates {
			fr.charge = align(fr.f.LocalBytes, 16) + align(callBytes+4*l.acrossCalls(fr.f.Regs), 16)
		}
		colors, n := l.color()
		for slot, r := range l.number {
			if r >= 0 {
				moved[fr.regs+int32(slot)] = used + colors[r]
			}
		}
		fr.first, fr.slots = used, n
		used += n
	}
	for s := c.order[len(c.order)-1].ret + 1; s < c.code.slots; s++ { // special registers and scratch
		moved[s] = used
		used++
	}
	move := func(s *int32) {
		if *s >= 0 {
			*s = moved[*s]
		}
	}
	for i := range c.code.ins {
		in := &c.code.ins[i]
		move(&in.guard)
		for k := range in.dst {
			move(&in.dst[k])
		}
		for k := range in.src {
			move(&in.src[k])
		}
	}
	for i := range c.code.specials {
		move(&c.code.specials[i].slot)
	}
	for _, fr := range c.order {
		move(&fr.ret)
		move(&fr.sp)
	}
	c.code.slots = used
	return live
}

// A set is of registers of a function, by number.
type set []uint64

func (s set) has(i int32) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s set) add(i int32)      { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i int32)   { s[i/64] &^= 1 << (i % 64) }

// liveness is which registers of a function are still needed before each instruction.
type liveness struct {
	ins    []inst
	next   [][]int32 // where each instruction leads
	first  int32     // slot of the function
	number []int32   // of each register by slot from first, -1 for those that no instruction names
	count  int32     // registers that have a number
	words  int       // of a set of them
	before []set
}

func newLiveness(ins []inst, base, first, last int32) *liveness {
	l := &liveness{ins: ins, first: first, number: make([]int32, last-first)}
	for i := range l.number {
		l.number[i] = -1
	}
	see := func(slots ...int32) {
		for _, s := range slots {
			if s >= first && s < last && l.number[s-first] < 0 {
				l.number[s-first] = l.count
				l.count++
			}
		}
	}
	for i := range ins {
		targets, falls := ins[i].next(base)
		if falls && i+1 < len(ins) {
			targets = append(targets, int32(i+1))
		}
		l.next = append(l.next, targets)
		see(ins[i].dst...)
		see(ins[i].src...)
		see(ins[i].guard)
	}
	l.words = int(l.count+63) / 64
	all := make(set, l.words*len(ins))
	for i := range ins {
		l.before = append(l.before, all[i*l.words:][:l.words])
	}
	live := make(set, l.words)
	for changed := true; changed; {
		changed = false
		for i := len(ins) - 1; i >= 0; i-- {
			l.after(i, live)
			in := &ins[i]
			if in.guard == noSlot { // else some threads keep their old values
				for _, d := range in.dst {
					if r := l.register(d); r >= 0 {
						live.remove(r)
					}
				}
			}
			for _, s := range in.src {
				if r := l.register(s); r >= 0 {
					live.add(r)
				}
			}
			if r := l.register(in.guard); r >= 0 {
				live.add(r)
			}
			for k, w := range live {
				if l.before[i][k] != w {
					l.before[i][k] = w
					changed = true
				}
			}
		}
	}
	return l
}

// acrossCalls is how many 32-bit registers a call has to keep, at most.
func (l *liveness) acrossCalls(regs []ptx.Reg) (most int) {
	live := make(set, l.words)
	words := l.widths(regs)
	for i := range l.ins {
		switch l.ins[i].x.(type) {
		case *callOp, byAddress:
			l.after(i, live)
			n := 0
			live.each(func(r int32) { n += words[r] })
			most = max(most, n)
		}
	}
	return most
}

// register is the number of a slot, -1 for those that are not of the function.
func (l *liveness) register(slot int32) int32 {
	if slot < l.first || slot >= l.first+int32(len(l.number)) {
		return -1
	}
	return l.number[slot-l.first]
}

// after sets live to the registers that are needed after an instruction.
func (l *liveness) after(i int, live set) {
	clear(live)
	for _, k := range l.next[i] {
		for w, b := range l.before[k] {
			live[w] |= b
		}
	}
}

// color gives registers that are needed at the same time different colors. It returns
// the colors and their number.
func (l *liveness) color() ([]int32, int32) {
	n := l.count
	clash := make([]set, n)
	for r := range clash {
		clash[r] = make(set, l.words)
	}
	if len(l.before) > 0 { // where to return to, and the activation, come from the call
		l.before[0].each(func(r int32) {
			for w, b := range l.before[0] {
				clash[r][w] |= b
			}
		})
	}
	live := make(set, l.words)
	for i := range l.ins {
		l.after(i, live)
		for _, d := range l.ins[i].dst {
			r := l.register(d)
			if r < 0 {
				continue
			}
			for w, b := range live {
				clash[r][w] |= b
			}
			for _, other := range l.ins[i].dst {
				if o := l.register(other); o >= 0 {
					clash[r].add(o)
				}
			}
		}
	}
	for r, s := range clash {
		s.each(func(o int32) { clash[o].add(int32(r)) })
	}
	colors := make([]int32, n)
	count := int32(0)
	for r := range n {
		taken := make(set, l.words+1)
		clash[r].each(func(o int32) {
			if o < r {
				taken.add(colors[o])
			}
		})
		for taken.has(colors[r]) {
			colors[r]++
		}
		count = max(count, colors[r]+1)
	}
	return colors, count
}

// each calls f for all members.
func (s set) each(f func(int32)) {
	for w, b := range s {
		for ; b != 0; b &= b - 1 {
			f(int32(64*w + bits.TrailingZeros64(b)))
		}
	}
}
