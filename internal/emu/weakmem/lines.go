package weakmem

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

const lineBytes = 128 // see Config.Lines

// whole reports whether a strong access of the block moves lines of an allocation as a whole.
func (b *Block) whole(s *Allocation, how *How) bool {
	lines := b.memory.config.Lines
	return lines != nil && how.Order != Weak && !how.Shared && lines(b.grid.device, s)
}

// tears reports whether a strong access to n bytes of an allocation happens word by word.
func (b *Block) tears(s *Allocation, n uint64, how *How) bool {
	c := &b.memory.config
	return c.Lines != nil && !c.Plain && n > 8 && how.Order != Weak && !how.Shared && !c.Lines(b.grid.device, s)
}

// loadWords loads the words of a run one by one, in any order. Stores may become visible
// between them.
func (b *Block) loadWords(warp int, r *run, addr *alu.Lanes, size int, dst []*alu.Lanes, how How) *Fault {
	var words [64]struct{ lane, at int } // 32 lanes of at most 16 bytes
	n, step := 0, min(8, r.each)
	from := *addr // a register of dst may be that of the address
	for m := r.mask; m != 0; m &= m - 1 {
		for at := 0; at < r.each; at += step {
			i := int(b.memory.rand() >> 33 % uint64(n+1))
			words[n], words[i] = words[i], struct{ lane, at int }{bits.TrailingZeros32(m), at}
			n++
		}
	}
	for _, w := range words[:n] {
		at := from
		at[w.lane] += uint64(w.at)
		if how.Shade != nil {
			how.Shade.first = w.at / size
		}
		if f := b.Load(warp, 1<<w.lane, &at, size, dst[w.at/size:(w.at+step)/size], how); f != nil {
			return f
		}
		b.memory.Tick()
	}
	if how.Shade != nil {
		how.Shade.first = 0
	}
	return nil
}

// lines are the units of all whole lines that some of these units are in.
func (p *pending) lines(units uint64) (all uint64) {
	const line = 1<<(lineBytes/8) - 1
	for at := (p.addr + lineBytes - 1) &^ (lineBytes - 1); at+lineBytes <= p.addr+p.n; at += lineBytes {
		if m := uint64(line) << ((at - p.addr&^7) / 8); units&m != 0 {
			all |= m
		}
	}
	return all
}

// backward copies words of size bytes from memory that another process may store to, each at once and
// the last one first. reveal stores them first word first.
func backward(dst, src []byte, size int) {
	for i := len(src) - size; i >= 0; i -= size {
		put(dst[i:], size, strongGet(src[i:], size))
	}
}
