package kernels

import "fmt"

// CombineAll is dst = srcs[0] ⊕ srcs[1] ⊕ …, from the left. Sources whose bit
// is set in contributions (bit i for srcs[i]) are contributions of ranks: pre is
// applied to them, see CombineIn. With finish the result is finished, see Finish. A
// single source that is no contribution is copied.
//
// It differs from a row of Combine for sums and products of 16- and 8-bit
// floats: they are accumulated in float32 and rounded once, at the end, and a
// scaled contribution is not rounded before it is added. The GPU's kernels give
// the same bits.
//
// There are 1 to 64 sources, or any number if all or none of them are
// contributions (contributions is ^0 or 0). All are as long as dst; dst may start
// where any of them does.
func (r *Reducer) CombineAll(dst []byte, srcs [][]byte, contributions uint64, finish bool) {
	if len(srcs) < 1 || len(srcs) > 64 && contributions+1 > 1 {
		panic(fmt.Sprintf("kernels: combine %d sources, want 1 to 64", len(srcs)))
	}
	for _, src := range srcs {
		r.check("combine", dst, src, src)
	}
	if r.load == nil {
		contributions = 0
	}
	if len(srcs) == 1 && contributions&1 == 0 {
		copy(dst, srcs[0])
	} else {
		r.combineAll(dst, srcs, contributions)
	}
	if finish && r.finish != nil {
		r.finish(dst, dst, dst)
	}
}

// combineAll is CombineAll without finish, except for a single source that is only copied.
func (r *Reducer) combineAll(dst []byte, srcs [][]byte, contributions uint64) {
	if r.kind != KindMax && r.kind != KindMin && r.kind != KindUser {
		switch r.t {
		case Float16:
			combineAllNarrow[F16](dst, srcs, contributions, r.params)
			return
		case BFloat16:
			combineAllNarrow[BF16](dst, srcs, contributions, r.params)
			return
		case Float8E4M3:
			combineAllNarrow[F8E4M3](dst, srcs, contributions, r.params)
			return
		case Float8E5M2:
			combineAllNarrow[F8E5M2](dst, srcs, contributions, r.params)
			return
		}
	}
	// Block by block through v, since dst may be a source.
	s := scratch.Get().(*[2][]byte)
	most := len(s[0]) / r.unit * r.unit
	for at := 0; at < len(dst); {
		v := s[0][:min(most, len(dst)-at)]
		end := at + len(v)
		for i, src := range srcs {
			in := src[at:end]
			switch contributed := contributions>>min(i, 63)&1 == 1; {
			case i == 0 && contributed:
				r.load(v, in, in)
			case i == 0:
				copy(v, in)
			case contributed:
				r.combineIn(v, v, in)
			default:
				r.combine(v, v, in)
			}
		}
		at += copy(dst[at:], v)
	}
	scratch.Put(s)
}

// combineAllNarrow is a sum or a product of narrow floats in float32.
func combineAllNarrow[T narrow](dst []byte, srcs [][]byte, contributions uint64, p params) {
	var sum, next [block]float32
	var room [block]T // dst and srcs may start anywhere
	for at := 0; at < len(dst); {
		n := min(block, (len(dst)-at)/sizeOf[T]())
		elements, v := room[:n], sum[:n]
		raw := bytesOf(elements)
		for i, src := range srcs {
			copy(raw, src[at:])
			x := v
			if i > 0 {
				x = next[:n]
			}
			widen(x, elements)
			if contributions>>min(i, 63)&1 == 1 {
				scale := float32(p.scale)
				for j := range x {
					x[j] *= scale
				}
			}
			if i > 0 {
				accumulate(v, x, p.kind == KindProd)
			}
		}
		round(elements, v)
		at += copy(dst[at:], raw)
	}
}

// accumulate is v += x, or v *= x.
func accumulate(v, x []float32, product bool) {
	x = x[:len(v)]
	if product {
		for i := range v {
			v[i] *= x[i]
		}
		return
	}
	for i := range v {
		v[i] += x[i]
	}
}
