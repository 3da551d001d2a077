package weakmem

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// A run is lanes whose access is carried out at once: neighbouring lanes at
// neighbouring addresses, or lanes at the same address.
type run struct {
	addr  uint64
	first int // lane at addr
	lanes int
	each  int  // bytes a lane
	same  bool // all lanes at addr
	mask  uint32
}

// bytes is the length of the run in memory.
func (r *run) bytes() uint64 {
	if r.same {
		return uint64(r.each)
	}
	return uint64(r.lanes * r.each)
}

// nextRun is the run that begins with the first lane of the mask, which is not empty.
func nextRun(mask uint32, addr *alu.Lanes, each int) run {
	first := bits.TrailingZeros32(mask)
	r := run{addr: addr[first], first: first, each: each}
	n := bits.TrailingZeros32(^(mask >> first)) // 32 if all are set
	next := r.addr
	for _, a := range addr[first : first+n] {
		if a != next {
			break
		}
		next += uint64(each)
		r.lanes++
	}
	r.mask = ^uint32(0) >> (32 - r.lanes) << first
	if r.lanes > 1 {
		return r
	}
	if second := mask & (mask - 1); second == 0 || addr[bits.TrailingZeros32(second)] != r.addr {
		return r
	}
	for m := mask; m != 0; m &= m - 1 {
		if l := bits.TrailingZeros32(m); addr[l] == r.addr {
			r.mask |= 1 << l
		}
	}
	r.same = r.mask&(r.mask-1) != 0
	r.lanes = bits.OnesCount32(r.mask)
	return r
}

// firstLane is the run of the first lane alone.
func (r run) firstLane() run {
	return run{addr: r.addr, first: r.first, lanes: 1, each: r.each, mask: 1 << r.first}
}

// scatter loads the registers of neighbouring lanes.
func scatter(r *run, p []byte, size int, dst []*alu.Lanes) {
	for i, d := range dst {
		to := d[r.first:][:r.lanes]
		from := p[i*size:]
		switch size {
		case 4:
			for l := range to {
				to[l] = get(from[l*r.each:], 4)
			}
		case 8:
			for l := range to {
				to[l] = get(from[l*r.each:], 8)
			}
		default:
			for l := range to {
				to[l] = get(from[l*r.each:], size)
			}
		}
	}
}

// spread loads the registers of lanes that read the same.
func spread(r *run, p []byte, size int, dst []*alu.Lanes) {
	for i, d := range dst {
		v := get(p[i*size:], size)
		for m := r.mask; m != 0; m &= m - 1 {
			d[bits.TrailingZeros32(m)] = v
		}
	}
}

// gather puts the registers of a run into p, side by side.
func gather(r *run, p []byte, size int, src []*alu.Lanes) {
	for i, s := range src {
		if r.same {
			put(p[i*size:], size, s[31-bits.LeadingZeros32(r.mask)])
			continue
		}
		from := s[r.first:][:r.lanes]
		to := p[i*size:]
		switch size {
		case 4:
			for l, v := range from {
				put(to[l*r.each:], 4, v)
			}
		case 8:
			for l, v := range from {
				put(to[l*r.each:], 8, v)
			}
		default:
			for l, v := range from {
				put(to[l*r.each:], size, v)
			}
		}
	}
}
