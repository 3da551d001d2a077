package alu

import "github.com/ringo-go/ringo/internal/emu/ptx"

// elementOf is the type of the two elements of a packed type; other types stay.
func elementOf(t ptx.Type) ptx.Type {
	switch t {
	case ptx.F16x2:
		return ptx.F16
	case ptx.BF16x2:
		return ptx.BF16
	case ptx.U16x2:
		return ptx.U16
	case ptx.S16x2:
		return ptx.S16
	}
	return t
}

// each1, each2 and each3 apply a function of elements to both of them if the
// type is packed.

func each1(t ptx.Type, f func(a uint64) uint64) func(a uint64) uint64 {
	if elementOf(t) == t {
		return f
	}
	return func(a uint64) uint64 { return join(f(a>>16&0xffff), f(a&0xffff)) }
}

func each2(t ptx.Type, f func(a, b uint64) uint64) func(a, b uint64) uint64 {
	if elementOf(t) == t {
		return f
	}
	return func(a, b uint64) uint64 { return join(f(a>>16&0xffff, b>>16&0xffff), f(a&0xffff, b&0xffff)) }
}

func each3(t ptx.Type, f func(a, b, c uint64) uint64) func(a, b, c uint64) uint64 {
	if elementOf(t) == t {
		return f
	}
	return func(a, b, c uint64) uint64 {
		return join(f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff), f(a&0xffff, b&0xffff, c&0xffff))
	}
}

func join(high, low uint64) uint64 { return high<<16 | low&0xffff }
