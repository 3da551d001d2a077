package simt_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/test/must"
)

var rewrite = flag.Bool("rewrite", false, "write the goldens of testdata anew")

// traced runs a kernel and gives its trace, a line an instruction.
func traced(t testing.TB, file, kernel string, blocks, threads int, seed uint64, step int,
	arguments ...func(m *machine) any) []string {
	var lines []string
	m := boot(t, file, options{seed: seed, trace: func(e simt.Event) {
		lines = append(lines, fmt.Sprintf("%d %v warp %d %08x %3d %s", e.Device, e.Block, e.Warp, e.Mask,
			e.In.Line, e.In.Text))
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
	want := must.Get(os.ReadFile(file))
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

// Threads that parted meet where their ways join, wherever the code was put.
func TestThreadsMeet(t *testing.T) {
	for _, c := range []struct {
		name, body string
		join       string // is to be run once by all
	}{
		{"the other side is at the end", `setp.lt.u32 %p1, %r0, 9; @%p1 bra OTHER;
			add.u32 %r1, %r0, 1; add.u32 %r1, %r1, 1;
		JOIN: add.u32 %r2, %r1, 77;
			st.global.u32 [%rd1], %r2; exit;
		OTHER: sub.u32 %r1, %r0, 1; sub.u32 %r1, %r1, 1; bra JOIN;`, "77"},
		{"a loop is left in its middle, and what follows comes before it", `mov.u32 %r1, %r0; bra LOOP;
		AFTER: add.u32 %r2, %r1, 77; exit;
		LOOP: add.u32 %r1, %r1, 1; and.b32 %r3, %r1, 7; setp.eq.u32 %p1, %r3, 0; @%p1 bra AFTER;
			add.u32 %r1, %r1, 2; setp.gt.u32 %p1, %r1, 50; @%p1 bra AFTER; bra LOOP;`, "77"},
		{"a loop in a loop", `mov.u32 %r1, %r0; bra OUTER;
		AFTER: add.u32 %r2, %r1, 77; exit;
		INNER: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r1; @%p1 bra INNER;
			add.u32 %r1, %r1, 5; setp.gt.u32 %p1, %r1, 40; @%p1 bra AFTER;
		OUTER: mov.u32 %r4, 0; bra INNER;`, "77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			together := 0
			for seed := range uint64(seeds) {
				times := 0
				m := boot(t, hand(c.body), options{seed: seed, trace: func(e simt.Event) {
					if strings.Contains(e.In.Text, c.join) {
						times++
					}
				}})
				m.run(m.grid("k", 1, 32, m.words(sequence(32, 1)...), 5))
				if times == 1 {
					together++
				}
			}
			require.Greater(t, together, seeds/2, "a few seeds may keep threads apart")
		})
	}
}
