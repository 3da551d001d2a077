package alu

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// An MMA is mma.sync: D = A × B + C for the threads of a warp, who have M × K elements of A, K × N of B and M × N of C
// and D in their registers. Floating-point sums are made in float64 and rounded once: hardware adds in an order, and
// cuts off bits, that the manual leaves open.
type MMA struct {
	m, n, k   int
	a, b      ptx.Type
	acc       ptx.Type // of C and D
	satfinite bool
}

// NewMMA decodes the shape and the types, .row and .col being what there is.
func NewMMA(in *ptx.Instr) (*MMA, error) {
	x := &MMA{satfinite: in.Has("satfinite")}
	for _, mod := range in.Mods {
		if rest, ok := strings.CutPrefix(mod, "m"); ok && strings.Contains(rest, "n") && strings.Contains(rest, "k") {
			m, rest, _ := strings.Cut(rest, "n")
			n, k, _ := strings.Cut(rest, "k")
			x.m, _ = strconv.Atoi(m)
			x.n, _ = strconv.Atoi(n)
			x.k, _ = strconv.Atoi(k)
		}
	}
	if x.m == 0 || x.n != 8 || x.k == 0 || len(in.Types) != 4 || in.Types[0] != in.Types[3] {
		return nil, fmt.Errorf("this shape, or these types, are not emulated")
	}
	x.acc, x.a, x.b = in.Types[0], in.Types[1], in.Types[2]
	return x, nil
}

// elementBits is how many bits an element has in a register: a tf32 fills a register of 32.
func elementBits(t ptx.Type) int {
	if t == ptx.TF32 {
		return 32
	}
	return 8 * t.Size()
}

// packed is how many elements a register of a fragment has.
func packed(t ptx.Type) int { return max(1, 32/elementBits(t)) }

// Registers is how many registers each of D, A, B and C has.
func (x *MMA) Registers() (d, a, b, c int) {
	a = x.m / 8 * x.k / (4 * packed(x.a))
	b = x.k / (4 * packed(x.b))
	c = x.m / 8 * 2
	if x.acc == ptx.F16 {
		c /= 2
	}
	return c, a, b, c
}

// Run is the Func of the instruction: dst is D, src is A, B and C. All threads of the warp take part.
func (x *MMA) Run(mask uint32, dst, src []*Lanes) {
	_, na, nb, _ := x.Registers()
	a, b, c := src[:na], src[na:na+nb], src[na+nb:]
	atA := func(row, k int) (lane, register, part int) {
		p := packed(x.a)
		return row%8*4 + k%(4*p)/p, row/8 + x.m/8*(k/(4*p)), k % p
	}
	atB := func(k, col int) (lane, register, part int) {
		p := packed(x.b)
		return col*4 + k%(4*p)/p, k / (4 * p), k % p
	}
	var out [4]Lanes
	for row := range x.m {
		for col := range x.n {
			lane, register, part := row%8*4+col/2, row/8*2+col%2, 0
			if x.acc == ptx.F16 {
				register, part = row/8, col%2
			}
			sum := x.element(c[register][lane], x.acc, part)
			for k := range x.k {
				la, ra, pa := atA(row, k)
				lb, rb, pb := atB(k, col)
				sum = sum.plus(x.element(a[ra][la], x.a, pa), x.element(b[rb][lb], x.b, pb))
			}
			out[register][lane] |= x.bits(sum) << (16 * part)
		}
	}
	for i, d := range dst {
		for lane := range d {
			if mask>>lane&1 != 0 {
				d[lane] = out[i][lane]
			}
		}
	}
}

// A number is an integer or a floating-point number.
type number struct {
	integer bool
	i       int64
	f       float64
}

func (s number) plus(a, b number) number {
	if s.integer {
		s.i += a.i * b.i
	} else {
		s.f = math.FMA(a.f, b.f, s.f)
	}
	return s
}

// element is a part of a register.
func (x *MMA) element(register uint64, t ptx.Type, part int) number {
	v := register >> (part * elementBits(t))
	switch t {
	case ptx.F16:
		return number{f: float64(widenF16(v & 0xffff))}
	case ptx.BF16:
		return number{f: float64(widenBF16(v & 0xffff))}
	case ptx.TF32:
		return number{f: float64(math.Float32frombits(uint32(v) &^ 0x1fff))}
	case ptx.F32:
		return number{f: float64(math.Float32frombits(uint32(v)))}
	case ptx.F64:
		return number{f: math.Float64frombits(v)}
	case ptx.S8:
		return number{integer: true, i: int64(int8(v))}
	case ptx.U8:
		return number{integer: true, i: int64(uint8(v))}
	}
	return number{integer: true, i: int64(int32(v))}
}

// bits is an element of D.
func (x *MMA) bits(s number) uint64 {
	switch {
	case x.acc == ptx.F16:
		return narrowF16(float32(s.f)) & 0xffff
	case x.acc == ptx.F32:
		return uint64(math.Float32bits(float32(s.f)))
	case x.acc == ptx.F64:
		return math.Float64bits(s.f)
	case x.satfinite:
		s.i = min(max(s.i, math.MinInt32), math.MaxInt32)
	}
	return uint64(uint32(s.i))
}
