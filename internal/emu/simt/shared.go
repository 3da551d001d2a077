package simt

import (
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// redZone lies between the shared variables of a block, so that an index too far finds no other variable. It counts for
// no limit, and variables are aligned as they would be without.
const redZone = 256

// sharedLayout is where the static shared variables of a kernel lie.
type sharedLayout struct {
	static int            // bytes without red zones
	parts  []weakmem.Part // the variables, with red zones
}

// zones are the bytes of red zones so far: one behind each variable.
func (l *sharedLayout) zones() int { return redZone * len(l.parts) }

// place lays out a variable behind the others.
func (l *sharedLayout) place(v *ptx.Var) int {
	l.static = align(l.static, max(v.Align, 1))
	at := l.static + l.zones()
	l.static += v.Size()
	l.parts = append(l.parts, weakmem.Part{Name: v.Name, From: uint64(at), To: uint64(at + v.Size())})
	return at
}

// enterShared lays out the shared variables of a function.
func (c *compiler) enterShared(f *ptx.Func) (offsets []int) {
	offsets = make([]int, len(f.Vars))
	c.static = align(c.static, sharedAlign(f.Vars))
	for i := range f.Vars {
		if v := &f.Vars[i]; v.Space == ptx.Shared && v.Count > 0 {
			offsets[i] = c.place(v)
		}
	}
	return offsets
}

// room is the bytes of shared memory of a block with red zones.
func (g *Grid) room() int {
	if g.Shared == 0 {
		return g.Kernel.Shared + g.Kernel.code.zones
	}
	return g.Kernel.code.dynamic + g.Shared
}

// parts are the variables of a block's shared memory: the static ones, the dynamic one, and what hardware has reserved.
func (g *Grid) parts() []weakmem.Part {
	k := g.Kernel.code
	parts := k.parts
	if g.Shared > 0 {
		parts = append(parts[:len(parts):len(parts)], weakmem.Part{Name: "dynamic shared memory", From: uint64(k.dynamic),
			To: uint64(k.dynamic + g.Shared)})
	}
	if k.reserves {
		parts = append(parts[:len(parts):len(parts)], weakmem.Part{Name: "reserved shared memory", From: uint64(g.reserved()),
			To: uint64(g.reserved() + sharedSystem)})
	}
	return parts
}
