package simt

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A function that may be called within itself has an activation for each call of a thread: its local variables lie in
// the thread's stack. Its registers and its .param variables stay where they are, and the activation keeps those of the
// one before.

const (
	stackBase = 1 << 24 // local addresses of activations begin there, beyond all other private memory
	callBytes = 16      // that a call takes of the stack besides local variables and registers
	// defaultStack is cudaLimitStackSize where nobody sets it.
	defaultStack = 1024
)

// A stack is that of a thread.
type stack struct {
	data   []byte   // local variables
	owner  []int16  // as of private
	regs   []uint64 // of the activations before, with the ends of data
	bytes  []byte   // .param variables of the activations before
	used   int      // bytes of the limit
	calls  int
	shades []keptShades
}

// keptShades are those of what an activation keeps, where there are any.
type keptShades struct {
	call  int // number of the activation
	regs  map[int32]shade
	bytes map[int]privateShade
}

// areas are the parts of private memory that an activation keeps.
func (fr *frame) areas() [3][2]int {
	return [3][2]int{{fr.params, fr.f.ParamBytes}, {fr.results, fr.f.ResultBytes}, {fr.calls, fr.f.CallBytes}}
}

// activate begins an activation in a lane. It is false if the stack has no room for it.
func (w *warp) activate(fr *frame, lane int) bool {
	s := &w.own.stacks[lane]
	if s.used+fr.charge > w.block.grid.stack() {
		return false
	}
	s.used += fr.charge
	s.calls++
	for i := range fr.slots {
		s.regs = append(s.regs, w.regs[fr.first+i][lane])
	}
	s.regs = append(s.regs, uint64(len(s.data)))
	base := lane * w.own.size
	for _, a := range fr.areas() {
		s.bytes = append(s.bytes, w.own.data[base+a[0]:][:a[1]]...)
	}
	if w.shades.n+len(w.shades.local) > 0 {
		s.shades = append(s.shades, w.keepShades(fr, lane, s.calls))
	}
	if fr.sp != noSlot {
		w.slot(fr.sp)[lane] = s.place(fr.f)
	}
	return true
}

// place lays out the local variables of an activation, unwritten.
func (s *stack) place(f *ptx.Func) uint64 {
	at := align(len(s.data)+16, 16)
	for len(s.data) < at+f.LocalBytes {
		s.data = append(s.data, undefinedByte(len(s.data)))
		s.owner = append(s.owner, 0)
	}
	for i, v := range f.Vars {
		if v.Space == ptx.Local {
			for k := range v.Size() {
				s.owner[at+v.Offset+k] = int16(i + 1)
			}
		}
	}
	return stackBase + uint64(at)
}

// deactivate ends the activation of a lane. Its results go where callers look for them.
func (w *warp) deactivate(fr *frame, lane int) {
	s, base := &w.own.stacks[lane], lane*w.own.size
	copy(w.own.data[base+w.block.grid.Kernel.code.out:][:fr.f.ResultBytes], w.own.data[base+fr.results:])
	s.used -= fr.charge
	s.calls--
	areas := fr.areas()
	for i := len(areas) - 1; i >= 0; i-- {
		a := areas[i]
		from := len(s.bytes) - a[1]
		copy(w.own.data[base+a[0]:], s.bytes[from:])
		s.bytes = s.bytes[:from]
	}
	from := len(s.regs) - int(fr.slots) - 1
	end := s.regs[len(s.regs)-1]
	s.data, s.owner = s.data[:end], s.owner[:end]
	for i := range fr.slots {
		w.regs[fr.first+i][lane] = s.regs[from+int(i)]
	}
	s.regs = s.regs[:from]
	w.restoreShades(fr, lane, s.calls+1)
}

// keepShades are the shades of what the activation of a lane keeps. The lane loses them.
func (w *warp) keepShades(fr *frame, lane, call int) keptShades {
	kept := keptShades{call, map[int32]shade{}, map[int]privateShade{}}
	for i := range fr.slots {
		if w.shades.lanes(fr.first+i, 1<<lane) != 0 {
			kept.regs[fr.first+i] = *w.shades.at(fr.first + i)
			w.shades.unshade([]int32{fr.first + i}, 1<<lane)
		}
	}
	for at, b := range w.shades.local {
		if at.lane == lane && fr.keeps(at.offset) {
			kept.bytes[at.offset] = b
			delete(w.shades.local, at)
		}
	}
	return kept
}

// restoreShades gives a lane the shades from before an activation, which has ended. Results keep theirs.
func (w *warp) restoreShades(fr *frame, lane, call int) {
	s := &w.own.stacks[lane]
	out := w.block.grid.Kernel.code.out
	if len(w.shades.local) > 0 {
		w.movePrivate(1<<lane, []move{{to: out, from: fr.results, n: fr.f.ResultBytes}})
		for at := range w.shades.local {
			if at.lane == lane && (fr.keeps(at.offset) || at.offset >= stackBase+len(s.data)) {
				delete(w.shades.local, at)
			}
		}
	}
	for i := range fr.slots {
		w.shades.unshade([]int32{fr.first + i}, 1<<lane)
	}
	n := len(s.shades) - 1
	if n < 0 || s.shades[n].call != call {
		return
	}
	for slot, v := range s.shades[n].regs {
		w.set(slot, 1<<lane, &v)
	}
	for offset, b := range s.shades[n].bytes {
		w.shades.local[privateAt{lane, offset}] = b
	}
	s.shades = s.shades[:n]
}

// keeps reports whether an activation keeps a byte of private memory.
func (fr *frame) keeps(offset int) bool {
	for _, a := range fr.areas() {
		if offset >= a[0] && offset < a[0]+a[1] {
			return true
		}
	}
	return false
}

// inActivation is the slot of an address in the activation, from an offset.
func (c *compiler) inActivation(fr *frame, in *ptx.Instr, offset uint64) int32 {
	to := c.scratch(fmt.Sprint("local ", len(c.code.ins)%4))
	c.code.ins = append(c.code.ins, inst{alu: runAdd, dst: []int32{to}, src: []int32{fr.sp,
		c.constant(constant{value: offset})},
		guard: noSlot, helper: true, ptx: in})
	return to
}

// stack is how many bytes of stack a thread has.
func (g *Grid) stack() int {
	if g.Stack == 0 {
		return defaultStack
	}
	return g.Stack
}

func (w *warp) overflow(in *inst, fr *frame, lane int) status {
	s := &w.own.stacks[lane]
	return w.failAt(in, lane, weakmem.OutOfBounds, stackBase+uint64(len(s.data)),
		fmt.Sprintf("the stack of %d bytes is full: "+
			"%s would be call %d that has not returned; cudaDeviceSetLimit(cudaLimitStackSize) gives a thread more",
			w.block.grid.stack(), fr.f.Name, s.calls+1))
}
