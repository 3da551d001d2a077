// Package library is the functions of CUDA's device library, as a compiler that does not link it leaves them: calls of
// names such as __nv_sinf. Those of float32 are computed in float64 and rounded once; those of float64 are within the
// errors that CUDA's documentation gives for each, which a test holds against results of many more bits. The trap: a
// GPU's last bits may be others.
//
// Source: CUDA C++ Programming Guide 13.0, appendix on mathematical functions; libdevice User's Guide.
package library

import (
	"math"
	"math/bits"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A Function is one of the library.
type Function struct {
	Name string // as in CUDA C++: "sinf"
	// Run computes the result from the arguments, the bits of each. Reads is how it reads memory at an address; what it
	// wants to be written it hands to writes.
	Run func(args []uint64, reads func(addr uint64, size int) uint64, writes func(addr uint64, size int, v uint64)) uint64
	// Rounded says that a GPU's result may differ in its last bits.
	Rounded bool
}

const prefix = "__nv_"

// Find is the function of a name such as __nv_sinf.
func Find(symbol string) (Function, bool) {
	name, ok := strings.CutPrefix(symbol, prefix)
	if !ok {
		return Function{}, false
	}
	f, ok := functions()[name]
	return f, ok
}

// Names are the functions' symbols, in no order.
func Names() (list []string) {
	for name := range functions() {
		list = append(list, prefix+name)
	}
	return list
}

var functions = sync.OnceValue(func() map[string]Function {
	m := map[string]Function{}
	add := func(name string, rounded bool, run func(a []uint64) uint64) {
		m[name] = Function{Name: name, Rounded: rounded,
			Run: func(a []uint64, _ func(uint64, int) uint64, _ func(uint64, int, uint64)) uint64 { return run(a) }}
	}
	// both defines a function of float64s, and with f behind its name of float32s.
	both := func(name string, rounded bool, f func(x []float64) float64) {
		add(name, rounded, func(a []uint64) uint64 { return math.Float64bits(f(doubles(a))) })
		add(name+"f", rounded, func(a []uint64) uint64 { return single(f(singles(a))) })
	}
	for name, f := range exact1 {
		both(name, false, func(x []float64) float64 { return f(x[0]) })
	}
	for name, f := range rounded1 {
		both(name, true, func(x []float64) float64 { return f(x[0]) })
	}
	for name, f := range exact2 {
		both(name, false, func(x []float64) float64 { return f(x[0], x[1]) })
	}
	for name, f := range rounded2 {
		both(name, true, func(x []float64) float64 { return f(x[0], x[1]) })
	}
	for _, name := range []string{"norm3d", "norm4d"} {
		both(name, true, func(x []float64) float64 { return norm(x) })
		both("r"+name, true, func(x []float64) float64 { return 1 / norm(x) })
	}
	defineMixed(m, add)
	defineIntegers(add)
	defineInstructions(add)
	defineFast(m, add)
	return m
})

func double(a uint64) float64 { return math.Float64frombits(a) }
func widen(a uint64) float64  { return float64(math.Float32frombits(uint32(a))) }

// single is the bits of a float32; a NaN is the one that a GPU makes.
func single(x float64) uint64 {
	if x != x {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(float32(x)))
}

func doubles(a []uint64) []float64 {
	x := make([]float64, len(a))
	for i := range a {
		x[i] = double(a[i])
	}
	return x
}

func singles(a []uint64) []float64 {
	x := make([]float64, len(a))
	for i := range a {
		x[i] = widen(a[i])
	}
	return x
}

// Functions of one argument and of two, by name; those whose result is exact, and the others.
var (
	exact1 = map[string]func(x float64) float64{
		"fabs": math.Abs, "ceil": math.Ceil, "floor": math.Floor, "trunc": math.Trunc, "rint": math.RoundToEven,
		"nearbyint": math.RoundToEven, "round": math.Round, "sqrt": math.Sqrt, "logb": math.Logb,
	}
	rounded1 = map[string]func(x float64) float64{
		"acos": acos, "acosh": math.Acosh, "asin": asin, "asinh": math.Asinh, "atan": math.Atan, "atanh": math.Atanh,
		"cbrt": math.Cbrt, "rcbrt": rcbrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
		"sin": sin, "cos": cos, "tan": tan, "sinpi": sinpi, "cospi": cospi,
		"sinh": sinh, "cosh": cosh, "tanh": tanh,
		"exp": exp, "exp2": math.Exp2, "exp10": exp10, "expm1": math.Expm1,
		"log": log, "log2": log2, "log10": log10, "log1p": math.Log1p,
		"erf": math.Erf, "erfc": math.Erfc, "erfinv": math.Erfinv, "erfcinv": erfcinv, "erfcx": erfcx,
		"normcdf": normcdf, "normcdfinv": func(p float64) float64 { return -math.Sqrt2 * erfcinv(2*p) },
		"lgamma": func(x float64) float64 { l, _ := math.Lgamma(x); return l }, "tgamma": gamma,
		"j0": math.J0, "j1": math.J1, "y0": math.Y0, "y1": math.Y1, "cyl_bessel_i0": i0, "cyl_bessel_i1": i1,
	}
	exact2 = map[string]func(x, y float64) float64{
		"copysign": math.Copysign, "fdim": dim, "fmax": maximum, "fmin": minimum, "fmod": math.Mod,
		"remainder": math.Remainder,
	}
	rounded2 = map[string]func(x, y float64) float64{
		"atan2": math.Atan2, "pow": pow, "hypot": func(x, y float64) float64 { return norm([]float64{x, y}) },
		"rhypot": func(x, y float64) float64 { return 1 / norm([]float64{x, y}) },
	}
)

func dim(x, y float64) float64 {
	if x <= y {
		return 0
	}
	return x - y
}

// maximum is the other argument where one is a NaN.
func maximum(x, y float64) float64 {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return math.Max(x, y)
}

func minimum(x, y float64) float64 { return -maximum(-x, -y) }

// defineMixed defines functions that take or give integers and pointers too.
func defineMixed(m map[string]Function, add func(string, bool, func(a []uint64) uint64)) {
	type reader = func(addr uint64, size int) uint64
	type writer = func(addr uint64, size int, v uint64)
	integer := func(a uint64) int { return int(int32(a)) }
	for _, k := range []struct {
		suffix, letter string
		size           int
		value          func(a uint64) float64
		bits           func(x float64) uint64
	}{
		{"", "d", 8, double, math.Float64bits}, {"f", "f", 4, widen, single},
	} {
		value, float, size := k.value, k.bits, k.size
		memory := func(name string, rounded bool, run func(a []uint64, reads reader, writes writer) uint64) {
			m[name+k.suffix] = Function{Name: name + k.suffix, Run: run, Rounded: rounded}
		}
		is := func(names string, f func(x float64) bool) {
			for _, name := range strings.Fields(names) {
				add(name, false, func(a []uint64) uint64 {
					if f(value(a[0])) {
						return 1
					}
					return 0
				})
			}
		}
		is("isnan"+k.letter, func(x float64) bool { return x != x })
		is("isinf"+k.letter, func(x float64) bool { return math.IsInf(x, 0) })
		is("signbit"+k.letter, math.Signbit)
		is("isfinite"+k.letter+" finite"+k.letter, func(x float64) bool { return x-x == 0 })
		for _, name := range []string{"ldexp", "scalbn"} {
			add(name+k.suffix, false, func(a []uint64) uint64 { return float(math.Ldexp(value(a[0]), integer(a[1]))) })
		}
		add("ilogb"+k.suffix, false, func(a []uint64) uint64 {
			switch x := value(a[0]); {
			case x == 0 || x != x:
				return 1 << 31
			case math.IsInf(x, 0):
				return 1<<31 - 1
			default:
				return uint64(uint32(math.Ilogb(x)))
			}
		})
		add("jn"+k.suffix, true, func(a []uint64) uint64 { return float(math.Jn(integer(a[0]), value(a[1]))) })
		add("yn"+k.suffix, true, func(a []uint64) uint64 { return float(math.Yn(integer(a[0]), value(a[1]))) })
		add("powi"+k.suffix, true, func(a []uint64) uint64 { return float(pow(value(a[0]), float64(integer(a[1])))) })
		add("llrint"+k.suffix, false, func(a []uint64) uint64 { return toInt64(math.RoundToEven(value(a[0]))) })
		add("llround"+k.suffix, false, func(a []uint64) uint64 { return toInt64(math.Round(value(a[0]))) })
		memory("sincos", true, func(a []uint64, _ reader, writes writer) uint64 {
			writes(a[1], size, float(sin(value(a[0]))))
			writes(a[2], size, float(cos(value(a[0]))))
			return 0
		})
		memory("sincospi", true, func(a []uint64, _ reader, writes writer) uint64 {
			writes(a[1], size, float(sinpi(value(a[0]))))
			writes(a[2], size, float(cospi(value(a[0]))))
			return 0
		})
		memory("frexp", false, func(a []uint64, _ reader, writes writer) uint64 {
			x, e := math.Frexp(value(a[0]))
			writes(a[1], 4, uint64(uint32(e)))
			return float(x)
		})
		memory("modf", false, func(a []uint64, _ reader, writes writer) uint64 {
			x := value(a[0])
			whole := math.Trunc(x)
			writes(a[1], size, float(whole))
			if math.IsInf(x, 0) {
				whole = 0
				x = math.Copysign(0, x)
			}
			return float(math.Copysign(x-whole, x))
		})
		memory("remquo", false, func(a []uint64, _ reader, writes writer) uint64 {
			x, y := value(a[0]), value(a[1])
			rest := math.Remainder(x, y)
			q := math.Mod(math.RoundToEven((math.Mod(x, 8*y)-rest)/y), 8)
			if q != q {
				q = 0
			}
			writes(a[2], 4, uint64(uint32(int32(q))))
			return float(rest)
		})
		vector := func(a []uint64, reads reader) []float64 {
			x := make([]float64, max(0, integer(a[0])))
			for i := range x {
				x[i] = value(reads(a[1]+uint64(i*size), size))
			}
			return x
		}
		memory("norm", true, func(a []uint64, reads reader, _ writer) uint64 { return float(norm(vector(a, reads))) })
		memory("rnorm", true, func(a []uint64, reads reader, _ writer) uint64 { return float(1 / norm(vector(a, reads))) })
	}
	add("nextafter", false, func(a []uint64) uint64 {
		return math.Float64bits(math.Nextafter(double(a[0]), double(a[1])))
	})
	add("nextafterf", false, func(a []uint64) uint64 {
		return uint64(math.Float32bits(math.Nextafter32(float32(widen(a[0])), float32(widen(a[1])))))
	})
	add("fma", false, func(a []uint64) uint64 {
		return math.Float64bits(math.FMA(double(a[0]), double(a[1]), double(a[2])))
	})
}

// toInt64 is the nearest integer of a whole number.
func toInt64(x float64) uint64 {
	switch {
	case x != x, x < -1<<63:
		return 1 << 63
	case x >= 1<<63:
		return math.MaxInt64
	}
	return uint64(int64(x))
}

// defineIntegers defines what no instruction does alone.
func defineIntegers(add func(string, bool, func(a []uint64) uint64)) {
	s := func(a uint64) int64 { return int64(int32(a)) }
	u := func(a uint64) uint64 { return uint64(uint32(a)) }
	for name, f := range map[string]func(a []uint64) uint64{
		"abs":             func(a []uint64) uint64 { return uint64(uint32(max(s(a[0]), -s(a[0])))) },
		"llabs":           func(a []uint64) uint64 { return uint64(max(int64(a[0]), -int64(a[0]))) },
		"ffs":             func(a []uint64) uint64 { return uint64(bits.TrailingZeros32(uint32(a[0]))+1) % 33 },
		"ffsll":           func(a []uint64) uint64 { return uint64(bits.TrailingZeros64(a[0])+1) % 65 },
		"hadd":            func(a []uint64) uint64 { return u(uint64((s(a[0]) + s(a[1])) >> 1)) },
		"rhadd":           func(a []uint64) uint64 { return u(uint64((s(a[0]) + s(a[1]) + 1) >> 1)) },
		"uhadd":           func(a []uint64) uint64 { return (u(a[0]) + u(a[1])) >> 1 },
		"urhadd":          func(a []uint64) uint64 { return (u(a[0]) + u(a[1]) + 1) >> 1 },
		"hiloint2double":  func(a []uint64) uint64 { return a[0]<<32 | u(a[1]) },
		"double2hiint":    func(a []uint64) uint64 { return a[0] >> 32 },
		"double2loint":    func(a []uint64) uint64 { return u(a[0]) },
		"float_as_int":    func(a []uint64) uint64 { return a[0] },
		"float_as_uint":   func(a []uint64) uint64 { return a[0] },
		"int_as_float":    func(a []uint64) uint64 { return a[0] },
		"uint_as_float":   func(a []uint64) uint64 { return a[0] },
		"frsqrt_rn":       func(a []uint64) uint64 { return single(1 / math.Sqrt(widen(a[0]))) },
		"float2half_rn":   compute("cvt.rn.f16.f32"),
		"half2float":      compute("cvt.f32.f16"),
		"saturatef":       compute("cvt.sat.f32.f32"),
		"byte_perm":       compute("prmt.b32"),
		"double2float_rn": compute("cvt.rn.f32.f64"),

		"double_as_longlong": func(a []uint64) uint64 { return a[0] },
		"longlong_as_double": func(a []uint64) uint64 { return a[0] },
	} {
		add(name, false, f)
	}
}

// instructionsOf are functions that are one instruction. Each name stands for that with _rn, _rz, _rd and _ru if the
// instruction has RND (or IRND), which becomes the rounding.
var instructionsOf = map[string]string{
	"fadd": "add.RND.f32", "fsub": "sub.RND.f32", "fmul": "mul.RND.f32", "fdiv": "div.RND.f32", "frcp": "rcp.RND.f32",
	"fsqrt": "sqrt.RND.f32", "fmaf": "fma.RND.f32", "fmaf_ieee": "fma.RND.f32",
	"dadd": "add.RND.f64", "dsub": "sub.RND.f64", "dmul": "mul.RND.f64", "ddiv": "div.RND.f64", "drcp": "rcp.RND.f64",
	"dsqrt": "sqrt.RND.f64", "fma": "fma.RND.f64",
	"float2int": "cvt.IRND.s32.f32", "float2uint": "cvt.IRND.u32.f32", "float2ll": "cvt.IRND.s64.f32",
	"float2ull": "cvt.IRND.u64.f32", "double2int": "cvt.IRND.s32.f64", "double2uint": "cvt.IRND.u32.f64",
	"double2ll": "cvt.IRND.s64.f64", "double2ull": "cvt.IRND.u64.f64", "double2float": "cvt.RND.f32.f64",
	"int2float": "cvt.RND.f32.s32", "uint2float": "cvt.RND.f32.u32", "ll2float": "cvt.RND.f32.s64",
	"ull2float": "cvt.RND.f32.u64", "int2double": "cvt.RND.f64.s32", "uint2double": "cvt.RND.f64.u32",
	"ll2double": "cvt.RND.f64.s64", "ull2double": "cvt.RND.f64.u64",

	"max": "max.s32", "min": "min.s32", "umax": "max.u32", "umin": "min.u32", "llmax": "max.s64", "llmin": "min.s64",
	"ullmax": "max.u64", "ullmin": "min.u64", "brev": "brev.b32", "brevll": "brev.b64", "clz": "clz.b32",
	"clzll": "clz.b64",
	"popc":  "popc.b32", "popcll": "popc.b64", "mul24": "mul24.lo.s32", "umul24": "mul24.lo.u32", "mulhi": "mul.hi.s32",
	"umulhi": "mul.hi.u32", "mul64hi": "mul.hi.s64", "umul64hi": "mul.hi.u64", "sad": "sad.s32", "usad": "sad.u32",
	"fast_sinf": "sin.approx.ftz.f32", "fast_cosf": "cos.approx.ftz.f32", "fast_log2f": "lg2.approx.ftz.f32",
	"fast_fdividef": "div.approx.ftz.f32",
}

// defineFast defines the approximations that are more than one instruction, with the factors of CUDA's headers.
func defineFast(m map[string]Function, add func(string, bool, func(a []uint64) uint64)) {
	ex2, lg2, times := compute("ex2.approx.ftz.f32"), compute("lg2.approx.ftz.f32"), compute("mul.ftz.f32")
	sine, cosine, over := compute("sin.approx.ftz.f32"), compute("cos.approx.ftz.f32"), compute("div.approx.ftz.f32")
	by := func(a uint64, factor float64) uint64 { return times([]uint64{a, single(factor)}) }
	add("fmaf", false, compute("fma.rn.f32"))
	add("fast_expf", true, func(a []uint64) uint64 { return ex2([]uint64{by(a[0], math.Log2E)}) })
	add("fast_exp10f", true, func(a []uint64) uint64 { return ex2([]uint64{by(a[0], math.Ln10*math.Log2E)}) })
	add("fast_logf", true, func(a []uint64) uint64 { return by(lg2(a), math.Ln2) })
	add("fast_log10f", true, func(a []uint64) uint64 { return by(lg2(a), math.Ln2*math.Log10E) })
	add("fast_powf", true, func(a []uint64) uint64 { return ex2([]uint64{times([]uint64{a[1], lg2(a[:1])})}) })
	add("fast_tanf", true, func(a []uint64) uint64 { return over([]uint64{sine(a), cosine(a)}) })
	m["fast_sincosf"] = Function{Name: "fast_sincosf", Rounded: true,
		Run: func(a []uint64, _ func(uint64, int) uint64, writes func(uint64, int, uint64)) uint64 {
			writes(a[1], 4, sine(a[:1]))
			writes(a[2], 4, cosine(a[:1]))
			return 0
		}}
}

func defineInstructions(add func(string, bool, func(a []uint64) uint64)) {
	for name, in := range instructionsOf {
		if !strings.Contains(in, "RND") {
			add(name, strings.Contains(in, "approx"), compute(in))
			continue
		}
		for i, suffix := range []string{"rn", "rz", "rd", "ru"} {
			to, whole := []string{"rn", "rz", "rm", "rp"}[i], []string{"rni", "rzi", "rmi", "rpi"}[i]
			add(name+"_"+suffix, false, compute(strings.NewReplacer("IRND", whole, "RND", to).Replace(in)))
		}
	}
}

// compute is an instruction for a single thread.
func compute(name string) func(a []uint64) uint64 {
	words := strings.Split(name, ".")
	in := &ptx.Instr{Op: words[0], Mods: words[1:], Guard: -1}
	for _, w := range in.Mods {
		for t := ptx.B8; t <= ptx.Pred; t++ {
			if t.String() == w {
				in.Types = append(in.Types, t)
			}
		}
	}
	op, err := alu.Lookup(in)
	if err != nil {
		panic(err)
	}
	return func(a []uint64) uint64 {
		var lanes [4]alu.Lanes
		src := make([]*alu.Lanes, op.Srcs)
		for i := range src {
			lanes[i][0] = a[i]
			src[i] = &lanes[i]
		}
		op.Run(1, []*alu.Lanes{&lanes[3]}, src)
		return lanes[3][0]
	}
}
