//go:build !purego

package kernels

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C _asm .

// A vectorLoop is dst = a ⊕ b for n bytes, a multiple of grain, in assembly. A
// scaledLoop is dst = a + b·s or dst = b·s, s being the bits of the scalar: of
// an integer of the type, a float64, or a float32 for all other floats.
type (
	vectorLoop func(dst, a, b *byte, n int)
	scaledLoop func(dst, a, b *byte, n int, s uint64)
)

// grain is the unit of assembly in bytes: lengths are multiples of it.
const grain = 64

// vectors are the loops of one instruction set.
type vectors struct {
	combine         [numTypes][KindPreMulSum]vectorLoop
	combineIn, load [numTypes]scaledLoop
}

var (
	avx2Loops   = implementation{"avx2", avx2.improve}
	avx512Loops = implementation{"avx512", avx512.improve}

	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasF16C
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

	best = implementations()[0]
)

// implementations are those that this processor has, the best first.
func implementations() []implementation {
	switch {
	case hasAVX512:
		return []implementation{avx512Loops, avx2Loops, plainGo}
	case hasAVX2:
		return []implementation{avx2Loops, plainGo}
	}
	return []implementation{plainGo}
}

// improve replaces loops by assembly, which leaves the last bytes, fewer than grain, to the loops of l.
func (v *vectors) improve(l loops, t DataType, p params) loops {
	kind := p.kind
	if p.scaled() {
		kind = KindSum
	}
	rest := l.combine
	l.combine = vector(v.combine[t][kind], rest)
	if l.load == nil {
		l.combineIn = l.combine
		return l
	}
	s := p.factor
	switch {
	case t == Float64:
		s = math.Float64bits(p.scale)
	case types[t].family == floating:
		s = uint64(math.Float32bits(float32(p.scale)))
	}
	l.combineIn = scaled(v.combineIn[t], s, l.combineIn)
	l.load = scaled(v.load[t], s, l.load)
	return l
}

func vector(f vectorLoop, rest loop) loop {
	return func(dst, a, b []byte) {
		for len(dst) >= grain {
			n := min(len(dst)&^(grain-1), most)
			f(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), n)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		if len(dst) > 0 {
			rest(dst, a, b)
		}
	}
}

func scaled(f scaledLoop, s uint64, rest loop) loop {
	return vector(func(dst, a, b *byte, n int) { f(dst, a, b, n, s) }, rest)
}
