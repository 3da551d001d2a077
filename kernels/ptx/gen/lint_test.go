package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	asm "github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels/ptx"
)

// entries are the kernels of a module and the sizes of their parameters.
func entries(n ptx.Name) map[string]int {
	ranks := n.Ranks
	switch n.Ranks = 0; n {
	case ptx.Copy:
		return map[string]int{n.Run(): 216, ptx.Over: 8, ptx.Messages: 3672, ptx.Notes: 3672}
	case ptx.Bulk:
		return map[string]int{n.Run(): 248, ptx.BulkMessages: 3672}
	case ptx.Name{Type: n.Type, Op: n.Op, SM: n.SM, Source: "run"}:
		return map[string]int{n.Run(): 216}
	case ptx.Name{Type: n.Type, Op: n.Op, SM: n.SM, Source: "bulk"}:
		return map[string]int{n.Run(): 248}
	case ptx.Name{Type: n.Type, Op: n.Op, SM: n.SM, Source: "direct"}:
		return map[string]int{n.Run(): 544}
	case ptx.Name{Type: n.Type, Op: n.Op, SM: n.SM, Source: "norm"}:
		if all := map[string]int{n.Run(): 680, n.Rows(): 680}; ranks == 0 {
			return all
		}
		return map[string]int{n.Run(): 680}
	case ptx.Name{Type: n.Type, Op: n.Op, SM: n.SM, Source: "many"}:
		return map[string]int{n.Run(): 4000}
	case ptx.Name{Type: n.Type, Op: n.Op, SM: n.SM, Source: "window"}:
		return map[string]int{n.Run(): 392, n.Loose(): 392}
	case ptx.Signal:
		return map[string]int{n.Run(): 136}
	case ptx.Meter:
		return map[string]int{"fill": 48, "compare": 48, "chase": 24, "store": 12, "look": 24, "multiply": 12}
	}
	return map[string]int{n.Combine(): 120, n.Plain(): 120}
}

// TestLint looks in the texts for faults that no other test without a GPU would notice.
func TestLint(t *testing.T) {
	for _, n := range tier.Some(8, ptx.All()) {
		t.Run(n.String(), func(t *testing.T) {
			text, err := ptx.Text(n)
			require.NoError(t, err)
			m, err := asm.Parse(n.String(), text)
			require.NoError(t, err)
			require.Equal(t, asm.Version{Major: n.Version() / 10, Minor: n.Version() % 10}, m.Version)
			require.Empty(t, asm.Lint(m, asm.Rules{
				Entries:     entries(n),
				Targets:     []string{n.Target()},
				AddressSize: 64,
			}))
			for _, f := range m.Funcs {
				for i := range f.Body {
					in := &f.Body[i]
					arithmetic := slices.Contains([]string{"add", "sub", "mul", "fma"}, in.Op) &&
						len(in.Types) > 0 && (in.Types[0] == asm.F32 || in.Types[0] == asm.F64)
					if n != ptx.Meter && arithmetic && (in.Op == "fma" || !in.Has("rn")) {
						t.Errorf("line %d: %s: the driver may fuse it, or it is fused", in.Line, in.Text)
					}
				}
				if n.Source == "run" && f.Name == n.Run() {
					require.Equal(t, asm.Dim{576, 1, 1}, f.MaxThreads)
				}
				if n.Source == "bulk" {
					threads := 10 * 32
					if n.Type != "" {
						threads = 12 * 32
					}
					require.Equal(t, asm.Dim{threads, 1, 1}, f.MaxThreads)
				}
				if n.Source == "direct" || f.Name == n.Combine() {
					require.Equal(t, asm.Dim{512, 1, 1}, f.MaxThreads)
				}
			}
		})
	}
}
