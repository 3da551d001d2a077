package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// decodeMMA decodes mma.sync, for which all threads of the warp meet, as for a shuffle.
func decodeMMA(c *compiler, fr *frame, in *ptx.Instr) error {
	x, err := alu.NewMMA(in)
	if err != nil {
		return errorAt(in, "%v", err)
	}
	if len(in.Operands) != 4 {
		return errorAt(in, "want four operands")
	}
	var d inst
	nd, na, nb, nc := x.Registers()
	for i, want := range []int{nd, na, nb, nc} {
		elements := flatten(in.Operands[i : i+1])
		if len(elements) != want {
			return errorAt(in, "operand %d has %d registers, expected %d", i+1, len(elements), want)
		}
		for _, o := range elements {
			slot, err := c.source(fr, in, o)
			if i == 0 {
				slot, err = c.dest(fr, in, o)
			}
			if err != nil {
				return err
			}
			if i == 0 {
				d.dst = append(d.dst, slot)
			} else {
				d.src = append(d.src, slot)
			}
		}
	}
	d.src = append(d.src, c.constant(constant{value: 1<<32 - 1}))
	d.x, d.exec = &syncOp{name: in.Name(), member: len(d.src) - 1, run: x.Run}, execSync
	c.emit(fr, in, d)
	return nil
}

// A matrixOp is ldmatrix or stmatrix: 1, 2 or 4 matrices of 8 rows of 16 bytes in shared memory, whose addresses the
// threads of the warp give, and a register of each thread for each matrix.
type matrixOp struct {
	*access
	transposed bool
}

func decodeMatrix(c *compiler, fr *frame, in *ptx.Instr) error {
	if len(in.Operands) != 2 {
		return errorAt(in, "want an address and registers")
	}
	stores := in.Op == "stmatrix"
	address, registers := in.Operands[1], in.Operands[:1]
	if stores {
		address, registers = in.Operands[0], in.Operands[1:]
	}
	a, base, err := c.newAccess(fr, in, address)
	if err != nil {
		return err
	}
	want := 1
	switch {
	case in.Has("x2"):
		want = 2
	case in.Has("x4"):
		want = 4
	}
	elements := flatten(registers)
	if len(elements) != want {
		return errorAt(in, "%d registers, expected %d", len(elements), want)
	}
	d := inst{exec: execMatrix, src: []int32{base}, x: &matrixOp{a, in.Has("trans")}}
	for _, o := range elements {
		slot, err := c.source(fr, in, o)
		if !stores {
			slot, err = c.dest(fr, in, o)
		}
		if err != nil {
			return err
		}
		if stores {
			d.src = append(d.src, slot)
		} else {
			d.dst = append(d.dst, slot)
		}
	}
	all := c.constant(constant{value: 1<<32 - 1})
	meet := &syncOp{name: in.Op, run: func(uint32, []*alu.Lanes, []*alu.Lanes) {}}
	c.emit(fr, in, inst{exec: execSync, src: []int32{all}, x: meet, helper: true})
	c.emit(fr, in, d)
	return nil
}

// execMatrix moves a register of each thread for each matrix. Thread l has of row l/4 the elements l%4*2 and the one
// after it; transposed, of column l/4 the elements of these two rows.
func execMatrix(w *warp, in *inst, mask uint32) status {
	op := in.x.(*matrixOp)
	rows := *w.address(in, op.access)
	for i := range max(len(in.dst), len(in.src)-1) {
		for lane := 8 * i; lane < 8*i+8; lane++ {
			if rows[lane]%16 != 0 {
				return w.failAt(in, lane, weakmem.Misaligned, rows[lane], "a row of a matrix begins at a multiple of 16 bytes")
			}
		}
		var d *alu.Lanes
		if len(in.dst) > 0 {
			d = w.slot(in.dst[i])
		} else {
			d = w.slot(in.src[1+i])
		}
		if s := op.move(w, in, mask, rows[8*i:8*i+8], d, len(in.dst) > 0); s != next {
			return s
		}
	}
	return next
}

// move loads or stores a register of one matrix whose rows are given.
func (op *matrixOp) move(w *warp, in *inst, mask uint32, rows []uint64, d *alu.Lanes, load bool) status {
	size, parts := 4, 1
	if op.transposed {
		size, parts = 2, 2
	}
	how := op.how
	how.Shared = true
	for part := range parts {
		var addr, v alu.Lanes
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			row, column := lane/4, lane%4*2
			if op.transposed {
				row, column = lane%4*2+part, lane/4
			}
			addr[lane] = rows[row] + uint64(2*column)
			v[lane] = d[lane] >> (16 * part)
		}
		if !load {
			for lane := range v {
				v[lane] &= 1<<(8*size) - 1
			}
			if f := w.block.mem.Store(w.index, mask, &addr, size, []*alu.Lanes{&v}, how); f != nil {
				return w.stopped(in, f)
			}
			continue
		}
		if f := w.block.mem.Load(w.index, mask, &addr, size, []*alu.Lanes{&v}, how); f != nil {
			return w.stopped(in, f)
		}
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if part == 0 {
				d[lane] = v[lane]
			} else {
				d[lane] |= v[lane] << 16
			}
		}
	}
	return next
}
