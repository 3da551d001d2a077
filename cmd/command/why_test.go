package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

func TestWhy(t *testing.T) {
	dir := t.TempDir()
	comms, err := ringo.OpenLocal(2, ringo.Config{History: dir})
	require.NoError(t, err)
	comms[1].Abort(nil)
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
	var out, errs strings.Builder
	require.Zero(t, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	require.Regexp(t, `^communicator \w{8} of 2 ranks: .*aborted\nto blame: rank 1\n`, out.String())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ringo-x-rank7.json"), []byte("{"), 0o600))
	require.Zero(t, ringoMain(t.Context(), []string{"why", dir}, &out, &errs))
	require.Regexp(t, `^left out: .*ringo-x-rank7.json: unexpected end of JSON input\n$`, errs.String())
	require.Equal(t, 2, ringoMain(t.Context(), []string{"why"}, &out, &errs))
	require.Equal(t, 1, ringoMain(t.Context(), []string{"why", "/nowhere"}, &out, &errs))
	require.Contains(t, errs.String(), "which files?")
}
