package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// undefined is the value that a thread gets from one that does not take part, and from
// local memory that it has not written.
const undefined uint64 = 0xdeadbeef

// shuffle is shfl. Sources: value, lane or distance, clamp and segment mask, member mask.
func shuffle(mode string) alu.Func {
	return func(mask uint32, dst, src []*alu.Lanes) {
		value := *src[0]
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			b, c := int(src[1][lane]&31), src[2][lane]
			segment := int(c >> 8 & 31)
			last := lane&segment | int(c&31)&^segment
			first := lane & segment
			from, ok := 0, false
			switch mode {
			case "up": // the clamp is a lower bound here
				from, ok = lane-b, lane-b >= last
			case "down":
				from, ok = lane+b, lane+b <= last
			case "bfly":
				from, ok = lane^b, lane^b <= last
			case "idx":
				from = first | b&^segment
				ok = from <= last
			}
			v := value[lane]
			if ok && mask>>from&1 != 0 {
				v = value[from]
			} else if ok {
				v = undefined
			}
			dst[0][lane] = v & 0xffffffff
			if len(dst) > 1 {
				dst[1][lane] = uint64(b2i(ok))
			}
		}
	}
}

// vote is vote. Sources: predicate, member mask.
func vote(mode string) alu.Func {
	return func(mask uint32, dst, src []*alu.Lanes) {
		var ballot uint32
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			ballot |= uint32(src[0][lane]&1) << lane
		}
		var v uint64
		switch mode {
		case "all":
			v = uint64(b2i(ballot == mask))
		case "any":
			v = uint64(b2i(ballot != 0))
		case "uni":
			v = uint64(b2i(ballot == 0 || ballot == mask))
		case "ballot":
			v = uint64(ballot)
		}
		fill(dst[0], mask, v)
	}
}

// match is match. Sources: value, member mask.
func match(mode string) alu.Func {
	return func(mask uint32, dst, src []*alu.Lanes) {
		value := *src[0]
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			var same uint32
			for o := mask; o != 0; o &= o - 1 {
				if i := bits.TrailingZeros32(o); value[i] == value[lane] {
					same |= 1 << i
				}
			}
			if mode == "all" && same != mask {
				same = 0
			}
			dst[0][lane] = uint64(same)
			if len(dst) > 1 {
				dst[1][lane] = uint64(b2i(same != 0))
			}
		}
	}
}

// reduce is redux. Sources: value, member mask.
func reduce(op string, signed bool) alu.Func {
	return func(mask uint32, dst, src []*alu.Lanes) {
		v := uint32(src[0][bits.TrailingZeros32(mask)])
		for m := mask & (mask - 1); m != 0; m &= m - 1 {
			x := uint32(src[0][bits.TrailingZeros32(m)])
			switch op {
			case "add":
				v += x
			case "and":
				v &= x
			case "or":
				v |= x
			case "xor":
				v ^= x
			default:
				less := x < v
				if signed {
					less = int32(x) < int32(v)
				}
				if less == (op == "min") {
					v = x
				}
			}
		}
		fill(dst[0], mask, uint64(v))
	}
}

// elect chooses one of the threads, the first.
func elect(mask uint32, dst, _ []*alu.Lanes) {
	leader := bits.TrailingZeros32(mask)
	fill(dst[0], mask, uint64(leader))
	if len(dst) > 1 {
		fill(dst[1], mask, 0)
		dst[1][leader] = 1
	}
}
