package kernels

import (
	"math"
	"math/bits"
)

type integer interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64
}

type float interface{ float32 | float64 }

// The loops in plain Go, which define ⊕: dst[i] = a[i] ⊕ b[i] for slices of equal length, where dst may be a or b.
// Integers wrap as Go's do; for floats, every NaN that ⊕ makes is replaced by canonical.

func addInt[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func mulInt[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func maxInt[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func minInt[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

// addScaledInt is dst[i] = a[i] + b[i]·s.
func addScaledInt[T integer](dst, a, b []T, s T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]*s
	}
}

// scaleInt is dst[i] = a[i]·s.
func scaleInt[T integer](dst, a []T, s T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * s
	}
}

func and[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

func or[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

func xor[T integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
}

// divide is x[i] = x[i] / n, truncating toward zero. n need not be a T: the
// sum of 200 int8 has an average.
func divide[T integer](x []T, n int) {
	switch zero := T(0); {
	case n == 1:
	case sizeOf[T]() == 8 && ^zero < 0:
		for i := range x {
			x[i] = T(int64(x[i]) / int64(n))
		}
	case sizeOf[T]() == 8:
		for i := range x {
			x[i] = T(uint64(x[i]) / uint64(n))
		}
	case uint64(n) > math.MaxUint32:
		clear(x)
	default:
		divideShort(x, uint64(n))
	}
}

// divideShort is divide for 32 bits and fewer: x/n is the upper half of x times
// the reciprocal ⌈2⁶⁴/n⌉ (Lemire, Kaser and Kurz, "Faster remainder by direct
// computation", 2019, theorem 1), without a division an element.
func divideShort[T integer](x []T, n uint64) {
	reciprocal := math.MaxUint64/n + 1
	for i, v := range x {
		sign := int64(v) >> 63 // 0 or −1
		size := uint64((int64(v) ^ sign) - sign)
		q, _ := bits.Mul64(reciprocal, size)
		x[i] = T((int64(q) ^ sign) - sign)
	}
}

// canonical is the one NaN of T that ⊕ makes.
func canonical[T float]() T {
	if sizeOf[T]() == 4 {
		return T(math.Float32frombits(nanF32))
	}
	return T(math.Float64frombits(nanF64))
}

func addFloat[T float](dst, a, b []T) {
	nan := canonical[T]()
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v := a[i] + b[i]
		if v != v {
			v = nan
		}
		dst[i] = v
	}
}

func mulFloat[T float](dst, a, b []T) {
	nan := canonical[T]()
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v := a[i] * b[i]
		if v != v {
			v = nan
		}
		dst[i] = v
	}
}

// maxFloat is not Go's max, for which a NaN wins.
func maxFloat[T float](dst, a, b []T) {
	nan := canonical[T]()
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		switch x, y := a[i], b[i]; {
		case y == y && x == x:
			dst[i] = max(x, y) // orders −0 below +0
		case x == x:
			dst[i] = x
		case y == y:
			dst[i] = y
		default:
			dst[i] = nan
		}
	}
}

func minFloat[T float](dst, a, b []T) {
	nan := canonical[T]()
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		switch x, y := a[i], b[i]; {
		case y == y && x == x:
			dst[i] = min(x, y)
		case x == x:
			dst[i] = x
		case y == y:
			dst[i] = y
		default:
			dst[i] = nan
		}
	}
}

// addScaledFloat is dst[i] = a[i] + b[i]·s, rounded after each operation.
func addScaledFloat[T float](dst, a, b []T, s T) {
	nan := canonical[T]()
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v := a[i] + T(b[i]*s) // the conversion forbids a fused operation
		if v != v {
			v = nan
		}
		dst[i] = v
	}
}

// scaleFloat is dst[i] = a[i]·s.
func scaleFloat[T float](dst, a []T, s T) {
	nan := canonical[T]()
	a = a[:len(dst)]
	for i := range dst {
		v := a[i] * s
		if v != v {
			v = nan
		}
		dst[i] = v
	}
}
