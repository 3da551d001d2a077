package simt

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A tileOp is wmma.load or wmma.store. The first source is the address, which all threads share, then come the
// registers of a store and the stride, if there is one.
//
// Which thread loads what PTX leaves open: here a thread accesses what its fragment holds, see alu.Cells.
type tileOp struct {
	*access
	cells  []alu.Cell // of a thread after those of another
	each   int        // how many of a thread
	copies int        // how often the registers hold the matrix

	row     bool // rows lie one after the other, otherwise columns
	length  int  // elements of a row or column
	stride  bool // given
	whole   bool // the elements of a register lie one after the other
	element int  // bytes
}

// tileAlign and strideAlign are what addresses and strides of wmma, in bytes, are multiples of; where a row is shorter,
// of that.
const tileAlign, strideAlign = 32, 16

// decodeTile decodes wmma.
func decodeTile(c *compiler, fr *frame, in *ptx.Instr, d *inst) together {
	shape, _ := ptx.ShapeOf(in.Mods)
	switch in.Mods[0] {
	case "load":
		return c.tile(fr, in, d, shape, in.Operands[1], in.Operands[0])
	case "store":
		return c.tile(fr, in, d, shape, in.Operands[0], in.Operands[1])
	}
	t := in.Types
	if len(t) == 2 {
		t = []ptx.Type{t[0], ptx.F16, ptx.F16, t[1]}
	}
	return c.product(fr, in, d, alu.Product{Shape: shape, D: t[0], A: t[1], B: t[2], C: t[3],
		Satfinite: in.Has("satfinite")})
}

func (c *compiler) tile(fr *frame, in *ptx.Instr, d *inst, s ptx.Shape, address, registers ptx.Operand) together {
	a, base := c.newAccess(fr, in, address)
	d.src = append(d.src, base)
	store := in.Mods[0] == "store"
	add := c.dests
	if store {
		add = c.sources
	}
	add(fr, in, d, registers)
	matrix, sizes := in.Mods[1][0]-'a'+'A', [2]int{s.M, s.N} // rows and columns
	switch matrix {
	case 'A':
		sizes[1] = s.K
	case 'B':
		sizes[0] = s.K
	}
	op := &tileOp{access: a, cells: alu.Cells(s, matrix, in.Types[0]), row: in.Has("row"), element: a.size}
	op.each = len(op.cells) / 32
	op.copies = len(flatten([]ptx.Operand{registers})) * max(1, 32/in.Types[0].Bits()) / op.each
	op.length = sizes[b2i(op.row)]
	op.whole = op.row == (matrix != 'B')
	if op.whole {
		a.size = max(a.size, 4)
	}
	if op.stride = len(in.Operands) > 2; op.stride {
		c.sources(fr, in, d, in.Operands[2])
	}
	if store {
		return op.store
	}
	return op.load
}

// place checks the address and the stride, in bytes, of all threads.
func (op *tileOp) place(w *warp, in *inst) (base uint64, stride int, s status) {
	addr := w.address(in, op.access)
	differ := func(lane int, what string) (uint64, int, status) {
		return 0, 0, w.failAt(in, lane, weakmem.BadInstruction, addr[lane], "the threads of the warp give different "+what)
	}
	stride = op.length
	if op.stride {
		strides := w.slot(in.src[len(in.src)-1])
		stride = int(int32(strides[0]))
		for lane := range strides {
			if uint32(strides[lane]) != uint32(stride) {
				return differ(lane, "strides")
			}
		}
	}
	for lane := range addr {
		if addr[lane] != addr[0] {
			return differ(lane, "addresses")
		}
	}
	unit, whole := min(strideAlign/op.element, op.length), uint64(min(tileAlign, op.length*op.element))
	switch {
	case stride < op.length || stride%unit != 0:
		return 0, 0, w.fail(in, 1, weakmem.BadInstruction,
			"a stride of %d elements, where it has to be a multiple of %d and %d at least", stride, unit, op.length)
	case addr[0]%whole != 0:
		return 0, 0, w.failAt(in, 0, weakmem.Misaligned, addr[0],
			fmt.Sprintf("the address of this matrix has to be a multiple of %d", whole))
	}
	return addr[0], stride * op.element, next
}

// accesses calls f for what each thread accesses at once: an element, or those of a register that lie one after the
// other.
func (op *tileOp) accesses(w *warp, in *inst, f func(p storage, addr *alu.Lanes, c alu.Cell) status) status {
	base, stride, s := op.place(w, in)
	if s != next {
		return s
	}
	for i := 0; i < op.each; i += op.size / op.element {
		var addr alu.Lanes
		for lane := range addr {
			c := op.cells[lane*op.each+i]
			major, minor := c.Row, c.Col
			if !op.row {
				major, minor = minor, major
			}
			addr[lane] = base + uint64(major*stride+minor*op.element)
		}
		p, at := op.storage, &addr
		if p == anywhere {
			p = memory
			if base&windowMask == sharedWindow {
				p = shared
				for lane := range addr {
					addr[lane] &^= windowMask
				}
			}
		}
		if s := f(p, at, op.cells[i]); s != next {
			return s
		}
	}
	return next
}

func (op *tileOp) load(w *warp, in *inst) status {
	var values [8]alu.Lanes
	used := len(in.dst) / op.copies
	s := op.accesses(w, in, func(p storage, addr *alu.Lanes, c alu.Cell) status {
		var v alu.Lanes
		if s := w.load(in, op.access, p, everyLane, addr, []*alu.Lanes{&v}); s != next {
			return s
		}
		for lane := range v {
			values[c.Reg][lane] |= v[lane] << c.Shift
		}
		return next
	})
	if s != next {
		return s
	}
	for i, slot := range in.dst {
		*w.slot(slot) = values[i%used]
	}
	return next
}

func (op *tileOp) store(w *warp, in *inst) status {
	return op.accesses(w, in, func(p storage, addr *alu.Lanes, c alu.Cell) status {
		v := *w.slot(in.src[1+c.Reg])
		for lane := range v {
			v[lane] >>= c.Shift
		}
		return w.store(in, op.access, p, everyLane, addr, []*alu.Lanes{&v})
	})
}
