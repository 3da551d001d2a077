package why

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/inspector"
)

// line is a collective as the Inspector writes it.
func line(id string, rank, ranks, number, micros int) string {
	return fmt.Sprintf(`{"header": {"id": %q, "rank": %d, "n_ranks": %d, "nnodes": 1}, "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "profiler_plugin",
"dump_timestamp_us": 1748030377748202, "hostname": "node-a", "pid": %d}, "coll_perf": {"coll": "AllReduce", "coll_sn": %d, "coll_msg_size_bytes": 4096, "coll_exec_time_us": %d,
"coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1}}`+"\n", id, rank, ranks, 100+rank, number, micros)
}

// The files tell each rank's process and which rank usually comes last. They accuse nobody, as they lack calls that
// have not ended.
func TestInspector(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for r := range 4 {
		var text strings.Builder
		for n := range 20 {
			text.WriteString(line("0xab", r, 4, n, map[bool]int{true: 40, false: 900 + n}[r == 2]))
			text.WriteString(line("0xcd", r%2, 2, n, 900))
		}
		if r == 3 {
			text.WriteString(`{"header": {"id": "0xab", "ra`) // the process was killed while it wrote
		}
		name := filepath.Join(dir, fmt.Sprint(r))
		require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
		require.True(t, inspector.Is([]byte(text.String())))
		files = append(files, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), []byte(`{"coll_perf": 1}`), 0o600))
	j, skipped, err := inspector.Read(append(files, filepath.Join(dir, "x"))...)
	require.NoError(t, err)
	require.Len(t, skipped, 1)
	require.Len(t, j.Ranks, 4)
	require.Equal(t, "process 103 on node node-a", j.Ranks[3].Name)
	a := inspector.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)
	require.Contains(t, a.Notes[0],
		"rank 2 usually comes last, as its collectives take 40µs and those of the others 910µs")
	_, _, err = inspector.Read(filepath.Join(dir, "x"))
	require.Error(t, err)
}

func FuzzInspector(f *testing.F) {
	f.Add([]byte(line("0xab", 0, 2, 1, 40) + line("0xab", 1, 2, 1, 40)))
	f.Add([]byte(line("0xab", 0, hang.MaxRanks, 1, -40)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, _, err := inspector.Read(file(t, "f", b)); err == nil {
			hang.Judge(j)
		}
	})
}
