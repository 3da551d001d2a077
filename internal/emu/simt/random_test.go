package simt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A random kernel without races gives the same for all seeds, and what a single thread computes.
func TestRandomKernels(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		k := &randomKernel{t: r}
		k.together = rapid.Bool().Draw(r, "together")
		k.threads = rapid.IntRange(1, 100).Draw(r, "threads")
		body, want := k.kernel()
		for range 2 {
			o := options{seed: rapid.Uint64().Draw(r, "seed")}
			require.Equal(r, want, result(t, o, k.threads, "mov.b32 %r1, %r0;\n"+body+"st.global.u32 [%rd1], %r1;\n"))
		}
	})
}

// A randomKernel is a program on one register, as PTX and as Go.
type randomKernel struct {
	t        *rapid.T
	threads  int
	together bool // threads exchange values; none ends early
	labels   int
	run      []func(x *uint32) bool // what a thread computes; false: it has ended
}

// kernel draws a program, and what its threads compute.
func (k *randomKernel) kernel() (text string, want []uint32) {
	x := sequence(k.threads, 1)
	for range rapid.IntRange(1, 3).Draw(k.t, "phases") {
		text += k.block(3)
		for i := range x {
			if y := x[i]; sequenceOf(k.run)(&y) {
				x[i] = y
			}
		}
		if !k.together {
			break // one phase: threads that have ended stay so
		}
		k.run = nil
		n := rapid.IntRange(0, 99).Draw(k.t, "n")
		switch rapid.IntRange(0, 2).Draw(k.t, "exchange") {
		case 0: // through shared memory, with the thread n away
			text += fmt.Sprintf(`mov.u64 %%rd2, s; mad.wide.u32 %%rd3, %%r0, 4, %%rd2; st.shared.u32 [%%rd3], %%r1; bar.sync 0;
				add.u32 %%r2, %%r0, %d; rem.u32 %%r2, %%r2, %d; mad.wide.u32 %%rd3, %%r2, 4, %%rd2; ld.shared.u32 %%r1, [%%rd3]; bar.sync 0;
`, n, k.threads)
			old := slices.Clone(x)
			for i := range x {
				x[i] = old[(i+n)%k.threads]
			}
		case 1: // a sum of each warp
			text += "redux.sync.add.u32 %r1, %r1, 0xffffffff;\n"
			for i := 0; i < len(x); i += 32 {
				warp := x[i:min(i+32, len(x))]
				sum := uint32(0)
				for _, v := range warp {
					sum += v
				}
				for j := range warp {
					warp[j] = sum
				}
			}
		case 2: // how many of the block are odd
			text += "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; bar.red.popc.u32 %r2, 1, %p1; add.u32 %r1, %r1, %r2;\n"
			odd := uint32(0)
			for _, v := range x {
				odd += v & 1
			}
			for i := range x {
				x[i] += odd
			}
		}
	}
	return ".shared .align 4 .b8 s[400];\n" + text, x
}

// sequenceOf runs functions in turn.
func sequenceOf(fs []func(*uint32) bool) func(*uint32) bool {
	return func(x *uint32) bool {
		for _, f := range fs {
			if !f(x) {
				return false
			}
		}
		return true
	}
}

// block draws statements nested so deep, and adds what they compute to run.
func (k *randomKernel) block(depth int) string {
	var s strings.Builder
	kinds := 2
	if depth > 0 {
		kinds = 6
		if k.together {
			kinds = 5
		}
	}
	inner := func() (string, func(*uint32) bool) {
		outer := k.run
		k.run = nil
		text := k.block(depth - 1)
		f := sequenceOf(k.run)
		k.run = outer
		return text, f
	}
	for range rapid.IntRange(1, 4).Draw(k.t, "statements") {
		n := uint32(rapid.IntRange(1, 50).Draw(k.t, "n"))
		k.labels++
		l := k.labels
		switch rapid.IntRange(0, kinds-1).Draw(k.t, "kind") {
		case 0:
			fmt.Fprintf(&s, "mad.lo.u32 %%r1, %%r1, 3, %d;\n", n)
			k.run = append(k.run, func(x *uint32) bool { *x = *x*3 + n; return true })
		case 1:
			fmt.Fprintf(&s, "shr.u32 %%r2, %%r1, 3; xor.b32 %%r1, %%r1, %%r2; setp.gt.u32 %%p1, %%r1, %d; @%%p1 sub.u32 %%r1, "+
				"%%r1, 1;\n", n)
			k.run = append(k.run, func(x *uint32) bool {
				*x ^= *x >> 3
				if *x > n {
					*x--
				}
				return true
			})
		case 2, 3: // if and else
			yes, f := inner()
			no, g := inner()
			fmt.Fprintf(&s, "and.b32 %%r2, %%r1, %d; setp.eq.u32 %%p1, %%r2, 0; @%%p1 bra E%d;\n%sbra J%d;\nE%d:\n%sJ%d:\n", n,
				l, no, l, l, yes, l)
			k.run = append(k.run, func(x *uint32) bool {
				if *x&n == 0 {
					return f(x)
				}
				return g(x)
			})
		case 4: // a loop, as long as each thread likes
			text, f := inner()
			c := 10 + depth
			fmt.Fprintf(&s, "and.b32 %%r%d, %%r1, 7; add.u32 %%r%d, %%r%d, 1;\nL%d:\n%ssub.u32 %%r%d, %%r%d, 1; setp.ne.u32 "+
				"%%p2, %%r%d, 0; @%%p2 bra L%d;\n", c, c, c, l, text, c, c, c, l)
			k.run = append(k.run, func(x *uint32) bool {
				for i := *x&7 + 1; i > 0; i-- {
					if !f(x) {
						return false
					}
				}
				return true
			})
		case 5:
			fmt.Fprintf(&s, "and.b32 %%r2, %%r1, 63; setp.eq.u32 %%p1, %%r2, %d; @%%p1 exit;\n", n)
			k.run = append(k.run, func(x *uint32) bool { return *x&63 != n })
		}
	}
	return s.String()
}
