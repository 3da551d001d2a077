package library

import (
	"math"
	"math/big"
	"sync"
)

// What package math lacks, or has less exactly than CUDA documents.

// A sum of two float64s, the second below the last bit of the first.
type pair struct{ hi, lo float64 }

func twoSum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

func twoProduct(a, b float64) pair {
	p := a * b
	return pair{p, math.FMA(a, b, -p)}
}

func (a pair) plus(b pair) pair {
	s := twoSum(a.hi, b.hi)
	return twoSum(s.hi, s.lo+a.lo+b.lo)
}

func (a pair) times(b pair) pair {
	p := twoProduct(a.hi, b.hi)
	return twoSum(p.hi, p.lo+(a.hi*b.lo+a.lo*b.hi))
}

// over is the quotient.
func (a pair) over(b pair) pair {
	q := a.hi / b.hi
	p := twoProduct(q, b.hi)
	return twoSum(q, ((a.hi-p.hi)-p.lo+a.lo-q*b.lo)/b.hi)
}

// ln2 is the logarithm of 2, to 106 bits.
var ln2 = pair{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}

// logarithm is that of a positive finite number, to some 66 bits.
func logarithm(x float64) pair {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := pair{m - 1, 0}.over(twoSum(m, 1)) // m - 1 is exact
	z := s.times(s)
	t := 1.0 / 23
	for k := 21.0; k >= 5; k -= 2 {
		t = t*z.hi + 1/k
	}
	// 2 (s + s^3/3 + s^5/5 …)
	third := pair{1.0 / 3, 0x1.5555555555555p-56}
	series := third.plus(pair{t * z.hi, 0}).times(z).times(s).plus(s)
	series = pair{2 * series.hi, 2 * series.lo}
	n := float64(e)
	return twoProduct(n, ln2.hi).plus(pair{n * ln2.lo, 0}).plus(series)
}

// exponential is that of a sum.
func exponential(p pair) float64 {
	if p.hi > 800 || p.hi < -800 || p.hi != p.hi {
		return math.Exp(p.hi)
	}
	n := math.RoundToEven(p.hi * math.Log2E)
	r := p.plus(twoProduct(-n, ln2.hi)).plus(pair{-n * ln2.lo, 0})
	e := math.Exp(r.hi)
	return math.Ldexp(e+e*r.lo, int(n))
}

func pow(x, y float64) float64 {
	plain := math.Pow(x, y)
	a := math.Abs(x)
	if plain == 0 && a > 0 || math.IsInf(plain, 0) && a > 0 && !math.IsInf(a, 0) && !math.IsInf(y, 0) || plain-plain == 0 {
		switch {
		case x == 0, math.IsInf(x, 0), math.IsInf(y, 0), y == 0, x == 1, a != a, y != y:
			return plain
		}
		l := logarithm(a)
		return math.Copysign(exponential(twoProduct(y, l.hi).plus(pair{y * l.lo, 0})), plain)
	}
	return plain
}

// exp is math.Exp, which on some processors has no denormal results.
func exp(x float64) float64 { return exponential(pair{x, 0}) }

func cosh(x float64) float64 {
	if a := math.Abs(x); a > 22 {
		return halfExp(a)
	}
	return math.Cosh(x)
}

// halfExp is half of the exponential.
func halfExp(x float64) float64 {
	if x > 800 {
		return math.Inf(1)
	}
	return exponential(twoSum(x, -ln2.hi).plus(pair{-ln2.lo, 0}))
}

func exp10(x float64) float64 {
	if math.IsInf(x, 0) {
		return math.Exp(x)
	}
	const ln10, rest = 0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53
	return exponential(twoProduct(x, ln10).plus(pair{x * rest, 0}))
}

func log(x float64) float64 { return inBase(x, math.Log, pair{1, 0}) }
func log2(x float64) float64 {
	return inBase(x, math.Log2, pair{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56})
}

func log10(x float64) float64 {
	return inBase(x, math.Log10, pair{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57})
}

// inBase is a logarithm times a factor; special values are those of package math.
func inBase(x float64, of func(float64) float64, factor pair) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return of(x)
	}
	return logarithm(x).times(factor).hi
}

func acos(x float64) float64 {
	if x < -1 || x > 1 {
		return math.NaN()
	}
	return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x))
}

func asin(x float64) float64 {
	if math.Abs(x) < 0x1p-26 {
		return x
	}
	return math.Atan2(x, math.Sqrt((1-x)*(1+x)))
}

func sinh(x float64) float64 {
	a := math.Abs(x)
	if a > 22 {
		return math.Copysign(halfExp(a), x)
	}
	e := math.Expm1(a)
	return math.Copysign((e+e/(e+1))/2, x)
}

func tanh(x float64) float64 {
	a := math.Abs(x)
	if a > 22 || a != a {
		return math.Tanh(x)
	}
	e := math.Expm1(2 * a)
	return math.Copysign(e/(e+2), x)
}

// norm is the length of a vector.
func norm(x []float64) float64 {
	most, nan := 0.0, false
	for _, v := range x {
		most = math.Max(most, math.Abs(v))
		nan = nan || v != v
		if math.IsInf(v, 0) {
			return math.Inf(1)
		}
	}
	if nan || most == 0 {
		return most
	}
	_, e := math.Frexp(most)
	sum := pair{}
	for _, v := range x {
		v = math.Ldexp(v, -e)
		sum = sum.plus(twoProduct(v, v))
	}
	r := math.Sqrt(sum.hi)
	r += (math.FMA(-r, r, sum.hi) + sum.lo) / (2 * r)
	return math.Ldexp(r, e)
}

func rcbrt(x float64) float64 {
	r := 1 / math.Cbrt(x)
	if r-r != 0 || r == 0 {
		return r
	}
	p := twoProduct(r, r).times(pair{r, 0}).times(pair{x, 0})
	return r + r*((1-p.hi)-p.lo)/3
}

// quarter reduces an angle: it is k quarters of a turn and r, which is a small one.
func quarter(x float64) (k int, r pair) {
	const p1, p2, p3 = 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110
	n := math.RoundToEven(x * (2 / math.Pi))
	if math.Abs(n) < 1<<20 {
		a, b := twoProduct(-n, p1), twoProduct(-n, p2)
		return int(n) & 3, twoSum(x, a.hi).plus(pair{a.lo, 0}).plus(b).plus(pair{-n * p3, 0})
	}
	m, e := math.Frexp(x)
	v := new(big.Int).SetInt64(int64(math.Ldexp(m, 53)))
	v.Mul(v, twoOverPi()) // in units of 2^(e - 53 - piBits) quarters
	point := uint(piBits + 53 - e)
	whole := new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), point-1))
	whole.Rsh(whole, point)
	v.Sub(v, new(big.Int).Lsh(whole, point))
	rest := new(big.Float).SetInt(v)
	rest.SetMantExp(rest, -int(point))
	hi, _ := rest.Float64()
	lo, _ := rest.Sub(rest, new(big.Float).SetFloat64(hi)).Float64()
	return int(new(big.Int).And(whole, big.NewInt(3)).Int64()), pair{hi, lo}.times(pair{p1, p2})
}

// piBits is how many bits behind the point 2/π has here: those of the greatest exponent, and 160.
const piBits = 1024 + 160

// twoOverPi is 2/π in units of 2^-piBits, by Machin's formula.
var twoOverPi = sync.OnceValue(func() *big.Int {
	const guard = 64
	one := new(big.Int).Lsh(big.NewInt(1), piBits+guard)
	arctan := func(n int64) *big.Int { // of 1/n
		term := new(big.Int).Quo(one, big.NewInt(n))
		sum, square := new(big.Int).Set(term), big.NewInt(n*n)
		for k := int64(3); term.Sign() != 0; k += 2 {
			term.Quo(term, square)
			t := new(big.Int).Quo(term, big.NewInt(k))
			if k&2 != 0 {
				t.Neg(t)
			}
			sum.Add(sum, t)
		}
		return sum
	}
	quarter := new(big.Int).Sub(new(big.Int).Lsh(arctan(5), 2), arctan(239)) // π/4
	v := new(big.Int).Lsh(one, piBits-1)
	return v.Quo(v, quarter)
})

// wave is the sine of k quarters of a turn and r.
func wave(k int, r pair) float64 {
	switch k & 3 {
	case 0:
		return math.Sin(r.hi) + r.lo*math.Cos(r.hi)
	case 1:
		return math.Cos(r.hi) - r.lo*math.Sin(r.hi)
	}
	return -wave(k-2, r)
}

func sin(x float64) float64 { return ofAngle(x, 0) }
func cos(x float64) float64 { return ofAngle(x, 1) }

func ofAngle(x float64, more int) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	if more == 0 && math.Abs(x) < 0x1p-27 {
		return x
	}
	k, r := quarter(x)
	return wave(k+more, r)
}

func tan(x float64) float64 {
	if x-x != 0 || math.Abs(x) < 0x1p-27 {
		return x - x + x
	}
	k, r := quarter(x)
	t := math.Tan(r.hi)
	t += r.lo * (1 + t*t)
	if k&1 != 0 {
		return -1 / t
	}
	return t
}

// sinpi is the sine of half turns.
func sinpi(x float64) float64 { return ofHalves(x, 0) }
func cospi(x float64) float64 { return ofHalves(x, 1) }

func ofHalves(x float64, more int) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	if x == 0 && more == 0 {
		return x
	}
	t := math.Mod(x, 2)
	k := math.RoundToEven(2 * t)
	v := wave(int(k)+more, twoProduct(t-k/2, math.Pi).plus(pair{(t - k/2) * 0x1.1a62633145c07p-53, 0}))
	if v == 0 {
		return math.Copysign(0, x*float64(1-more))
	}
	return v
}

// erfcx is exp(x²) erfc(x).
func erfcx(x float64) float64 {
	switch {
	case x < 25:
		p := twoProduct(x, x)
		return exponential(p) * math.Erfc(x)
	case math.IsInf(x, 1):
		return 0
	}
	t, s := 1/(2*x*x), 1.0
	for k := 15.0; k > 0; k -= 2 {
		s = 1 - k*t*s
	}
	return s / x / math.Sqrt(math.Pi)
}

// normcdf is erfc(-x/√2) / 2.
func normcdf(x float64) float64 {
	if x < -40 {
		return 0
	}
	const root, rest = 0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55
	y := twoProduct(-x, root).plus(pair{-x * rest, 0})
	return (math.Erfc(y.hi) - 2/math.Sqrt(math.Pi)*math.Exp(-y.hi*y.hi)*y.lo) / 2
}

// erfcinv is the inverse of erfc, by Newton's method on its logarithm where it is small.
func erfcinv(x float64) float64 {
	switch {
	case !(x >= 0 && x <= 2):
		return math.NaN()
	case x == 0:
		return math.Inf(1)
	case x > 1:
		if x == 2 {
			return math.Inf(-1)
		}
		return -erfcinv(2 - x) // exact
	case x > 0.5:
		return math.Erfinv(1 - x)
	}
	l := -math.Log(x)
	y := math.Sqrt(math.Max(0.2, l-0.5*math.Log(math.Pi*math.Max(l, 0.4))))
	for range 12 {
		e := math.Erfc(y)
		d := (math.Log(e) + l) * e * math.Sqrt(math.Pi) / 2 * math.Exp(y*y)
		if e == 0 || math.IsInf(d, 0) { // beyond what erfc has
			y *= 0.99
			continue
		}
		y += d
		if math.Abs(d) < 0x1p-54*y {
			break
		}
	}
	return y
}

// gamma is math.Gamma, which powers of large numbers make less exact.
func gamma(x float64) float64 {
	if x <= 20 || x > 172 || x != x {
		return math.Gamma(x)
	}
	l := logarithm(x)
	a := l.times(twoSum(x, -0.5)).plus(pair{-x, 0})
	z := 1 / (x * x)
	s := (1.0/12 - z*(1.0/360-z*(1.0/1260-z*(1.0/1680-z*(1.0/1188-z*691.0/360360))))) / x
	const half, rest = 0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55 // log(2π) / 2
	return exponential(a.plus(pair{half, rest}).plus(pair{s, 0}))
}

func i0(x float64) float64 { return bessel(math.Abs(x), 0) }
func i1(x float64) float64 { return math.Copysign(bessel(math.Abs(x), 1), x) }

// bessel is the modified Bessel function of the first kind, of order 0 or 1.
func bessel(x, order float64) float64 {
	switch {
	case math.IsInf(x, 1) || x != x:
		return x
	case x < 40:
		z, term, sum := pair{x, 0}.times(pair{x / 4, 0}), pair{1, 0}, pair{1, 0}
		if order == 1 {
			term, sum = pair{x / 2, 0}, pair{x / 2, 0}
		}
		for k := 1.0; term.hi > sum.hi*0x1p-70; k++ {
			term = term.times(z).over(pair{k * (k + order), 0})
			sum = sum.plus(term)
		}
		return sum.hi
	}
	s, term := 1.0, 1.0
	for k := 1.0; k < 30; k++ {
		term *= -(4*order - (2*k-1)*(2*k-1)) / (8 * k * x)
		s += term
	}
	e := math.Exp(x / 2)
	return e * (s / math.Sqrt(2*math.Pi*x)) * e
}
