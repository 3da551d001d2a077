package bootstrap

import (
	"bytes"
	"encoding/binary"
)

// Parts of an AllGather are mostly alike: thousands of ranks tell where they are in the same
// words. So each part travels as what differs from the part before it:
//
//	length of the part, then until there are so many bytes:
//	  n, n bytes        that are new
//	  skip, n           n bytes from the part before, skip behind the last ones taken
//
// all numbers as uvarints. Of profiles a tenth is left. It costs a search in the next bytes
// of the part before for each byte that is new.
const (
	compacted = 8 << 10 // parts that are longer travel as they are
	ahead     = 256     // how far the search goes
	shortest  = 8       // that is taken from the part before
)

func appendParts(b []byte, parts [][]byte) []byte {
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	b = appendU32(appendU32(b, len(parts)), total)
	var last []byte
	for _, p := range parts {
		b = appendPart(binary.AppendUvarint(b, uint64(len(p))), p, last)
		last = p
	}
	return b
}

func appendPart(b, part, last []byte) []byte {
	if len(part) > compacted {
		last = nil
	}
	from := 0 // of last, behind what was taken
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

// match says after how many fresh bytes of part something follows that is in last, where, and
// how long it is.
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

// parts reads what appendParts has written. The parts lie one behind the other.
func (f *fields) parts() [][]byte {
	n, total := f.count(maxRanks), f.count(maxGather)
	if f.bad || n > len(f.b) {
		f.bad = true
		return nil
	}
	parts := make([][]byte, n)
	all := make([]byte, 0, min(total, 64*min(len(f.b), maxGather/64))) // memory grows with the bytes that have come
	var last []byte
	for i := range parts {
		size := f.uvarint(min(maxBlob, total))
		total -= size
		begin, from := len(all), 0
		for len(all)-begin < size && !f.bad {
			left := size - (len(all) - begin)
			fresh := f.uvarint(left)
			all = append(all, f.take(fresh)...)
			if left -= fresh; left == 0 {
				break
			}
			from += f.uvarint(len(last) - from)
			taken := f.uvarint(min(left, len(last)-from))
			f.bad = f.bad || taken == 0
			all = append(all, last[from:from+taken]...)
			from += taken
		}
		if f.bad {
			return nil
		}
		parts[i] = all[begin:len(all):len(all)]
		last = parts[i]
	}
	f.bad = f.bad || total != 0
	return parts
}

// uvarint reads a number of at most limit.
func (f *fields) uvarint(limit int) int {
	v, n := binary.Uvarint(f.b)
	if f.bad || n <= 0 || v > uint64(max(limit, 0)) {
		f.bad = true
		return 0
	}
	f.b = f.b[n:]
	return int(v)
}
