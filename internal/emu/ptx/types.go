package ptx

// typeInfo describes a Type.
type typeInfo struct {
	name  string
	size  int // bytes
	class byte
}

// Classes of types.
const (
	bits     = 'b'
	unsigned = 'u'
	signed   = 's'
	float    = 'f'
	pred     = 'p'
)

var types = [...]typeInfo{
	NoType: {"", 0, 0},
	B8:     {"b8", 1, bits}, B16: {"b16", 2, bits}, B32: {"b32", 4, bits}, B64: {"b64", 8, bits}, B128: {"b128", 16, bits},
	U8: {"u8", 1, unsigned}, U16: {"u16", 2, unsigned}, U32: {"u32", 4, unsigned}, U64: {"u64", 8, unsigned},
	S8: {"s8", 1, signed}, S16: {"s16", 2, signed}, S32: {"s32", 4, signed}, S64: {"s64", 8, signed},
	F16: {"f16", 2, float}, F16x2: {"f16x2", 4, float}, BF16: {"bf16", 2, float}, BF16x2: {"bf16x2", 4, float},
	F32: {"f32", 4, float}, F64: {"f64", 8, float}, TF32: {"tf32", 4, float},
	E4M3: {"e4m3", 1, float}, E5M2: {"e5m2", 1, float},
	E4M3x2: {"e4m3x2", 2, float}, E5M2x2: {"e5m2x2", 2, float},
	U16x2: {"u16x2", 4, unsigned}, S16x2: {"s16x2", 4, signed},
	Pred: {"pred", 1, pred},
}

var typeNames = func() map[string]Type {
	m := map[string]Type{}
	for t := B8; t <= Pred; t++ {
		m[types[t].name] = t
	}
	return m
}()

// String is the type as in PTX, without the dot: "u32".
func (t Type) String() string { return types[t].name }

// Size is in bytes, of a predicate 1.
func (t Type) Size() int { return types[t].size }

// Bits is the width of a register of the type, of a predicate 1.
func (t Type) Bits() int {
	if t == Pred {
		return 1
	}
	return 8 * types[t].size
}

// Float reports whether it is of floating point.
func (t Type) Float() bool { return types[t].class == float }

// Signed reports whether it is of signed integers.
func (t Type) Signed() bool { return types[t].class == signed }

// Integer reports whether it is of integers, with sign or without; bits of no meaning (b32) are not.
func (t Type) Integer() bool { return types[t].class == unsigned || types[t].class == signed }

var spaceNames = [...]string{Generic: "", RegSpace: "reg", Param: "param", Global: "global", Const: "const",
	Shared: "shared", Local: "local"}

// String is the space as in PTX, without the dot; nothing for generic.
func (s Space) String() string { return spaceNames[s] }

// spaces are those that an instruction can name. Shared memory of a cluster is
// Shared too, its modifier says so.
var spaces = map[string]Space{
	"param": Param, "param::entry": Param, "param::func": Param,
	"global": Global, "const": Const, "local": Local,
	"shared": Shared, "shared::cta": Shared, "shared::cluster": Shared,
}
