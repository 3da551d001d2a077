package fifo

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The same protocol once more, in Promela, where a checker of its own looks at it.
func TestWorkPromela(t *testing.T) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (Debian: apt install spin gcc); TestWorkModel checks the same", tool)
		}
	}
	for _, tc := range []struct{ define, want string }{
		{"-DCAP=2", "errors: 0"},
		{"-DCAP=1", "errors: 0"},
		{"-DFAULT", "errors: 1"},
	} {
		t.Run(tc.define, func(t *testing.T) {
			file, err := filepath.Abs("model/work.pml")
			require.NoError(t, err)
			cmd := exec.Command("spin", tc.define, "-run", "-DSAFETY", file)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), tc.want, "%s", out)
			require.NotContains(t, string(out), "max search depth too small")
		})
	}
}
