package kernels

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/mem"
)

// number is the one element in b.
func number(t DataType, b []byte) float64 {
	switch t {
	case Float64:
		return view[float64](b)[0]
	case Float32:
		return float64(view[float32](b)[0])
	case Float16:
		return float64(view[F16](b)[0].Float32())
	case BFloat16:
		return float64(view[BF16](b)[0].Float32())
	case Float8E4M3:
		return float64(F8E4M3(b[0]).Float32())
	case Float8E5M2:
		return float64(F8E5M2(b[0]).Float32())
	}
	panic(t)
}

// rounded is v as an element of t, rounded to float32 before where t is narrow.
func rounded(t DataType, v float64) []byte {
	if v != v {
		b := bytes.Repeat([]byte{0xff}, t.Size())
		b[t.Size()-1] = 0x7f
		return b
	}
	f := float32(v)
	switch t {
	case Float64:
		return bytesOf([]float64{v})
	case Float32:
		return bytesOf([]float32{f})
	case Float16:
		return bytesOf([]F16{NewF16(f)})
	case BFloat16:
		return bytesOf([]BF16{NewBF16(f)})
	case Float8E4M3:
		return bytesOf([]F8E4M3{NewF8E4M3(f)})
	case Float8E5M2:
		return bytesOf([]F8E5M2{NewF8E5M2(f)})
	}
	panic(t)
}

// TestFloatMeaning computes each element by itself. A sum or product of two
// float32 in float64 rounds to the same float32.
func TestFloatMeaning(t *testing.T) {
	pick := func(a, b []byte, x, y float64, less bool) []byte {
		switch {
		case x != x || !(y != y) && (x < y || x == y && math.Signbit(x)) != less:
			return b
		}
		return a
	}
	want := map[Kind]func(t DataType, a, b []byte) []byte{
		KindSum:  func(t DataType, a, b []byte) []byte { return rounded(t, number(t, a)+number(t, b)) },
		KindProd: func(t DataType, a, b []byte) []byte { return rounded(t, number(t, a)*number(t, b)) },
		KindMax:  func(t DataType, a, b []byte) []byte { return pick(a, b, number(t, a), number(t, b), false) },
		KindMin:  func(t DataType, a, b []byte) []byte { return pick(a, b, number(t, a), number(t, b), true) },
		KindAvg: func(t DataType, a, b []byte) []byte {
			s := 1.0 / 7
			if t != Float64 {
				s = float64(float32(s))
			}
			return rounded(t, number(t, a)+number(t, rounded(t, number(t, b)*s)))
		},
	}
	reductions(t, func(t *testing.T, ty DataType, op RedOp) {
		f := want[op.Kind]
		if f == nil || types[ty].family != floating {
			t.Skip("of integers, or scaled like Avg")
		}
		r, err := newReducer(ty, op, 7, plainGo)
		require.NoError(t, err)
		const n = 20_000
		size := ty.Size()
		a, b, got := apart(make([]byte, n*size), 0), apart(make([]byte, n*size), 0), make([]byte, n*size)
		rnd := rand.New(rand.NewPCG(3, 4))
		fill(rnd, ty, a)
		fill(rnd, ty, b)
		r.CombineIn(got, a, b)
		for i := 0; i < n*size; i += size {
			x, y := a[i:i+size], b[i:i+size]
			w := f(ty, x, y)
			if v := number(ty, w); v != v {
				w = rounded(ty, v)
			}
			require.Equalf(t, w, got[i:i+size], "%x ⊕ %x", x, y)
		}
	})
}

func TestIntegerMeaning(t *testing.T) {
	tests := []struct {
		name          string
		t             DataType
		op            RedOp
		ranks         int
		a, b, want    any
		finish, loads any
	}{
		{"sum wraps", Int8, Sum, 2, []int8{127, -128, 100}, []int8{1, -1, -50}, []int8{-128, 127, 50}, nil, nil},
		{"uint sum wraps", Uint32, Sum, 2, []uint32{1<<32 - 1}, []uint32{3}, []uint32{2}, nil, nil},
		{"prod wraps", Int32, Prod, 2, []int32{1 << 30, -3}, []int32{6, 7}, []int32{-1 << 31, -21}, nil, nil},
		{"prod of 64 bits", Uint64, Prod, 2, []uint64{1<<63 + 3}, []uint64{1<<40 + 5}, []uint64{1<<63 + 3<<40 + 15},
			nil, nil},
		{"max of unsigned", Uint64, Max, 2, []uint64{1, 1 << 63}, []uint64{1<<64 - 1, 5}, []uint64{1<<64 - 1, 1 << 63},
			nil, nil},
		{"min of signed", Int64, Min, 2, []int64{1, -1 << 63}, []int64{-1, 5}, []int64{-1, -1 << 63}, nil, nil},
		{"xor", Uint8, BitXor, 2, []uint8{0xf0}, []uint8{0xff}, []uint8{0x0f}, nil, nil},
		{"avg truncates", Int32, Avg, 3, []int32{-5, 5, -1 << 31}, []int32{-3, 3, -1}, []int32{-8, 8, 1<<31 - 1},
			[]int32{-2, 2, 715827882}, nil},
		{"avg of unsigned", Uint64, Avg, 2, []uint64{1<<63 + 1}, []uint64{1 << 62}, []uint64{1<<63 + 1<<62 + 1},
			[]uint64{3 << 61}, nil},
		{"avg among more ranks than int8", Int8, Avg, 200, []int8{-100}, []int8{-28}, []int8{-128}, []int8{0}, nil},
		{"premulsum", Int64, PreMulSumInt(1<<53 + 1), 2, []int64{1}, []int64{3}, []int64{3<<53 + 4}, nil, []int64{1<<53 + 1}},
		{"premulsum of bytes", Uint8, PreMulSum(-2), 2, []uint8{1}, []uint8{3}, []uint8{251}, nil, []uint8{254}},
	}
	raw := func(v any) []byte {
		switch v := v.(type) {
		case []int8:
			return bytesOf(v)
		case []uint8:
			return slices.Clone(v)
		case []int32:
			return bytesOf(v)
		case []uint32:
			return bytesOf(v)
		case []int64:
			return bytesOf(v)
		case []uint64:
			return bytesOf(v)
		}
		return nil
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := NewReducer(test.t, test.op, test.ranks)
			require.NoError(t, err)
			a, b := raw(test.a), raw(test.b)
			out := make([]byte, len(a))
			r.CombineIn(out, a, b)
			require.Equal(t, raw(test.want), out)
			require.Equal(t, test.finish != nil, r.Finishes())
			r.Finish(out)
			if test.finish != nil {
				require.Equal(t, raw(test.finish), out)
			}
			require.Equal(t, test.loads == nil, r.LoadIsCopy())
			r.Load(out, a)
			if test.loads != nil {
				require.Equal(t, raw(test.loads), out)
			} else {
				require.Equal(t, a, out)
			}
		})
	}
}

// TestCommutes: a ⊕ b and b ⊕ a have the same bits, also after Load. Without that ranks
// would get different results.
func TestCommutes(t *testing.T) {
	for _, impl := range implementations() {
		t.Run(impl.name, func(t *testing.T) {
			reductions(t, func(t *testing.T, ty DataType, op RedOp) {
				r, err := newReducer(ty, op, 5, impl)
				require.NoError(t, err)
				rapid.Check(t, func(t *rapid.T) {
					n := rapid.IntRange(0, 100).Draw(t, "elements") * ty.Size()
					seed := rapid.Uint64().Draw(t, "seed")
					rnd := rand.New(rand.NewPCG(seed, 0))
					a, b := make([]byte, n), make([]byte, n)
					fill(rnd, ty, a)
					fill(rnd, ty, b)
					ab, ba := make([]byte, n), make([]byte, n)
					r.Combine(ab, a, b)
					r.Combine(ba, b, a)
					require.Equal(t, "", difference(ty, a, b, ab, ba))

					r.Load(ab, a)
					r.CombineIn(ab, ab, b)
					r.Load(ba, b)
					r.CombineIn(ba, ba, a)
					require.Equal(t, "", difference(ty, a, b, ab, ba))

					r.Load(ba, b)
					x := make([]byte, n)
					r.Load(x, a)
					r.Combine(ba, ba, x)
					require.Equal(t, "", difference(ty, a, b, ab, ba), "CombineIn is Load and Combine")
				})
			})
		})
	}
}

// TestBytePairs tries all pairs of 8-bit numbers.
func TestBytePairs(t *testing.T) {
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	for i := range a {
		a[i], b[i] = byte(i), byte(i>>8)
	}
	for _, impl := range implementations() {
		for _, ty := range []DataType{Int8, Uint8, Float8E4M3, Float8E5M2} {
			for _, op := range ops(ty) {
				want, err := newReducer(ty, op, 3, plainGo)
				require.NoError(t, err)
				got, err := newReducer(ty, op, 3, impl)
				require.NoError(t, err)
				x, y := make([]byte, 1<<16), make([]byte, 1<<16)
				want.CombineIn(x, a, b)
				got.CombineIn(y, a, b)
				require.Equal(t, "", difference(ty, a, b, x, y), "%s: %v of %v", impl.name, op, ty)
			}
		}
	}
}

func TestUserOp(t *testing.T) {
	minus := UserOp("minus", func(ty DataType, dst, src []byte) {
		for i := range dst {
			dst[i] -= src[i]
		}
	})
	r, err := NewReducer(Int8, minus, 4)
	require.NoError(t, err)
	require.True(t, r.LoadIsCopy())
	require.False(t, r.Finishes())
	a, b := bytes.Repeat([]byte{7}, 10_000), bytes.Repeat([]byte{2}, 10_000)
	want := bytes.Repeat([]byte{5}, 10_000)
	dst := make([]byte, 10_000)
	r.Combine(dst, a, b)
	require.Equal(t, want, dst)
	r.CombineIn(b, a, b)
	require.Equal(t, want, b, "over the second operand")
	r.Combine(a, a, bytes.Repeat([]byte{2}, 10_000))
	require.Equal(t, want, a, "over the first operand")
}

// TestUserOpUnit: every method calls a user's function with whole elements, whatever
// their size.
func TestUserOpUnit(t *testing.T) {
	for _, unit := range []int{0, 1, 3, 24, 1000, MaxUnit} {
		whole := max(unit, 1)
		pieces := 0
		r, err := NewReducer(Uint8, UserOpOf("digits", unit, func(_ DataType, dst, src []byte) {
			require.Zero(t, len(dst)%whole)
			require.Len(t, src, len(dst))
			pieces++
			for i := range dst {
				dst[i] = 10*dst[i] + src[i]
			}
		}), 2)
		require.NoError(t, err)
		require.Equal(t, whole, r.Unit())
		n := 7 * whole * (1 + 5000/whole)
		of := func(v byte) []byte { return bytes.Repeat([]byte{v}, n) }
		b, dst := of(2), make([]byte, n)
		r.Combine(b, of(1), b)
		require.Equal(t, of(12), b, "over the second operand")
		r.CombineAll(dst, [][]byte{of(1), of(2), of(3)}, 0, true)
		require.Equal(t, of(123), dst)
		require.Greater(t, pieces, 2)
		if unit > 1 {
			require.Panics(t, func() { r.Combine(dst[:unit+1], dst[:unit+1], dst[:unit+1]) })
		}
	}
}

func TestInvalid(t *testing.T) {
	tests := []struct {
		t     DataType
		op    RedOp
		ranks int
		want  string
	}{
		{Float32, BitAnd, 2, "kernels: bitand of float32: bitwise reductions need an integer type"},
		{Float8E5M2, BitXor, 2, "kernels: bitxor of float8e5m2: bitwise reductions need an integer type"},
		{0, Sum, 2, "kernels: sum of DataType(0): no such data type"},
		{0, PreMulSumAt(mem.Of([]float32{2})), 2,
			"kernels: premulsum(scalar in host memory) of DataType(0): no such data type"},
		{13, Sum, 2, "kernels: sum of DataType(13): no such data type"},
		{Int8, RedOp{Kind: 77}, 2, "kernels: Kind(77) of int8: no such reduction"},
		{Int8, Sum, 0, "kernels: sum of int8: 0 ranks, want at least 1"},
		{Int32, PreMulSum(0.5), 2,
			"kernels: premulsum(0.5) of int32: the scalar of an integer type has to be an integer of 64 bits"},
		{Int64, PreMulSum(1e30), 2,
			"kernels: premulsum(1e+30) of int64: the scalar of an integer type has to be an integer of 64 bits"},
		{Int64, PreMulSum(math.NaN()), 2,
			"kernels: premulsum(NaN) of int64: the scalar of an integer type has to be an integer of 64 bits"},
		{Float32, UserOpOf("mine", 6, func(DataType, []byte, []byte) {}), 2,
			"kernels: user(mine) of float32: elements of 6 bytes: Unit has to be a multiple of 4 up to 4096"},
		{Uint8, UserOpOf("mine", MaxUnit+1, func(DataType, []byte, []byte) {}), 2,
			"kernels: user(mine) of uint8: elements of 4097 bytes: Unit has to be a multiple of 1 up to 4096"},
		{Uint8, UserOpOf("mine", -1, func(DataType, []byte, []byte) {}), 2,
			"kernels: user(mine) of uint8: elements of -1 bytes: Unit has to be a multiple of 1 up to 4096"},
		{Float32, UserOp("mine", nil), 2, "kernels: user(mine) of float32: the function is nil"},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			for range 2 { // the second time perhaps from the cache
				_, err := NewReducer(test.t, test.op, test.ranks)
				require.EqualError(t, err, test.want)
				var invalid *InvalidError
				require.True(t, errors.As(err, &invalid))
			}
		})
	}
	r, err := NewReducer(Int32, Sum, 2)
	require.NoError(t, err)
	require.PanicsWithValue(t, "kernels: combine int32: 8, 8 and 4 bytes, want equal multiples of 4",
		func() { r.Combine(make([]byte, 8), make([]byte, 8), make([]byte, 4)) })
	require.Panics(t, func() { r.Load(make([]byte, 6), make([]byte, 6)) })
}

func TestCacheKeepsApart(t *testing.T) {
	one := bytesOf([]float32{1})
	for ranks := range 100 {
		for _, op := range []RedOp{Avg, PreMulSum(float64(ranks)), PreMulSumInt(int64(-ranks))} {
			r, err := NewReducer(Float32, op, ranks+1)
			require.NoError(t, err)
			again, err := NewReducer(Float32, op, ranks+1)
			require.NoError(t, err)
			require.Same(t, r, again)
			want := float32(op.Scale)
			if op.Kind == KindAvg {
				want = 1 / float32(ranks+1)
			}
			out := make([]byte, 4)
			r.Load(out, one)
			require.Equal(t, want, view[float32](out)[0])
		}
	}
}

func TestNoAllocation(t *testing.T) {
	a, b := make([]byte, 4096), make([]byte, 4096)
	for _, op := range []RedOp{Sum, Avg, PreMulSum(3)} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			r, err := NewReducer(BFloat16, op, 8)
			require.NoError(t, err)
			r.Load(a, b)
			r.CombineIn(a, a, b)
			r.Combine(a[:46], a[:46], b[:46])
			r.Finish(a)
		}))
	}
}

// TestDivide compares Finish with Go's own division.
func TestDivide(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 7, 100, 127, 128, 1000, 65535, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32,
		1<<40 + 1} {
		x := make([]byte, 8*4000)
		fill(rand.New(rand.NewPCG(5, 6)), Int32, x)
		for i := range 256 {
			x[i] = byte(i)
		}
		for _, ty := range []DataType{Int8, Uint8, Int32, Uint32, Int64, Uint64} {
			r, err := NewReducer(ty, Avg, ranks)
			require.NoError(t, err)
			got := apart(x, 0)
			r.Finish(got)
			for i := range len(x) / ty.Size() {
				var want, have any
				switch ty {
				case Int8:
					want, have = int8(int64(view[int8](x)[i])/int64(ranks)), view[int8](got)[i]
				case Uint8:
					want, have = uint8(uint64(view[uint8](x)[i])/uint64(ranks)), view[uint8](got)[i]
				case Int32:
					want, have = int32(int64(view[int32](x)[i])/int64(ranks)), view[int32](got)[i]
				case Uint32:
					want, have = uint32(uint64(view[uint32](x)[i])/uint64(ranks)), view[uint32](got)[i]
				case Int64:
					want, have = view[int64](x)[i]/int64(ranks), view[int64](got)[i]
				case Uint64:
					want, have = view[uint64](x)[i]/uint64(ranks), view[uint64](got)[i]
				}
				if want != have {
					require.Equalf(t, want, have, "element %d of %v by %d", i, ty, ranks)
				}
			}
		}
	}
}
