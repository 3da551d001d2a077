package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/hangs"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// The dump of each rank in turn is missing, or one of an earlier moment: no innocent is accused.
func TestWhyWithheld(t *testing.T) {
	for i, s := range hangs.All(*whySeed) {
		if s.Ranks < 3 || s.Ranks > 8 || !tier.Full() && i%hangs.PerKind > 1 {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, s.Write(dir, hangs.Dumps))
			for r := range s.Ranks {
				name := filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", r))
				if _, err := os.Stat(name); err != nil {
					continue
				}
				require.NoError(t, os.Rename(name, filepath.Join(dir, "away")))
				var out, errs strings.Builder
				ringoMain(t.Context(), []string{"why", "-json", dir}, &out, &errs)
				var all []whyAnswer
				_ = json.Unmarshal([]byte(out.String()), &all)
				for _, a := range all {
					for _, c := range a.Culprits {
						if !slices.Contains(s.Fault, c) {
							t.Errorf("without the dump of rank %d of %d, the fault being %v: %s", r, s.Ranks, s.Fault, a.Sentence)
						}
					}
				}
				require.NoError(t, os.Rename(filepath.Join(dir, "away"), name))
			}
		})
	}
}
