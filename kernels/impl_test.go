package kernels

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// ops are all reductions that NewReducer takes for t, but for users' own. Scaled ones have scalars that round.
func ops(t DataType) []RedOp {
	all := []RedOp{Sum, Prod, Max, Min, Avg}
	if types[t].family == floating {
		return append(all, PreMulSum(1.0/3), PreMulSum(-3e5))
	}
	return append(all, BitAnd, BitOr, BitXor, PreMulSumInt(-7), PreMulSumInt(1<<62+12345))
}

// special are bit patterns of floats worth trying. Integers and 8-bit floats have theirs in fill.
var special = map[DataType][]uint64{
	Float64: {0, 1 << 63, 1, 1<<63 + 1, 1<<52 - 1, 1 << 52, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff,
		0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, 0x7ff8000000000000,
		0xfff8000000000000, 0xfff8dead00000000, 0x7fffffffffffffff, 0xffffffffffffffff, 0x4340000000000000},
	Float32: {0, 1 << 31, 1, 1<<31 + 1, 1<<23 - 1, 1 << 23, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
		0xff800000, 0x7f800001, 0xff812345, 0x7fc00000, 0xffc00000, 0x7fffffff, 0xffffffff, 0x4b800000, 0x33800000},
	Float16: {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfd23, 0x7e00,
		0xfe00, 0x7fff, 0xffff, 0x6800, 0x1400},
	BFloat16: {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xff92, 0x7fc0,
		0xffc0, 0x7fff, 0xffff, 0x4380, 0x3b80},
}

// fill fills b with elements of which some are special.
func fill(r *rand.Rand, t DataType, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	size := t.Size()
	put := func(at int, v uint64) {
		for i := range size {
			b[at+i] = byte(v >> (8 * i))
		}
	}
	edges := special[t]
	for at := 0; at+size <= len(b); at += size {
		switch k := r.IntN(8); {
		case k == 0 && edges != nil:
			put(at, edges[r.IntN(len(edges))])
		case k == 0:
			put(at, []uint64{0, 1, ^uint64(0), 1<<(8*size-1) - 1, 1 << (8*size - 1)}[r.IntN(5)])
		case k < 4 && types[t].family == floating && size > 1: // of like magnitude, so that sums round
			top := uint64(b[at+size-1]&0x81 | 0x3c)
			put(at, top<<(8*(size-1))|r.Uint64()&(1<<(8*(size-1))-1))
		}
	}
}

// apart makes a copy of b that starts off bytes after a multiple of 8.
func apart(b []byte, off int) []byte {
	c := bytesOf(make([]uint64, len(b)/8+17))
	c = c[off : off+len(b) : off+len(b)]
	copy(c, b)
	return c
}

// reductions calls f for each type and reduction.
func reductions(t *testing.T, f func(t *testing.T, ty DataType, op RedOp)) {
	for _, ty := range Types() {
		for _, op := range ops(ty) {
			t.Run(fmt.Sprintf("%v/%v", ty, op), func(t *testing.T) { f(t, ty, op) })
		}
	}
}

// TestImplementations compares all implementations with the plain loops, bit for bit, for all short lengths and for
// some long ones, aligned and not.
func TestImplementations(t *testing.T) {
	lengths := []int{1021, 4099}
	for n := range 258 {
		lengths = append(lengths, n)
	}
	for _, impl := range implementations() {
		t.Run(impl.name, func(t *testing.T) {
			lengths := lengths
			if impl.name == plainGo.name { // plain loops depend on where data start, not on the length
				lengths = lengths[:40]
			}
			reductions(t, func(t *testing.T, ty DataType, op RedOp) {
				t.Parallel()
				compareWithPlain(t, impl, ty, op, lengths)
			})
		})
	}
}

// TestPieces has data that exceed one call of assembly, see most.
func TestPieces(t *testing.T) {
	for _, impl := range implementations() {
		for _, ty := range []DataType{Float32, BFloat16, Uint8} {
			compareWithPlain(t, impl, ty, Sum, []int{(most + 136) / ty.Size()})
		}
	}
}

func compareWithPlain(t *testing.T, impl implementation, ty DataType, op RedOp, lengths []int) {
	const ranks = 3
	want, err := newReducer(ty, op, ranks, plainGo)
	require.NoError(t, err)
	got, err := newReducer(ty, op, ranks, impl)
	require.NoError(t, err)
	require.Equal(t, want.LoadIsCopy(), got.LoadIsCopy())

	r := rand.New(rand.NewPCG(uint64(ty), uint64(op.Kind)))
	for _, n := range lengths {
		a, b := make([]byte, n*ty.Size()), make([]byte, n*ty.Size())
		fill(r, ty, a)
		fill(r, ty, b)
		for name, f := range map[string]func(*Reducer) func(dst, a, b []byte){
			"combine":   func(r *Reducer) func(dst, a, b []byte) { return r.Combine },
			"combineIn": func(r *Reducer) func(dst, a, b []byte) { return r.CombineIn },
			"load":      func(r *Reducer) func(dst, a, b []byte) { return func(dst, a, _ []byte) { r.Load(dst, a) } },
			"finish": func(r *Reducer) func(dst, a, b []byte) {
				return func(dst, a, _ []byte) {
					copy(dst,
						a)
					r.Finish(dst)
				}
			},
		} {
			if name != "combine" && n%8 != 1 && want.LoadIsCopy() && !want.Finishes() {
				continue // the function is the same for all implementations, or does nothing
			}
			result := make([]byte, len(a))
			f(want)(result, apart(a, 0), apart(b, 0))

			offs := [4]int{0, ty.Size() * r.IntN(16), r.IntN(64), r.IntN(64)}
			x, y, dst := apart(a, offs[r.IntN(4)]), apart(b, offs[r.IntN(4)]), apart(a, offs[r.IntN(4)])
			f(got)(dst, x, y)
			require.Equalf(t, "", difference(ty, a, b, result, dst), "%s of %d", name, n)
			require.True(t, bytes.Equal(a, x) && bytes.Equal(b, y), "%s of %d changed an operand", name, n)

			f(got)(x, x, y)
			require.Equalf(t, "", difference(ty, a, b, result, x), "%s of %d over the first operand", name, n)
			if name == "combine" || name == "combineIn" {
				x = apart(a, offs[r.IntN(4)])
				f(got)(y, x, y)
				require.Equalf(t, "", difference(ty, a, b, result, y), "%s of %d over the second operand", name, n)
			}
		}
	}
}

// difference describes the first element in which got differs from want.
func difference(t DataType, a, b, want, got []byte) string {
	if bytes.Equal(want, got) {
		return ""
	}
	size := t.Size()
	for i := 0; i < len(want); i += size {
		if !bytes.Equal(want[i:i+size], got[i:i+size]) {
			return fmt.Sprintf("element %d: %x ⊕ %x is %x, want %x (little endian)",
				i/size, a[i:i+size], b[i:i+size], got[i:i+size], want[i:i+size])
		}
	}
	return "lengths differ"
}
