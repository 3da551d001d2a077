package bench

import (
	"bytes"
	"crypto/subtle"

	"github.com/ringo-go/ringo/mem"
)

// A pattern is one period of elements, or all there are if that is less.
type pattern struct {
	bytes []byte
	size  int // of an element
}

// runs calls f with the bytes of elements [from, from+count) in order, in as
// few pieces as the period allows, and the offset of each piece.
func (t pattern) runs(from, count int, f func(at int, run []byte)) {
	from %= period
	for at, left := 0, count*t.size; left > 0; {
		run := t.bytes[from*t.size:]
		run = run[:min(len(run), left)]
		f(at, run)
		at, left, from = at+len(run), left-len(run), 0
	}
}

// fill writes elements [from, …) into dst.
func (t pattern) fill(dst []byte, from int) {
	t.runs(from, len(dst)/t.size, func(at int, run []byte) { copy(dst[at:], run) })
}

// poison writes the complement of elements [from, …) into dst: whatever is not
// overwritten is certain to be counted as wrong.
func (t pattern) poison(dst []byte, from int) {
	t.runs(from, len(dst)/t.size, func(at int, run []byte) { subtle.XORBytes(dst[at:], run, ones[:len(run)]) })
}

var ones = bytes.Repeat([]byte{0xff}, period*8)

// wrong counts the elements of got that differ from elements [from, …).
func (t pattern) wrong(got []byte, from int) (n int64) {
	t.runs(from, len(got)/t.size, func(at int, run []byte) {
		have := got[at : at+len(run)]
		if bytes.Equal(have, run) {
			return
		}
		n += pattern{run, t.size}.differ(have)
	})
	return n
}

// differ counts the elements of got that differ from the elements of t.
func (t pattern) differ(got []byte) (n int64) {
	for i := 0; i < len(got); i += t.size {
		if !bytes.Equal(got[i:i+t.size], t.bytes[i:i+t.size]) {
			n++
		}
	}
	return n
}

// patterns keeps the patterns of one operation, in memory that is used again for the
// next: collecting garbage would disturb the measurements.
type patterns struct {
	made map[int]pattern
	free [][]byte
}

// forget makes way for other data.
func (t *patterns) forget() {
	for _, old := range t.made {
		t.free = append(t.free, old.bytes[:cap(old.bytes)])
	}
	t.made = map[int]pattern{}
}

// of is the pattern of a rank's contribution or of the result.
func (t *patterns) of(d *data, rank int) pattern {
	if have, ok := t.made[rank]; ok {
		return have
	}
	var mem []byte
	if n := len(t.free); n > 0 {
		mem, t.free = t.free[n-1], t.free[:n-1]
	} else {
		mem = make([]byte, period*8)
	}
	made := pattern{mem[:d.length*d.el.size], d.el.size}
	if rank == combined {
		d.result(made.bytes)
	} else {
		d.contribution(made.bytes, rank)
	}
	t.made[rank] = made
	return made
}

// A buffer is memory with a fence on both sides, to find writes outside of it.
type buffer struct{ all []byte }

const fence = 64

func newBuffer(n int64) buffer { return buffer{make([]byte, n+2*fence)} }

// part is n bytes from at on.
func (b buffer) part(at, n int) []byte { return b.all[fence+at : fence+at+n : fence+at+n] }

// capacity is how many bytes parts can have.
func (b buffer) capacity() int { return len(b.all) - 2*fence }

// length is how many of the buffer's first bytes reach to the end of a part, 0 if
// the part is another buffer's.
func (b buffer) length(part []byte) int {
	if len(part) == 0 || !mem.Host(part).Overlaps(mem.Host(b.all)) {
		return 0
	}
	return int(mem.Host(part).Ptr()-mem.Host(b.all).Ptr()) - fence + len(part)
}

// guard writes the fences around the first n bytes.
func (b buffer) guard(n int) {
	for i := range fence {
		b.all[i], b.all[fence+n+i] = fenceByte(i), fenceByte(i)
	}
}

// trespassed counts the bytes of the fences that have changed.
func (b buffer) trespassed(n int) (bad int64) {
	for i := range fence {
		if b.all[i] != fenceByte(i) {
			bad++
		}
		if b.all[fence+n+i] != fenceByte(i) {
			bad++
		}
	}
	return bad
}

func fenceByte(i int) byte { return byte(0xc5 ^ i) }
