package rendezvous

import (
	"bytes"
	"encoding/binary"
)

// Parts of an AllGather are mostly alike: thousands of ranks describe themselves in the same
// words. So each part travels as its differences from the part before it:
//
//	length of the part, then until there are so many bytes:
//	  n, n bytes        that are new
//	  skip, n           n bytes from the part before, skip behind the last ones taken
//
// all numbers as uvarints. The profiles of ranks shrink to a tenth. Each new byte costs a search
// in the next bytes of the part before.
const (
	compacted = 8 << 10 // longer parts travel as they are
	ahead     = 256     // how far the search goes
	shortest  = 8       // number of bytes that are taken from the part before
)

// parts codes parts of an AllGather.
func (c *Coder) parts(v *[][]byte) {
	if c.reading {
		*v = c.readParts()
		return
	}
	total := 0
	for _, p := range *v {
		total += len(p)
	}
	n := len(*v)
	c.short(&n)
	c.short(&total)
	var last []byte
	for _, p := range *v {
		c.b = appendPart(binary.AppendUvarint(c.b, uint64(len(p))), p, last)
		last = p
	}
}

func appendPart(b, part, last []byte) []byte {
	if len(part) > compacted {
		last = nil
	}
	from := 0 // offset in last, behind the bytes that were taken
	for len(part) > 0 {
		fresh, at, n := match(part, last[from:])
		b = append(binary.AppendUvarint(b, uint64(fresh)), part[:fresh]...)
		if part = part[fresh:]; len(part) > 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(at)), uint64(n))
			part, from = part[n:], from+at+n
		}
	}
	return b
}

// match finds the first bytes of part, after fresh new ones, that are also in last: n bytes at
// offset at.
func match(part, last []byte) (fresh, at, n int) {
	if len(last) < shortest {
		return len(part), 0, 0
	}
	for fresh = 0; fresh+shortest <= len(part); fresh++ {
		at := bytes.Index(last[:min(len(last), ahead+fresh)], part[fresh:fresh+shortest])
		if at < 0 {
			continue
		}
		for n = shortest; fresh+n < len(part) && at+n < len(last) && part[fresh+n] == last[at+n]; n++ {
		}
		return fresh, at, n
	}
	return len(part), 0, 0
}

// readParts reads what parts has written. The parts lie one behind the other.
func (c *Coder) readParts() [][]byte {
	var n, total int
	c.count(&n, MaxRanks)
	c.count(&total, MaxGather)
	if c.bad || n > len(c.b) {
		c.bad = true
		return nil
	}
	parts := make([][]byte, n)
	all := make([]byte, 0, min(total, 64*min(len(c.b), MaxGather/64))) // 64 for each byte that came
	var last []byte
	for i := range parts {
		size := c.uvarint(min(MaxBlob, total))
		total -= size
		begin, from := len(all), 0
		for len(all)-begin < size && !c.bad {
			left := size - (len(all) - begin)
			fresh := c.uvarint(left)
			all = append(all, c.take(fresh)...)
			if left -= fresh; left == 0 {
				break
			}
			from += c.uvarint(len(last) - from)
			taken := c.uvarint(min(left, len(last)-from))
			c.bad = c.bad || taken == 0
			all = append(all, last[from:from+taken]...)
			from += taken
		}
		if c.bad {
			return nil
		}
		parts[i] = all[begin:len(all):len(all)]
		last = parts[i]
	}
	c.bad = c.bad || total != 0
	return parts
}

// uvarint reads a number of at most limit.
func (c *Coder) uvarint(limit int) int {
	v, n := binary.Uvarint(c.b)
	if c.bad || n <= 0 || v > uint64(max(limit, 0)) {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return int(v)
}
