package kernels

// narrow are the floats that are computed in float32.
type narrow interface{ F16 | BF16 | F8E4M3 | F8E5M2 }

// block is how many narrow elements are widened at a time: three blocks of
// float32 stay in the first-level cache.
const block = 512

// combineNarrow is dst[i] = round(a[i] ⊕ b[i]), ⊕ being addition or
// multiplication of float32.
func combineNarrow[T narrow](dst, a, b []T, kind Kind) {
	var x, y [block]float32
	for len(dst) > 0 {
		n := min(len(dst), block)
		widen(x[:n], a[:n])
		widen(y[:n], b[:n])
		if kind == KindSum {
			for i := range n {
				x[i] += y[i]
			}
		} else {
			for i := range n {
				x[i] *= y[i]
			}
		}
		round(dst[:n], x[:n])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}

// addScaledNarrow is dst[i] = round(a[i] + round(b[i]·s)).
func addScaledNarrow[T narrow](dst, a, b []T, s float32) {
	var x, y [block]float32
	var t [block]T
	for len(dst) > 0 {
		n := min(len(dst), block)
		widen(y[:n], b[:n])
		for i := range n {
			y[i] *= s
		}
		round(t[:n], y[:n])
		widen(y[:n], t[:n])
		widen(x[:n], a[:n])
		for i := range n {
			x[i] += y[i]
		}
		round(dst[:n], x[:n])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}

// scaleNarrow is dst[i] = round(a[i]·s).
func scaleNarrow[T narrow](dst, a []T, s float32) {
	var x [block]float32
	for len(dst) > 0 {
		n := min(len(dst), block)
		widen(x[:n], a[:n])
		for i := range n {
			x[i] *= s
		}
		round(dst[:n], x[:n])
		dst, a = dst[n:], a[n:]
	}
}

// widen is dst[i] = src[i] as a float32.
func widen[T narrow](dst []float32, src []T) {
	dst = dst[:len(src)]
	switch src := any(src).(type) {
	case []F16:
		for i, v := range src {
			dst[i] = v.Float32()
		}
	case []BF16:
		for i, v := range src {
			dst[i] = v.Float32()
		}
	case []F8E4M3:
		for i, v := range src {
			dst[i] = v.Float32()
		}
	case []F8E5M2:
		for i, v := range src {
			dst[i] = v.Float32()
		}
	}
}

// round is dst[i] = src[i] rounded to nearest even.
func round[T narrow](dst []T, src []float32) {
	src = src[:len(dst)]
	switch dst := any(dst).(type) {
	case []F16:
		for i, v := range src {
			dst[i] = NewF16(v)
		}
	case []BF16:
		for i, v := range src {
			dst[i] = NewBF16(v)
		}
	case []F8E4M3:
		for i, v := range src {
			dst[i] = NewF8E4M3(v)
		}
	case []F8E5M2:
		for i, v := range src {
			dst[i] = NewF8E5M2(v)
		}
	}
}

// selectNarrow is the greater of a[i] and b[i], or the lesser. It compares bit
// patterns: without its sign, the greater pattern is the greater number, and a pattern
// above inf is a NaN.
func selectNarrow[T narrow](dst, a, b []T, lesser bool, inf T) {
	nan := ^T(0) >> 1
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		switch x, y := a[i], b[i]; {
		case x&nan > inf && y&nan > inf:
			dst[i] = nan
		case x&nan > inf:
			dst[i] = y
		case y&nan > inf || (order(x) < order(y)) == lesser:
			dst[i] = x
		default:
			dst[i] = y
		}
	}
}

// order maps the bit patterns of numbers to integers in the same order, −0
// below +0.
func order[T narrow](x T) T {
	if sign := ^(^T(0) >> 1); x&sign == 0 {
		return x | sign
	}
	return ^x
}
