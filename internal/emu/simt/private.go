package simt

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// private is the private memory of each thread of a warp: its local variables, and the
// parameters and results of calls.
type private struct {
	size   int     // of a thread
	owner  []int16 // see code
	data   []byte  // of thread after thread
	stacks *[32]stack
}

func newPrivate(c *code) private {
	n := len(c.owner)
	p := private{size: n, owner: c.owner, data: make([]byte, 32*n)}
	if c.activates {
		p.stacks = &[32]stack{}
	}
	return p
}

// clear makes it unwritten: it is full of the undefined value. To read that is no fault,
// since compilers load variables before they know whether they use what they got.
func (p *private) clear() {
	for i := range p.data {
		p.data[i] = undefinedByte(i)
	}
	if p.stacks != nil {
		clear(p.stacks[:])
	}
}

func undefinedByte(i int) byte { return byte(undefined >> (i % 4 * 8)) }

// span is where an address of a lane lies.
func (p *private) span(lane int, addr uint64) (owner []int16, data []byte, at int) {
	if addr >= stackBase && p.stacks != nil {
		s := &p.stacks[lane]
		return s.owner, s.data, int(min(addr-stackBase, 1<<40))
	}
	return p.owner, p.data[lane*p.size:][:p.size], int(min(addr, 1<<40))
}

// check finds what is wrong with an access to n bytes, and the bytes.
func (p *private) check(lane int, addr uint64, n int) (b []byte, kind weakmem.FaultKind, why string) {
	owner, data, at := p.span(lane, addr)
	switch {
	case at+n > len(owner) || owner[at] == 0 || owner[at] != owner[at+n-1]:
		return nil, weakmem.OutOfBounds, "outside of the thread's local variables"
	case addr%uint64(n) != 0:
		return nil, weakmem.Misaligned, fmt.Sprintf("local address has to be a multiple of %d", n)
	}
	return data[at:][:n], 0, ""
}

// load reads elements of the threads in mask, as weakmem.Block does. It returns the
// first lane whose access is wrong, with the reason.
func (p *private) load(mask uint32, addr *alu.Lanes, size int, dst []*alu.Lanes) (lane int, kind weakmem.FaultKind,
	why string) {
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		b, kind, why := p.check(lane, addr[lane], size*len(dst))
		if why != "" {
			return lane, kind, why
		}
		for _, d := range dst {
			v := uint64(0)
			for i := range size {
				v |= uint64(b[i]) << (8 * i)
			}
			d[lane] = v
			b = b[size:]
		}
	}
	return 0, 0, ""
}

func (p *private) store(mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes) (lane int, kind weakmem.FaultKind,
	why string) {
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		b, kind, why := p.check(lane, addr[lane], size*len(src))
		if why != "" {
			return lane, kind, why
		}
		for _, s := range src {
			v := s[lane]
			for i := range size {
				b[i] = byte(v >> (8 * i))
			}
			b = b[size:]
		}
	}
	return 0, 0, ""
}

// move copies within the memory of each thread in mask.
func (p *private) move(mask uint32, moves []move) {
	for m := mask; m != 0; m &= m - 1 {
		base := bits.TrailingZeros32(m) * p.size
		for _, v := range moves {
			copy(p.data[base+v.to:][:v.n], p.data[base+v.from:])
		}
	}
}
