package kernels

// loops are the functions of a Reducer. load is nil for a copy; finish is nil if it does
// nothing.
type loops struct{ combine, combineIn, load, finish loop }

// plain are the loops of a valid reduction of t in Go. They define what every
// other implementation has to compute.
func plain(t DataType, k params) loops {
	switch t {
	case Int8:
		return intLoops[int8](k)
	case Uint8:
		return intLoops[uint8](k)
	case Int32:
		return intLoops[int32](k)
	case Uint32:
		return intLoops[uint32](k)
	case Int64:
		return intLoops[int64](k)
	case Uint64:
		return intLoops[uint64](k)
	case Float32:
		return floatLoops[float32](k)
	case Float64:
		return floatLoops[float64](k)
	case Float16:
		return narrowLoops[F16](k, 0x7c00)
	case BFloat16:
		return narrowLoops[BF16](k, 0x7f80)
	case Float8E4M3:
		return narrowLoops[F8E4M3](k, 0x7e)
	default:
		return narrowLoops[F8E5M2](k, 0x7c)
	}
}

func intLoops[T integer](k params) loops {
	f := addInt[T]
	switch k.kind {
	case KindProd:
		f = mulInt[T]
	case KindMax:
		f = maxInt[T]
	case KindMin:
		f = minInt[T]
	case KindBitAnd:
		f = and[T]
	case KindBitOr:
		f = or[T]
	case KindBitXor:
		f = xor[T]
	}
	l := loops{combine: element(f)}
	l.combineIn = l.combine
	switch k.kind {
	case KindAvg:
		n := k.ranks
		l.finish = element(func(dst, _, _ []T) { divide(dst, n) })
	case KindPreMulSum:
		s := T(k.factor)
		l.combineIn = element(func(dst, a, b []T) { addScaledInt(dst, a, b, s) })
		l.load = element(func(dst, a, _ []T) { scaleInt(dst, a, s) })
	}
	return l
}

func floatLoops[T float](k params) loops {
	f := addFloat[T]
	switch k.kind {
	case KindProd:
		f = mulFloat[T]
	case KindMax:
		f = maxFloat[T]
	case KindMin:
		f = minFloat[T]
	}
	l := loops{combine: element(f)}
	l.combineIn = l.combine
	if k.scaled() {
		s := T(k.scale)
		l.combineIn = element(func(dst, a, b []T) { addScaledFloat(dst, a, b, s) })
		l.load = element(func(dst, a, _ []T) { scaleFloat(dst, a, s) })
	}
	return l
}

func narrowLoops[T narrow](k params, inf T) loops {
	var l loops
	switch k.kind {
	case KindProd:
		l.combine = element(func(dst, a, b []T) { combineNarrow(dst, a, b, KindProd) })
	case KindMax:
		l.combine = element(func(dst, a, b []T) { selectNarrow(dst, a, b, false, inf) })
	case KindMin:
		l.combine = element(func(dst, a, b []T) { selectNarrow(dst, a, b, true, inf) })
	default:
		l.combine = element(func(dst, a, b []T) { combineNarrow(dst, a, b, KindSum) })
	}
	l.combineIn = l.combine
	if k.scaled() {
		s := float32(k.scale)
		l.combineIn = element(func(dst, a, b []T) { addScaledNarrow(dst, a, b, s) })
		l.load = element(func(dst, a, _ []T) { scaleNarrow(dst, a, s) })
	}
	return l
}

// userLoops compute dst = a ⊕ b by a user's function, which is dst = dst ⊕ src, for multiples of unit bytes at a time.
func userLoops(t DataType, unit int, f func(t DataType, dst, src []byte)) loops {
	combine := func(dst, a, b []byte) {
		if len(dst) == 0 {
			return
		}
		if !sameMemory(dst, b) {
			copy(dst, a)
			f(t, dst, b)
			return
		}
		// dst is b: b is saved before a overwrites it.
		s := scratch.Get().(*[2][]byte)
		for len(dst) > 0 {
			n := min(len(dst), len(s[0])/unit*unit)
			src := s[0][:n]
			copy(src, b)
			copy(dst[:n], a)
			f(t, dst[:n], src)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		scratch.Put(s)
	}
	return loops{combine: combine, combineIn: combine}
}
