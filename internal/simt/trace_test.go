package simt_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/internal/simt"
)

var rewrite = flag.Bool("rewrite", false, "write the goldens of testdata anew")

// traced runs a kernel and gives its trace, a line an instruction.
func traced(t testing.TB, file, kernel string, blocks, threads int, seed uint64, step int, arguments ...func(m *machine) any) []string {
	var lines []string
	m := boot(t, file, options{seed: seed, trace: func(e simt.Event) {
		lines = append(lines, fmt.Sprintf("%d %v warp %d %08x %3d %s", e.Device, e.Block, e.Warp, e.Mask, e.In.Line, e.In.Text))
	}})
	var a []any
	for _, f := range arguments {
		a = append(a, f(m))
	}
	g := m.grid(kernel, blocks, threads, a...)
	g.Shared = 4 * threads
	require.NoError(t, m.world.Start(g))
	for m.world.Step(step) > 0 {
	}
	require.Nil(t, g.Fault())
	return lines
}

func words(n int) func(m *machine) any {
	return func(m *machine) any { return m.words(sequence(n, 1)...) }
}

func TestTraceGolden(t *testing.T) {
	got := traced(t, "flow.ptx", "nested", 1, 40, 1, 1, words(40))
	const file = "testdata/nested.trace"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(got, "\n")), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	for i, line := range strings.Split(string(want), "\n") {
		require.Less(t, i, len(got))
		require.Equal(t, line, got[i], "line %d", i+1)
	}
}

func TestSeedDecidesTheOrder(t *testing.T) {
	all := map[string]bool{}
	for seed := range uint64(seeds) {
		a := traced(t, "block.ptx", "tree", 3, 64, seed, 1, words(192), words(3))
		b := traced(t, "block.ptx", "tree", 3, 64, seed, 1000, words(192), words(3))
		require.True(t, slices.Equal(a, b), "seed %d: the same whatever the steps", seed)
		all[strings.Join(a, "\n")] = true
	}
	require.Len(t, all, seeds, "every seed has an order of its own")
}

// A random kernel without races gives the same for all seeds, and what a single thread computes.
func TestRandomKernels(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		k := &randomKernel{t: r}
		body := k.block(3)
		threads := rapid.IntRange(1, 100).Draw(r, "threads")
		var want []uint32
		for i := range threads {
			want = append(want, k.compute(uint32(i)))
		}
		for range 2 {
			o := options{seed: rapid.Uint64().Draw(r, "seed")}
			require.Equal(r, want, result(t, o, threads, "mov.b32 %r1, %r0;\n"+body+"st.global.u32 [%rd1], %r1;\n"))
		}
	})
}

// A randomKernel is a program on one register, as PTX and as Go.
type randomKernel struct {
	t      *rapid.T
	labels int
	run    []func(x *uint32) bool // false: the thread has ended
}

func (k *randomKernel) compute(thread uint32) uint32 {
	x := thread
	for _, f := range k.run {
		if !f(&x) {
			return thread // the word is as it was
		}
	}
	return x
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
			fmt.Fprintf(&s, "shr.u32 %%r2, %%r1, 3; xor.b32 %%r1, %%r1, %%r2; setp.gt.u32 %%p1, %%r1, %d; @%%p1 sub.u32 %%r1, %%r1, 1;\n", n)
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
			fmt.Fprintf(&s, "and.b32 %%r2, %%r1, %d; setp.eq.u32 %%p1, %%r2, 0; @%%p1 bra E%d;\n%sbra J%d;\nE%d:\n%sJ%d:\n", n, l, no, l, l, yes, l)
			k.run = append(k.run, func(x *uint32) bool {
				if *x&n == 0 {
					return f(x)
				}
				return g(x)
			})
		case 4: // a loop, as long as each thread likes
			text, f := inner()
			c := 10 + depth
			fmt.Fprintf(&s, "and.b32 %%r%d, %%r1, 7; add.u32 %%r%d, %%r%d, 1;\nL%d:\n%ssub.u32 %%r%d, %%r%d, 1; setp.ne.u32 %%p2, %%r%d, 0; @%%p2 bra L%d;\n", c, c, c, l, text, c, c, c, l)
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
