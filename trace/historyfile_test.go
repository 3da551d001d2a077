package trace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// record is the Record of a rank of four, which is in state s after some calls.
func record(rank int, s judge.State, calls ...string) history.Record {
	s.Rank = rank
	r := history.Record{Comm: "c0ffee00", Rank: rank, Size: 4, Host: "hostA", Pid: 100 + rank, State: s,
		Total: uint64(len(calls))}
	for i, c := range calls {
		r.Calls = append(r.Calls, history.Call{Number: uint64(i + 1), What: c})
	}
	return r
}

func TestHistoryReadRefuses(t *testing.T) {
	dir := t.TempDir()
	_, _, err := history.Read(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = history.Read(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"", "{}", `{"Size":2,"Rank":2}`, `{"Size":2,"Culprits":[-1]}`} {
		file := filepath.Join(dir, "ringo-x-rank0.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, _, err := history.Read(dir)
		require.ErrorContains(t, err, file)
	}
}

// A file that holds no record hides none of the others, and texts of records cannot control a terminal.
func TestHistoryReadSkips(t *testing.T) {
	dir := t.TempDir()
	r := record(1, judge.State{Heard: true, Peer: -1}, "Barrier()\n\tforged")
	r.Host, r.Cause = "\x1b]0;pwn\a", "x\ny"
	_, err := r.Write(dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ringo-x-rank0.json"), []byte("{"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ringo-x-rank2.json"), 0o700))
	got, skipped, err := history.Read(dir)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, []string{`\x1b]0;pwn\a`, `x\ny`, `Barrier()\n\tforged`},
		[]string{got[0].Host, got[0].Cause, got[0].Calls[0].What})
	require.Len(t, skipped, 2)
	require.ErrorContains(t, skipped[0], "ringo-x-rank0.json: unexpected end of JSON input")
	require.ErrorContains(t, skipped[1], "ringo-x-rank2.json: not a regular file")
}

// A folder is made for a record, but not the folders around it, which a mistyped path would name.
func TestHistoryWriteMakesOneFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	r := record(1, judge.State{Heard: true, Peer: -1}, "Barrier()")
	_, err := r.Write(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, filepath.Dir(dir))
	require.NoError(t, os.Mkdir(filepath.Dir(dir), 0o700))
	file, err := r.Write(dir)
	require.NoError(t, err)
	require.FileExists(t, file)
}

// A record that is written at once for two reasons, a failure and a signal, is whole each time.
func TestHistoryWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	r := record(1, judge.State{Heard: true, Peer: -1}, "Barrier()")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 100 {
				if _, err := r.Write(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	got, _, err := history.Read(dir)
	require.NoError(t, err)
	require.Equal(t, []history.Record{r}, got)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}
