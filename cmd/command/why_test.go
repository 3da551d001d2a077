package command

import (
	"fmt"
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

// Dumps of PyTorch's flight recorder: rank 2 has not made the call in which the others wait.
func TestWhyFlightRecorder(t *testing.T) {
	dir := t.TempDir()
	for rank := range 3 {
		entries := ""
		for n := range 3 - rank/2 {
			state := "completed"
			if n == 2 {
				state = "started"
			}
			entries += fmt.Sprintf(`{"record_id": %d, "process_group": ["0", "default_pg"], "collective_seq_id": %d, "profiling_name": "nccl:all_reduce",
				"input_sizes": [[4]], "input_dtypes": ["Float"], "time_created_ns": %d, "state": %q, "timeout_ms": 10000,
				"frames": [{"name": "step", "filename": "/home/u/train.py", "line": 4%d}]},`, n, n+1, 1_700_000_000_000_000_000+n, state, n)
		}
		text := fmt.Sprintf(`{"version": "2.4", "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1, 2]"}}, "entries": [%s]}`, strings.TrimSuffix(entries, ","))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)), []byte(text), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("none"), 0o600))
	var out, errs strings.Builder
	require.Zero(t, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	require.Equal(t, `rank 2 never called all_reduce #3 of the default group, its last call was all_reduce #2 of the default group (train.py:41 in step); ranks 0 and 1 wait in all_reduce #3 of the default group (train.py:42 in step)
to blame: rank 2
remedy: see what rank 2 does there: py-spy dump --pid PID; if it is only slow, the time-out of 10s is too short

ranks  are
0-1    begun all_reduce #3 of the default group, train.py:42 in step
2      in no call, its last call was all_reduce #2 of the default group (train.py:41 in step)
`, out.String())
}
