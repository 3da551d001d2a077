package simt

import (
	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A matrixOp is ldmatrix or stmatrix, of 1, 2 or 4 matrices of 8 rows of 8 elements of 16 bits. The thread of lane
// 8m + r has the address of row r of matrix m, and the row counts as its access. The first source is the address.
//
// Register m of the thread of lane 4r + i holds elements 2i and 2i+1 of row r of matrix m or, with .trans, of column r.
type matrixOp struct {
	pointer
	n     int // matrices
	trans bool
}

// rows are the rows of matrices, 16 bytes each: of matrix m, row r is in lane 8m + r.
type rows struct{ low, high alu.Lanes }

// at is where an element lies: the register, and from which bit on.
func (r *rows) at(lane, col int) (*uint64, int) {
	if col < 4 {
		return &r.low[lane], 16 * col
	}
	return &r.high[lane], 16 * (col - 4)
}

// element is where the fragments hold an element of a lane's register: row and column.
func element(lane, i int, trans bool) (row, col int) {
	row, col = lane/4, 2*(lane%4)+i
	if trans {
		row, col = col, row
	}
	return row, col
}

// newMatrixOp decodes all of ldmatrix and stmatrix but the registers.
func (c *compiler) newMatrixOp(fr *frame, in *ptx.Instr, d *inst, address, registers ptx.Operand) *matrixOp {
	return &matrixOp{pointer: c.pointer(fr, in, d, address, in.Space), n: len(flatten([]ptx.Operand{registers})),
		trans: in.Has("trans")}
}

// addresses are those of the rows, and the lanes that have them.
func (op *matrixOp) addresses(w *warp, in *inst) (mask uint32, addr alu.Lanes, s status) {
	mask = uint32(1<<(8*op.n) - 1)
	addr, s = w.allInOwn(in, &op.pointer, mask)
	return mask, addr, s
}

func decodeLoadMatrix(c *compiler, fr *frame, in *ptx.Instr, d *inst) together {
	op := c.newMatrixOp(fr, in, d, in.Operands[1], in.Operands[0])
	c.dests(fr, in, d, in.Operands[0])
	return func(w *warp, in *inst) status {
		mask, addr, s := op.addresses(w, in)
		if s != next {
			return s
		}
		var r rows
		if f := w.block.mem.Load(w.index, mask, &addr, 8, []*alu.Lanes{&r.low, &r.high},
			weakmem.How{Shared: true, Line: in.ptx.Line}); f != nil {
			return w.stopped(in, f)
		}
		for m, slot := range in.dst {
			to := w.slot(slot)
			for lane := range to {
				v := uint64(0)
				for i := range 2 {
					row, col := element(lane, i, op.trans)
					from, shift := r.at(8*m+row, col)
					v |= *from >> shift & 0xffff << (16 * i)
				}
				to[lane] = v
			}
		}
		return next
	}
}

func decodeStoreMatrix(c *compiler, fr *frame, in *ptx.Instr, d *inst) together {
	op := c.newMatrixOp(fr, in, d, in.Operands[0], in.Operands[1])
	c.sources(fr, in, d, in.Operands[1])
	return func(w *warp, in *inst) status {
		mask, addr, s := op.addresses(w, in)
		if s != next {
			return s
		}
		var r rows
		for m, slot := range in.src[1:] {
			from := w.slot(slot)
			for lane := range from {
				for i := range 2 {
					row, col := element(lane, i, op.trans)
					to, shift := r.at(8*m+row, col)
					*to |= from[lane] >> (16 * i) & 0xffff << shift
				}
			}
		}
		if f := w.block.mem.Store(w.index, mask, &addr, 8, []*alu.Lanes{&r.low, &r.high},
			weakmem.How{Shared: true, Line: in.ptx.Line}); f != nil {
			return w.stopped(in, f)
		}
		return next
	}
}

// decodeMoveMatrix decodes movmatrix, which transposes a matrix that lies in the threads' registers.
func decodeMoveMatrix(c *compiler, fr *frame, in *ptx.Instr, d *inst) together {
	c.dests(fr, in, d, in.Operands[0])
	c.sources(fr, in, d, in.Operands[1])
	return func(w *warp, in *inst) status {
		from, to := *w.slot(in.src[0]), w.slot(in.dst[0])
		for lane := range to {
			v := uint64(0)
			for i := range 2 {
				row, col := element(lane, i, true)
				v |= from[4*row+col/2] >> (16 * (col % 2)) & 0xffff << (16 * i)
			}
			to[lane] = v
		}
		return next
	}
}
