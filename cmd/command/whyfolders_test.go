package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// why runs the command, and returns its exit status, output and errors.
func why(t *testing.T, words ...string) (status int, out, errs string) {
	var o, e strings.Builder
	status = ringoMain(t.Context(), append([]string{"why"}, words...), &o, &e)
	return status, o.String(), e.String()
}

// Folders in folders are read, down to a depth, and through no links.
func TestWhyFolders(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "run", "attempt_0", "node0")
	require.NoError(t, os.MkdirAll(inner, 0o700))
	writeDumps(t, inner)
	status, out, errs := why(t, dir)
	require.Equal(t, 3, status, errs)
	require.Equal(t, dumpsAnswer, out)

	require.NoError(t, os.Symlink("..", filepath.Join(inner, "loop")))
	deep := filepath.Join(dir, strings.Repeat("d/", mostDeep+3))
	require.NoError(t, os.MkdirAll(deep, 0o700))
	status, out, errs = why(t, dir)
	require.Equal(t, 3, status, errs)
	require.Equal(t, dumpsAnswer, out)
	require.Contains(t, errs, "more than 16 folders in each other: what is below is not read")

	u := &unpacker{seen: mostFiles - 1}
	files, wrong := u.tree(inner, 1)
	require.Len(t, files, 1)
	require.Len(t, wrong, 1)
	require.ErrorContains(t, wrong[0], "more than 131072 files: the others are not read")
}

// What cannot be read is told by its kind, and the kinds that can are named.
func TestWhyNothingHere(t *testing.T) {
	dir := t.TempDir()
	status, _, errs := why(t, dir)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "nothing here that is read: dumps of PyTorch's flight recorder, answers of NCCL's RAS")
	require.Contains(t, errs, "stacks, and histories of this library; there is no file")
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	status, _, errs = why(t, dir)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "files, all empty: 3; was the disk full?")
	other := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(other, []byte("text"), 0o600))
	_, _, errs = why(t, dir)
	require.Contains(t, errs, "files of other kinds: 4, of them empty: 3")
	status, _, errs = why(t, other)
	require.Equal(t, 1, status)
	require.Contains(t, errs, other+": none of what is read: dumps of PyTorch's flight recorder")
}

// A history is known by what is in it: by standard input, packed and under any name.
func TestWhyOneHistory(t *testing.T) {
	r := history.Record{Comm: "abcd1234", Size: 2, Cause: "rank 1 left", Culprits: []int{1}}
	b, err := json.Marshal(r)
	require.NoError(t, err)
	dir := t.TempDir()
	put := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, b, 0o600))
		return name
	}
	tape := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tape, "rank0.txt"), b, 0o600))
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for _, word := range []string{put("a.json", b), put("b.gz", zipped(t, b)), put("c.tar", taped(t, tape)), "-"} {
		in, err := os.Open(filepath.Join(dir, "a.json"))
		require.NoError(t, err)
		os.Stdin = in
		status, out, errs := why(t, word)
		require.Equal(t, 3, status, "%s: %s", word, errs)
		require.Contains(t, out, "rank 1 left", word)
		in.Close()
	}
}

// Of two attempts the newest counts, by what is in the dumps. A rank whose dump is of the earlier one alone is not
// accused, nor one that only a log of the earlier attempt accuses.
func TestWhyAttempts(t *testing.T) {
	for _, newer := range []string{"attempt_1", "attempt_0"} { // names prove nothing
		dir := t.TempDir()
		older := map[string]string{"attempt_1": "attempt_0", "attempt_0": "attempt_1"}[newer]
		for _, name := range []string{older, newer} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			writeDumps(t, filepath.Join(dir, name))
		}
		for rank := range 3 {
			name := filepath.Join(dir, older, fmt.Sprintf("nccl_trace_rank_%d", rank))
			b, err := os.ReadFile(name)
			require.NoError(t, err)
			// ten minutes before; the time of the file is that of the copy
			require.NoError(t, os.WriteFile(name, []byte(strings.ReplaceAll(string(b), "17000000000", "16999994000")), 0o600))
		}
		writeLogs(t, filepath.Join(dir, older), 3, 0)
		status, out, errs := why(t, dir)
		require.Equal(t, 3, status, errs)
		require.Contains(t, out, "rank 2 never called all_reduce #3")
		require.Contains(t, out, "to blame: rank 2\n")
		require.Contains(t, out, "note: of each rank the newest dump counts: ")
		require.Contains(t, out, fmt.Sprintf("note: files of %s, left out as %s has the newest calls: 2", older, newer))

		require.NoError(t, os.Remove(filepath.Join(dir, newer, "nccl_trace_rank_2")))
		status, out, _ = why(t, dir)
		require.Equal(t, 5, status, out)
		require.Contains(t, out, "the files of rank 2 are of another time, or run")
		require.Contains(t, out, "note: the file of rank 2 is of another run, or an earlier attempt: its calls are 10m0s before")
	}
}

// Times of files survive packing, and are what an answer stands on.
func TestWhyPackedTimes(t *testing.T) {
	dir, young := t.TempDir(), time.Unix(1_700_000_000, 20_000_000)
	writeDumps(t, dir)
	for rank := range 3 {
		require.NoError(t, os.Chtimes(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)), young, young))
	}
	tape := filepath.Join(t.TempDir(), "a.tgz")
	require.NoError(t, os.WriteFile(tape, zipped(t, taped(t, dir)), 0o600))
	for _, word := range []string{dir, tape} {
		status, out, _ := why(t, word)
		require.Equal(t, 0, status, out)
		status, out, _ = why(t, "-for", "0s", word)
		require.Equal(t, 3, status, out)
		status, out, _ = why(t, "-for", "1h", word)
		require.Equal(t, 0, status, out)
	}
}

// Histories that a signal has asked of a job that is well accuse nobody: they carry how long ranks have waited.
func TestWhyYoungHistories(t *testing.T) {
	for waited, want := range map[time.Duration]int{20 * time.Millisecond: 0, 900 * time.Millisecond: 0,
		2 * time.Second: 3} {
		dir := t.TempDir()
		for rank := range 3 {
			r := history.Record{Comm: "abcd1234", Rank: rank, Size: 3, Host: "h", Pid: 100 + rank,
				Time: time.Unix(1_700_000_000, 0), Waited: waited,
				State: judge.State{Rank: rank, Heard: true, Last: 51, At: 51, Peer: 2}}
			if rank == 2 {
				r.State, r.Waited = judge.State{Rank: 2, Heard: true, Last: 50, Peer: -1}, 0
			}
			_, err := r.Write(dir)
			require.NoError(t, err)
		}
		status, out, errs := why(t, dir)
		require.Equal(t, want, status, "%v: %s %s", waited, out, errs)
		says := map[int]string{0: "no rank waits for long: ranks 0 and 1 wait in ", 3: "to blame: rank 2"}[want]
		require.Contains(t, out, says)
	}
}
