package alu

import (
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// An order is how two operands compare, as a bit so that sets of them can be named.
type order uint8

const (
	less order = 1 << iota
	equal
	greater
	unordered // one is a NaN
)

// comparisons are true for these orders. For integers none is unordered.
var comparisons = map[string]order{
	"eq": equal, "ne": less | greater, "lt": less, "le": less | equal, "gt": greater, "ge": greater | equal,
	"lo": less, "ls": less | equal, "hi": greater, "hs": greater | equal,
	"equ": equal | unordered, "neu": less | greater | unordered, "ltu": less | unordered, "leu": less | equal | unordered,
	"gtu": greater | unordered, "geu": greater | equal | unordered,
	"num": less | equal | greater, "nan": unordered,
}

func orderOf[T integer | float64](a, b T) order {
	switch {
	case a < b:
		return less
	case a > b:
		return greater
	case a == b:
		return equal
	}
	return unordered
}

// testOf is the comparison of an instruction on values of a type; of packed types, on an element.
func testOf(in *ptx.Instr, t ptx.Type) (func(a, b uint64) bool, bool) {
	var want order
	for _, m := range in.Mods {
		if w, ok := comparisons[m]; ok {
			want = w
			break
		}
	}
	if f := formatOf(t); f != nil {
		if in.Has("ftz") {
			return func(a, b uint64) bool { return orderOf(f.value(f.flush(a)), f.value(f.flush(b)))&want != 0 }, want != 0
		}
		return func(a, b uint64) bool { return orderOf(f.value(a), f.value(b))&want != 0 }, want != 0
	}
	test, ok := byType(t, testInt[uint16], testInt[int16], testInt[uint32], testInt[int32], testInt[uint64],
		testInt[int64])
	if !ok || want == 0 {
		return nil, false
	}
	return test(want), true
}

// joinOf is how a comparison is joined with the third source, nil if it is not.
func joinOf(in *ptx.Instr) func(p bool, c uint64) bool {
	switch {
	case in.Has("and"):
		return func(p bool, c uint64) bool { return p && c != 0 }
	case in.Has("or"):
		return func(p bool, c uint64) bool { return p || c != 0 }
	case in.Has("xor"):
		return func(p bool, c uint64) bool { return p != (c != 0) }
	}
	return nil
}

// makeSetp compares. Of p|q the second is the result of the opposite comparison,
// of packed types that of the upper element.
func makeSetp(in *ptx.Instr) (Op, bool) {
	t := last(in)
	test, ok := testOf(in, t)
	if !ok || len(in.Operands) == 0 {
		return Op{}, false
	}
	join := joinOf(in)
	srcs := 3
	if join == nil {
		srcs, join = 2, func(p bool, _ uint64) bool { return p }
	}
	both := in.Operands[0].Kind == ptx.PairOperand
	switch {
	case t == ptx.F16x2 || t == ptx.BF16x2:
		return pair(ptx.Pred, srcs, func(a, b, c, _ uint64) (uint64, uint64) {
			return truth(join(test(a&0xffff, b&0xffff), c)), truth(join(test(a>>16&0xffff, b>>16&0xffff), c))
		}), both
	case both:
		return pair(ptx.Pred, srcs, func(a, b, c, _ uint64) (uint64, uint64) {
			p := test(a, b)
			return truth(join(p, c)), truth(join(!p, c))
		}), true
	case srcs == 3:
		return ternary(ptx.Pred, func(a, b, c uint64) uint64 { return truth(join(test(a, b), c)) }), true
	}
	return predicate(test), true
}

// makeSet is setp whose result is 1.0 or, of integers, all bits set.
func makeSet(in *ptx.Instr) (Op, bool) {
	if len(in.Types) != 2 {
		return Op{}, false
	}
	d, t := in.Types[0], in.Types[1]
	test, ok := testOf(in, t)
	yes := ones(d.Bits())
	if f := formatOf(d); f != nil {
		yes = f.round(1, nearest)
	}
	set := func(p bool) uint64 {
		if p {
			return yes
		}
		return 0
	}
	join := joinOf(in)
	srcs := 3
	if join == nil {
		srcs, join = 2, func(p bool, _ uint64) bool { return p }
	}
	one := func(a, b, c uint64) uint64 { return set(join(test(a, b), c)) }
	if t == ptx.F16x2 || t == ptx.BF16x2 {
		half := one
		one = func(a, b, c uint64) uint64 {
			return half(a>>16&0xffff, b>>16&0xffff, c)<<16 | half(a&0xffff, b&0xffff, c)
		}
		ok = ok && d == t
	}
	if srcs == 3 {
		return ternary(d, one), ok
	}
	return binary(d, func(a, b uint64) uint64 { return one(a, b, 0) }), ok
}

// makeTestp asks for the class of a number.
func makeTestp(in *ptx.Instr) (Op, bool) {
	f := formatOf(last(in))
	if f != &f32 && f != &f64 {
		return Op{}, false
	}
	for name, test := range map[string]func(magnitude uint64) bool{
		"finite":     func(m uint64) bool { return m <= f.max },
		"infinite":   func(m uint64) bool { return m == f.inf },
		"number":     func(m uint64) bool { return m < f.least },
		"notanumber": func(m uint64) bool { return m >= f.least },
		"normal":     func(m uint64) bool { return m <= f.max && m >= 1<<f.man || m == 0 },
		"subnormal":  func(m uint64) bool { return m != 0 && m < 1<<f.man },
	} {
		if in.Has(name) {
			return unary(ptx.Pred, func(a uint64) uint64 { return truth(test(a & (f.sign() - 1))) }), true
		}
	}
	return Op{}, false
}
