package simt

import (
	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// decodeProduct decodes mma. Its sources are the registers of A, B and C.
func decodeProduct(c *compiler, fr *frame, in *ptx.Instr, d *inst) together {
	shape, _ := ptx.ShapeOf(in.Mods)
	p := alu.Product{Shape: shape, D: in.Types[0], A: in.Types[1], B: in.Types[2], C: in.Types[3],
		Satfinite: in.Has("satfinite")}
	return c.product(fr, in, d, p)
}

// product decodes the operands of a product.
func (c *compiler) product(fr *frame, in *ptx.Instr, d *inst, p alu.Product) together {
	c.dests(fr, in, d, in.Operands[0])
	var ends [3]int // of A, B and C among the sources
	for i, o := range in.Operands[1:] {
		c.sources(fr, in, d, o)
		ends[i] = len(d.src)
	}
	run := p.Run()
	return func(w *warp, in *inst) status {
		f := &w.block.grid.world.fragments
		run(f.look(w, 0, in.dst), f.look(w, 1, in.src[:ends[0]]), f.look(w, 2, in.src[ends[0]:ends[1]]),
			f.look(w, 3, in.src[ends[1]:]))
		return next
	}
}
