package simt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// vectorAtomic is a kernel of an instruction on a vector, in which each thread has one to operate with at [%rd2], and
// all operate on the one at [%rd0]. What they find there follows.
func vectorAtomic(op, vec, typ string, old bool) string {
	n := int(vec[1] - '0')
	bits, regs := 32, "%r"
	if strings.HasSuffix(typ, "16") {
		bits, regs = 16, "%h"
	}
	list := func(from int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint(regs, from+i))
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	var t strings.Builder
	fmt.Fprintf(&t, "mad.wide.u32 %%rd2, %%r0, %d, %%rd0;\n", n*bits/8)
	for i := range n {
		fmt.Fprintf(&t, "ld.global.b%d %s%d, [%%rd2+%d];\n", bits, regs, 10+i, 64+i*bits/8)
	}
	if !old {
		return t.String() + fmt.Sprintf("red.global.%s.%s.%s [%%rd0], %s;", op, vec, typ, list(10))
	}
	fmt.Fprintf(&t, "atom.relaxed.gpu.%s.%s.%s %s, [%%rd0], %s;\n", op, vec, typ, list(10), list(10))
	for i := range n {
		fmt.Fprintf(&t, "st.global.b%d [%%rd2+%d], %s%d;\n", bits, 64+i*bits/8, regs, 10+i)
	}
	return t.String()
}

func TestVectorAtomics(t *testing.T) {
	for _, c := range []struct {
		op, vec, typ string
		do           func(a, b int) int
	}{
		{"add", "v2", "f32", plus}, {"add", "v4", "f32", plus},
		{"add.noftz", "v2", "f16", plus}, {"add.noftz", "v4", "bf16", plus}, {"max.noftz", "v8", "f16", more},
		{"min.noftz", "v8", "bf16", less},
		{"add.noftz", "v2", "f16x2", plus}, {"add.noftz", "v4", "bf16x2", plus}, {"min.noftz", "v4", "f16x2", less},
		{"max.noftz", "v2", "bf16x2", more},
	} {
		element := typeOf(t, strings.TrimSuffix(c.typ, "x2"))
		n := int(c.vec[1] - '0')
		if strings.HasSuffix(c.typ, "x2") {
			n *= 2
		}
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprint(c.op, c.vec, c.typ, old), func(t *testing.T) {
				const threads = 5
				words := n * element.Bits() / 32
				have, want := table{1, n, make([]int, n)}, table{1, n, make([]int, n)}
				for i := range n {
					have.v[i] = 3 - i
				}
				copy(want.v, have.v)
				data := append(have.words(element), make([]uint32, 16-words)...)
				for thread := range threads {
					one := table{1, n, make([]int, n)}
					for i := range n {
						one.v[i] = (3*thread+5*i)%7 - 3
						want.v[i] = c.do(want.v[i], one.v[i])
					}
					data = append(data, one.words(element)...)
				}
				for seed := range uint64(4) {
					text := strings.Replace(hand(vectorAtomic(c.op, c.vec, c.typ, old)), "%h<9>", "%h<20>", 1)
					text = strings.Replace(text, "8.0", "8.1", 1)
					got := compute(t, options{seed: seed}, text, "k", threads, data, 5)
					require.Equal(t, want.words(element), got[:words])
					if old { // in some order, the first of which finds what was there
						first := 0
						for thread := range threads {
							first += b2i(fmt.Sprint(got[16+thread*words:][:words]) == fmt.Sprint(have.words(element)))
						}
						require.Positive(t, first)
					}
				}
			})
		}
	}
}

func plus(a, b int) int { return a + b }
func more(a, b int) int { return max(a, b) }
func less(a, b int) int { return min(a, b) }

// Each element is an operation of its own: between two of them others see one without the other.
func TestVectorAtomicIsNotWhole(t *testing.T) {
	emulated(t)
	text := hand(`setp.gt.u32 %p1, %r0, 31;
@%p1 bra READ;
mov.f32 %f1, 0f3F800000;
mov.b32 %r1, 0;
L: red.relaxed.gpu.global.add.v2.f32 [%rd0], {%f1, %f1};
add.u32 %r1, %r1, 1;
setp.lt.u32 %p2, %r1, 50;
@%p2 bra L;
exit;
READ:
ld.relaxed.gpu.global.v2.f32 {%f2, %f3}, [%rd0];
setp.ne.f32 %p2, %f2, %f3;
@%p2 bra TORN;
setp.lt.f32 %p2, %f2, 0f44C80000;
@%p2 bra READ;
exit;
TORN: st.relaxed.gpu.global.u32 [%rd0+8], 1;`)
	torn := uint32(0)
	for seed := range uint64(20) {
		got := compute(t, options{seed: seed}, strings.Replace(text, "8.0", "8.1", 1), "k", 33, make([]uint32, 4), 5)
		require.Equal(t, encode(ptx.F32, 1600), uint64(got[0]))
		require.Equal(t, got[0], got[1])
		torn += got[2]
	}
	t.Logf("%d of 20", torn)
	require.Positive(t, torn)
}

func TestVectorAtomicFaults(t *testing.T) {
	for _, c := range []struct {
		name, body string
		kind       weakmem.FaultKind
		detail     string
	}{
		{"misaligned", "red.global.add.v4.f32 [%rd0+8], {%f1, %f1, %f1, %f1};", weakmem.Misaligned,
			"a vector of 16 bytes has to be a multiple of its size"},
		{"shared", "mov.u64 %rd2, unused; cvta.shared.u64 %rd2, %rd2; red.add.v2.f32 [%rd2], {%f1, %f1};", bad,
			"atomic operations on vectors are on global memory"},
		{"beyond", "red.global.add.v2.f32 [%rd0+4096], {%f1, %f1};", weakmem.OutOfBounds, "red.global.add.v2.f32"},
		{"a race with a store", "setp.eq.u32 %p1, %r0, 0; @%p1 st.global.u32 [%rd0+4], 1; red.global.add.v2.f32 [%rd0], " +
			"{%f1, %f1};", raced, "store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := boot(t, strings.Replace(hand(c.body), "8.0", "8.1", 1), options{})
			g := m.grid("k", 1, 2, m.words(1, 2, 3, 4), 5)
			m.start(g)
			require.NotNil(t, g.Fault())
			require.Equal(t, c.kind, g.Fault().Kind, "%v", g.Fault())
			require.Contains(t, g.Fault().Error(), c.detail)
		})
	}
}
