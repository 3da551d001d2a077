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
	data  []byte   // local variables
	owner []int16  // as of private
	regs  []uint64 // of the activations before, with the ends of data
	bytes []byte   // .param variables of the activations before
	used  int      // bytes of the limit
	calls int
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
