package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/hangs"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// accused are the ranks that the first answer to a folder accuses, and what it says.
func accused(t *testing.T, dir string) (ranks []int, says string) {
	_, out, _ := why(t, "-json", dir)
	var all []whyAnswer
	if json.Unmarshal([]byte(out), &all) != nil || len(all) == 0 {
		return nil, out
	}
	return all[0].Culprits, all[0].Reason + ": " + all[0].Sentence
}

// The dump of each rank in turn is missing, or cut off: no innocent is accused. Nor is anybody by dumps that were
// written as soon as the last call was made, as of a job that is well.
func TestWhyWithheld(t *testing.T) {
	for i, s := range hangs.All(*whySeed) {
		if s.Ranks < 3 || s.Ranks > 8 || !tier.Full() && i%hangs.PerKind > 0 {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, s.Write(dir, hangs.Dumps))
			files, err := filepath.Glob(filepath.Join(dir, "nccl_trace_rank_*"))
			require.NoError(t, err)
			for _, name := range files {
				b, err := os.ReadFile(name)
				require.NoError(t, err)
				info, err := os.Stat(name)
				require.NoError(t, err)
				for _, left := range []int{0, len(b) / 2, len(b) - 1} {
					require.NoError(t, os.Remove(name))
					if left > 0 {
						require.NoError(t, os.WriteFile(name, b[:left], 0o600))
					}
					ranks, says := accused(t, dir)
					for _, r := range ranks {
						require.Contains(t, s.Fault, r, "%s with %d bytes: %s", filepath.Base(name), left, says)
					}
					require.NoError(t, os.WriteFile(name, b, 0o600))
				}
				require.NoError(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
			}
			if s.Reason == "slow" || s.Reason == "short" { // their calls tell of long waits
				return
			}
			for _, name := range files {
				info, err := os.Stat(name)
				require.NoError(t, err)
				at := info.ModTime().Add(-10 * time.Minute)
				require.NoError(t, os.Chtimes(name, at, at))
			}
			ranks, says := accused(t, dir)
			require.Empty(t, ranks, says)
		})
	}
}
