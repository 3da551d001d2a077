package kernels

import (
	"fmt"
	"math"
	"sync/atomic"
)

// A Reducer is the arithmetic of one data type and one reduction among a
// number of ranks. It has no state: any number of goroutines may use it. It
// allocates nothing, except for data that does not start at a multiple of the
// element's size, where a pool may.
//
// A reduction of x over ranks 0, 1, 2 is
//
//	Load(v, x0); CombineIn(v, v, x1); CombineIn(v, v, x2); Finish(v)
//
// in whatever order, and Combine joins two partial results.
//
// All slices of a call have the same length, a multiple of Unit, and may start anywhere.
// The result may be stored over an operand that starts at the same byte; otherwise they
// do not overlap. Other lengths panic.
type Reducer struct {
	params
	loops
	t    DataType
	size int
	unit int // size, or RedOp.Unit
}

// params are the inputs of NewReducer apart from the data type.
type params struct {
	kind   Kind
	ranks  int     // Avg only
	scale  float64 // Avg and PreMulSum
	factor uint64  // PreMulSum of integers
}

// scaled reports whether contributions of floats are multiplied.
func (p params) scaled() bool { return p.kind == KindAvg || p.kind == KindPreMulSum }

// An InvalidError says that there is no such reduction.
type InvalidError struct {
	Type   DataType
	Op     RedOp
	Reason string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("kernels: %v of %v: %s", e.Op, e.Type, e.Reason)
}

// cache holds the Reducers made so far, so that asking again costs a few nanoseconds. Each pair of a type and a kind
// has eight places: the averages over different numbers of ranks, or the different scalars, push each other out.
var cache [numTypes][KindUser][8]atomic.Pointer[cached]

type cached struct {
	scale, factor uint64
	ranks         int
	r             Reducer
}

// NewReducer is the arithmetic of op on elements of type t in a communicator of the given number of ranks. The error is
// an *InvalidError. Asking again for the same gives the same Reducer and allocates nothing, unless op is a user's own,
// or another scalar or number of ranks has taken its place in the cache.
func NewReducer(t DataType, op RedOp, ranks int) (*Reducer, error) {
	if !t.Valid() || op.Kind >= KindUser {
		return newReducer(t, op, ranks, best)
	}
	if op.At != nil {
		read, reason := op.scalar(t)
		if reason != "" {
			return nil, &InvalidError{t, op, reason}
		}
		op = read
	}
	var scale, factor uint64
	n := 0
	switch op.Kind {
	case KindAvg:
		n = ranks
	case KindPreMulSum:
		scale, factor = math.Float64bits(op.Scale), op.Int
	}
	hash := (uint64(n) ^ scale ^ scale>>32 ^ factor*3) * 0x9e3779b97f4a7c15 >> 61
	slot := &cache[t][op.Kind][hash]
	if c := slot.Load(); c != nil && c.ranks == n && c.scale == scale && c.factor == factor && ranks > 0 {
		return &c.r, nil
	}
	r, err := newReducer(t, op, ranks, best)
	if err != nil {
		return nil, err
	}
	c := &cached{scale: scale, factor: factor, ranks: n, r: *r}
	slot.Store(c)
	return &c.r, nil
}

// newReducer is NewReducer with a given implementation and without a cache.
func newReducer(t DataType, op RedOp, ranks int, impl implementation) (*Reducer, error) {
	p := params{kind: op.Kind, ranks: ranks, scale: op.Scale, factor: op.Int}
	reason := noReduction(t, op, ranks)
	if reason == "" && op.Kind == KindPreMulSum && types[t].family != floating && op.Int == 0 {
		var ok bool
		if p.factor, ok = wholeNumber(op.Scale); !ok {
			reason = "the scalar of an integer type has to be an integer of 64 bits"
		}
	}
	if reason != "" {
		return nil, &InvalidError{t, op, reason}
	}
	r := &Reducer{params: p, t: t, size: t.Size(), unit: t.Size()}
	switch {
	case op.Kind == KindUser:
		if op.Unit > 0 {
			r.unit = op.Unit
		}
		r.loops = userLoops(t, r.unit, op.Func)
	default:
		if op.Kind == KindAvg {
			r.scale = 1 / float64(ranks)
		}
		r.loops = impl.improve(plain(t, r.params), t, r.params)
	}
	return r, nil
}

// noReduction says why there is no such reduction, whatever its scalar; "" if there is one.
func noReduction(t DataType, op RedOp, ranks int) string {
	switch {
	case !t.Valid():
		return "no such data type"
	case op.Kind >= numKinds:
		return "no such reduction"
	case ranks < 1:
		return fmt.Sprintf("%d ranks, want at least 1", ranks)
	case op.Kind == KindUser && op.Func == nil:
		return "the function is nil"
	case op.Kind == KindUser && (op.Unit < 0 || op.Unit > MaxUnit || op.Unit%t.Size() != 0):
		return fmt.Sprintf("elements of %d bytes: Unit has to be a multiple of %d up to %d", op.Unit, t.Size(), MaxUnit)
	case op.Kind >= KindBitAnd && op.Kind <= KindBitXor && types[t].family == floating:
		return "bitwise reductions need an integer type"
	}
	return ""
}

// wholeNumber is f as an integer of 64 bits, signed or not; false if f is none.
func wholeNumber(f float64) (uint64, bool) {
	switch {
	case f != math.Trunc(f) || f < -1<<63 || f >= 1<<64:
		return 0, false
	case f < 0:
		return uint64(int64(f)), true
	}
	return uint64(f), true
}

// An implementation replaces some of the plain loops by faster ones.
type implementation struct {
	name    string
	improve func(l loops, t DataType, p params) loops
}

// most is the most bytes of one call of assembly. The Go runtime cannot preempt it: a stop of the world, as for garbage
// collection, waits for its end, some tens of µs.
const most = 1 << 20

// plainGo is the implementation that every processor has.
var plainGo = implementation{"go", func(l loops, _ DataType, _ params) loops { return l }}

// Unit is the size in bytes of an element, or the Unit of a user's own reduction. Data
// may be cut only at multiples of Unit.
func (r *Reducer) Unit() int { return r.unit }

// Combine is dst = a ⊕ b.
func (r *Reducer) Combine(dst, a, b []byte) {
	r.check("combine", dst, a, b)
	r.combine(dst, a, b)
}

// CombineIn is dst = a ⊕ pre(in), where in is a rank's contribution: pre multiplies by
// the scalar for PreMulSum and by 1/ranks for Avg of floats, and changes nothing
// otherwise.
func (r *Reducer) CombineIn(dst, a, in []byte) {
	r.check("combine", dst, a, in)
	r.combineIn(dst, a, in)
}

// Load is dst = pre(in); see CombineIn.
func (r *Reducer) Load(dst, in []byte) {
	r.check("load", dst, in, in)
	if r.load == nil {
		copy(dst, in)
		return
	}
	r.load(dst, in, in)
}

// LoadIsCopy reports whether Load only copies, so that a caller may use the
// contribution itself instead.
func (r *Reducer) LoadIsCopy() bool { return r.load == nil }

// Finish turns the combination of all ranks' contributions into the result. It divides
// by the number of ranks for Avg of integers and does nothing otherwise.
func (r *Reducer) Finish(out []byte) {
	r.check("finish", out, out, out)
	if r.finish != nil {
		r.finish(out, out, out)
	}
}

// Finishes reports whether Finish does anything.
func (r *Reducer) Finishes() bool { return r.finish != nil }

func (r *Reducer) check(what string, dst, a, b []byte) {
	if len(a) != len(dst) || len(b) != len(dst) || len(dst)&(r.size-1) != 0 || r.unit != r.size && len(dst)%r.unit != 0 {
		panic(fmt.Sprintf("kernels: %s %v: %d, %d and %d bytes, want equal multiples of %d",
			what, r.t, len(dst), len(a), len(b), r.unit))
	}
}
