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
	size  int     // of a thread
	owner []int16 // see code
	data  []byte  // of thread after thread
}

func newPrivate(c *code) private {
	n := len(c.owner)
	return private{size: n, owner: c.owner, data: make([]byte, 32*n)}
}

// clear makes it unwritten: it is full of the undefined value. To read that is no fault,
// since compilers load variables before they know whether they use what they got.
func (p *private) clear() {
	for i := range p.data {
		p.data[i] = byte(undefined >> (i % 4 * 8))
	}
}

// check finds what is wrong with an access to n bytes.
func (p *private) check(addr uint64, n int) (weakmem.FaultKind, string) {
	switch {
	case addr >= uint64(p.size) || addr+uint64(n) > uint64(p.size) || p.owner[addr] == 0 ||
		p.owner[addr] != p.owner[addr+uint64(n)-1]:
		return weakmem.OutOfBounds, "outside of the thread's local variables"
	case addr%uint64(n) != 0:
		return weakmem.Misaligned, fmt.Sprintf("local address has to be a multiple of %d", n)
	}
	return 0, ""
}

// load reads elements of the threads in mask, as weakmem.Block does. It returns the
// first lane whose access is wrong, with the reason.
func (p *private) load(mask uint32, addr *alu.Lanes, size int, dst []*alu.Lanes) (lane int, kind weakmem.FaultKind,
	why string) {
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if kind, why := p.check(addr[lane], size*len(dst)); why != "" {
			return lane, kind, why
		}
		at := lane*p.size + int(addr[lane])
		for _, d := range dst {
			v := uint64(0)
			for i := range size {
				v |= uint64(p.data[at+i]) << (8 * i)
			}
			d[lane] = v
			at += size
		}
	}
	return 0, 0, ""
}

func (p *private) store(mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes) (lane int, kind weakmem.FaultKind,
	why string) {
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if kind, why := p.check(addr[lane], size*len(src)); why != "" {
			return lane, kind, why
		}
		at := lane*p.size + int(addr[lane])
		for _, s := range src {
			v := s[lane]
			for i := range size {
				p.data[at+i] = byte(v >> (8 * i))
			}
			at += size
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
