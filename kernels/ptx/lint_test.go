package ptx

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// entries are the kernels of a module and the sizes of their parameters.
func entries(n Name) map[string]int {
	ranks := n.Ranks
	switch n.Ranks = 0; n {
	case Copy:
		return map[string]int{n.Run(): 216, Over: 8, Messages: 3672, Notes: 3672}
	case Bulk:
		return map[string]int{n.Run(): 248, BulkMessages: 3672}
	case Name{n.Type, n.Op, n.SM, "run", 0}:
		return map[string]int{n.Run(): 216}
	case Name{n.Type, n.Op, n.SM, "bulk", 0}:
		return map[string]int{n.Run(): 248}
	case Name{n.Type, n.Op, n.SM, "direct", 0}:
		return map[string]int{n.Run(): 544}
	case Name{n.Type, n.Op, n.SM, "norm", 0}:
		if all := map[string]int{n.Run(): 680, n.Rows(): 680}; ranks == 0 {
			return all
		}
		return map[string]int{n.Run(): 680}
	case Name{n.Type, n.Op, n.SM, "many", 0}:
		return map[string]int{n.Run(): 4000}
	case Name{n.Type, n.Op, n.SM, "window", 0}:
		return map[string]int{n.Run(): 392, n.Loose(): 392}
	case Signal:
		return map[string]int{n.Run(): 136}
	case Meter:
		return map[string]int{"fill": 48, "compare": 48, "chase": 24, "store": 12, "look": 24, "multiply": 12}
	}
	return map[string]int{n.Combine(): 120, n.Plain(): 120}
}

// TestLint looks in the texts for faults that no other test without a GPU would notice.
func TestLint(t *testing.T) {
	for _, n := range tier.Some(8, All()) {
		t.Run(n.String(), func(t *testing.T) {
			text, err := Text(n)
			require.NoError(t, err)
			m, err := ptx.Parse(n.String(), text)
			require.NoError(t, err)
			require.Equal(t, ptx.Version{Major: n.Version() / 10, Minor: n.Version() % 10}, m.Version)
			require.Empty(t, ptx.Lint(m, ptx.Rules{
				Entries:     entries(n),
				Targets:     []string{n.Target()},
				AddressSize: 64,
			}))
			for _, f := range m.Funcs {
				for i := range f.Body {
					in := &f.Body[i]
					arithmetic := slices.Contains([]string{"add", "sub", "mul", "fma"}, in.Op) &&
						len(in.Types) > 0 && (in.Types[0] == ptx.F32 || in.Types[0] == ptx.F64)
					if n != Meter && arithmetic && (in.Op == "fma" || !in.Has("rn")) {
						t.Errorf("line %d: %s: the driver may fuse it, or it is fused", in.Line, in.Text)
					}
				}
				if n.Source == "run" && f.Name == n.Run() {
					require.Equal(t, ptx.Dim{576, 1, 1}, f.MaxThreads)
				}
				if n.Source == "bulk" {
					threads := 10 * 32
					if n.Type != "" {
						threads = 12 * 32
					}
					require.Equal(t, ptx.Dim{threads, 1, 1}, f.MaxThreads)
				}
				if n.Source == "direct" || f.Name == n.Combine() {
					require.Equal(t, ptx.Dim{512, 1, 1}, f.MaxThreads)
				}
			}
		})
	}
}
