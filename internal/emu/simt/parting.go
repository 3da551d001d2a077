package simt

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A parting is of threads of a warp at a branch with an aligned barrier on some of its ways: all of them have to carry
// the barrier out, or none, until the ways meet (PTX ISA, barrier). Threads that have ended do not count, as of
// __syncthreads since Volta. Nor do those that only store and end: compilers merge the ends of threads that return
// early.
type parting struct {
	meets  int32  // the instruction where the ways meet
	mask   uint32 // the threads that live
	passed uint32 // those that are there, or were
	in     *inst  // the last barrier,
	did    uint32 // and those that have come to it, 0 once all have
}

// parts notes that threads part at a branch.
func (w *warp) parts(in *inst, mask uint32) {
	kept := w.apart[:0]
	known := false
	for _, p := range w.apart {
		if p.meets == in.meets {
			p.mask &^= p.passed & mask // they come again
			known = known || mask&^p.mask == 0
		}
		if p.mask != 0 {
			kept = append(kept, p)
		}
	}
	w.apart = kept
	if !known {
		w.apart, w.odd = append(w.apart, parting{meets: in.meets, mask: mask}), true
	}
}

// passes notes that threads are where ways meet. It is false if it has stopped the grid.
func (w *warp) passes(in *inst) bool {
	g := &w.groups[w.current]
	for i := 0; i < len(w.apart); i++ {
		p := &w.apart[i]
		m := g.mask & p.mask
		if p.meets != g.pc || m == 0 {
			continue
		}
		if skip := m &^ p.did; p.did != 0 && skip != 0 {
			w.skipped(p.in, p.did, in, skip)
			return false
		}
		if p.passed |= m; p.passed == p.mask {
			w.apart = slices.Delete(w.apart, i, i+1)
			i--
		}
	}
	return true
}

// gathers notes that threads come to an aligned barrier. It is false if it has stopped the grid.
func (w *warp) gathers(in *inst, mask uint32) bool {
	if group := w.groups[w.current].mask; in.meets > 0 && mask != group {
		w.parts(in, group)
	}
	for i := range w.apart {
		p := &w.apart[i]
		p.mask &^= p.passed & mask // they come again
		switch m := p.mask & mask; {
		case m == 0:
			continue
		case p.passed&p.mask != 0:
			w.skipped(in, m, &w.block.grid.Kernel.code.ins[p.meets], p.passed&p.mask)
			return false
		case p.in != in:
			p.in, p.did = in, m
		default:
			p.did |= m
		}
		if p.did == p.mask {
			p.did = 0
		}
	}
	return true
}

// skipped stops the grid, as some threads of a warp are at a barrier and others have gone on to an instruction behind.
func (w *warp) skipped(in *inst, at uint32, behind *inst, others uint32) {
	w.failPair(in, at, behind, others, fmt.Sprintf("a barrier that a part of the warp has not reached: threads %#x of it "+
		"have gone past, and PTX wants all that have not ended: have all threads of the warp come to it, or none", others))
}

// leaveParted forgets threads that have ended.
func (w *warp) leaveParted(mask uint32) {
	w.apart = slices.DeleteFunc(w.apart, func(p parting) bool { return p.mask&^(mask|p.passed) == 0 })
	for i := range w.apart {
		p := &w.apart[i]
		p.mask, p.passed, p.did = p.mask&^mask, p.passed&^mask, p.did&^mask
		if p.did == p.mask {
			p.did = 0
		}
	}
}

// partings finds the branches whose ways meet behind aligned barriers.
func (c *compiler) partings() {
	barred := map[*frame]bool{} // functions with one
	for changed := true; changed; {
		changed = false
		for i, fr := range c.order {
			if !barred[fr] && slices.ContainsFunc(c.body(i), func(in inst) bool { return in.bars(barred) }) {
				barred[fr], changed = true, true
			}
		}
	}
	for i, fr := range c.order {
		if barred[fr] {
			c.partingsOf(c.body(i), fr, barred)
		}
	}
}

// body is the instructions of a function.
func (c *compiler) body(i int) []inst {
	end := int32(len(c.code.ins))
	if i+1 < len(c.order) {
		end = c.order[i+1].at[0]
	}
	return c.code.ins[c.order[i].at[0]:end]
}

// bars reports whether the instruction is an aligned barrier, or calls a function with one.
func (in *inst) bars(barred map[*frame]bool) bool {
	switch x := in.x.(type) {
	case *barrierOp:
		return x.aligned
	case *clusterBarrier:
		return x.aligned
	case *callOp:
		return barred[x.callee]
	}
	return false
}

// partingsOf does so for a function.
func (c *compiler) partingsOf(body []inst, fr *frame, barred map[*frame]bool) {
	f := newFlow(body, fr.at[0])
	meets := f.meets()
	bars, goesOn := make([]bool, len(f.succ)), make([]bool, len(f.succ))
	for b := range f.succ {
		ins := body[f.begin[b]:f.begin[b+1]]
		bars[b] = slices.ContainsFunc(ins, func(in inst) bool { return in.bars(barred) })
		goesOn[b] = !fr.f.Entry || slices.ContainsFunc(ins, func(in inst) bool { return !in.last(c.m) })
	}
	for b, ss := range f.succ {
		m := meets[b]
		if len(ss) < 2 || m < 0 || !f.reaches([]int32{m}, -1, goesOn) {
			continue
		}
		if f.reaches(ss, m, bars) {
			body[f.begin[b+1]-1].meets = fr.at[0] + f.begin[m]
			body[f.begin[m]].joins = true
		}
	}
	for i := range body { // a barrier with a predicate is a branch of its own
		if in := &body[i]; in.bars(barred) && in.guard != noSlot && i+1 < len(body) {
			in.meets, body[i+1].joins = fr.at[0]+int32(i)+1, true
		}
	}
}

// last reports whether an instruction may be one of the last of threads that return early: it loads nothing that others
// store, and meets no other thread; but the compiler may have merged several accesses into one.
func (in *inst) last(m *ptx.Module) bool {
	if in.alu != nil || in.ends || in.helper {
		return true
	}
	switch x := in.x.(type) {
	case label:
		return true
	case *access:
		if x.storage == arguments || x.storage == local {
			return true
		}
		return !m.OnePlace(in.ptx.Line) && (len(in.dst) == 0 || m.Source(in.ptx.Line) != "")
	}
	return in.ptx.Op == "cvta"
}

// reaches reports whether a way from some blocks leads to one of the wanted before it comes to the end.
func (f *flow) reaches(from []int32, end int32, wanted []bool) bool {
	seen := map[int32]bool{end: true}
	for work := slices.Clone(from); len(work) > 0; {
		b := work[len(work)-1]
		if work = work[:len(work)-1]; seen[b] {
			continue
		}
		if seen[b] = true; wanted[b] {
			return true
		}
		work = append(work, f.succ[b]...)
	}
	return false
}

// meets is for each block the one where all ways from it meet first, -1 if they end apart: its immediate postdominator
// (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, 2001).
func (f *flow) meets() []int32 {
	n := int32(len(f.succ))
	end := n // of all ways
	succ := slices.Clone(f.succ)
	pred := make([][]int32, n+1)
	for b, ss := range succ {
		if len(ss) == 0 {
			succ[b] = []int32{end}
		}
		for _, s := range succ[b] {
			pred[s] = append(pred[s], int32(b))
		}
	}
	number, order := make([]int32, n+1), []int32(nil) // from the end backward, as they were left
	seen := make([]bool, n+1)
	var visit func(b int32)
	visit = func(b int32) {
		seen[b] = true
		for _, p := range pred[b] {
			if !seen[p] {
				visit(p)
			}
		}
		number[b] = int32(len(order))
		order = append(order, b)
	}
	visit(end)
	after := make([]int32, n+1)
	for b := range after {
		after[b] = -1
	}
	after[end] = end
	for changed := true; changed; {
		changed = false
		for _, b := range slices.Backward(order[:len(order)-1]) {
			at := int32(-1)
			for _, s := range succ[b] {
				switch {
				case after[s] < 0:
				case at < 0:
					at = s
				default:
					for x := s; x != at; {
						for number[x] < number[at] {
							x = after[x]
						}
						for number[at] < number[x] {
							at = after[at]
						}
					}
				}
			}
			if at != after[b] {
				after[b], changed = at, true
			}
		}
	}
	for b := range after {
		if after[b] == end {
			after[b] = -1
		}
	}
	return after[:n]
}
