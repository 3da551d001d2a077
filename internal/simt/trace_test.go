package simt_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
