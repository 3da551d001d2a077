package trace_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

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

func TestWhy(t *testing.T) {
	const a, b = "AllReduce(count 4, float32, sum)", "Barrier()"
	waits := func(rank int) history.Record {
		r := record(rank, judge.State{Heard: true, Last: 2, At: 2, Peer: -1}, a, b)
		r.Waited = 4910 * time.Millisecond
		return r
	}
	failed := func(rank int) history.Record {
		r := waits(rank)
		r.Cause, r.Culprits = "rank 2 died: killed", []int{2}
		return r
	}
	cut := func(rank int, culprits []int, candidates ...int) history.Record {
		r := waits(rank)
		r.Cause, r.Culprits, r.Candidates = "cut off", culprits, candidates
		return r
	}
	for name, tt := range map[string]struct {
		records  []history.Record
		sentence string
		culprits []int
	}{
		"never entered": {[]history.Record{waits(0), waits(1), record(2, judge.State{Heard: true, Last: 1, Peer: -1},
			a), waits(3)},
			"rank 2 never entered Barrier() #2; ranks 0, 1 and 3 wait in Barrier() #2 since 4.9s", []int{2}},
		"no file": {[]history.Record{waits(3), waits(0), waits(1)},
			"rank 2 left no file: dead, or stopped? ranks 0, 1 and 3 wait in Barrier() #2 since 4.9s", []int{2}},
		"other calls": {[]history.Record{waits(0), waits(1), record(2, judge.State{Heard: true, Last: 2, At: 2,
			Peer: -1}, a, a), waits(3)},
			"as collective #2 ranks 0, 1 and 3 called Barrier(), and rank 2 AllReduce(count 4, float32, sum)", []int{2}},
		"the group has said": {[]history.Record{failed(0), failed(1), failed(3)}, "rank 2 died: killed", []int{2}},
		"sets differ, and one rank is in most": {[]history.Record{cut(0, []int{2}), cut(1, []int{0, 1}), cut(2, []int{0, 2}),
			cut(3, []int{0, 3})}, "cut off; what the ranks say together is the fault of rank 0", []int{0}},
		"who cannot know has no vote": {[]history.Record{cut(0, nil, 0, 1, 2, 3), cut(1, []int{0}), waits(2), waits(3)},
			"cut off", []int{0}},
		"nobody can know": {[]history.Record{cut(0, nil, 0, 1), cut(1, nil, 0, 1), waits(2), waits(3)},
			"cut off", nil},
		"one names another than the other": {[]history.Record{cut(0, []int{1}), cut(1, []int{0}), waits(2), waits(3)},
			"cut off; who is to blame cannot be known: ranks 0 and 1, or the network between them", nil},
		"nobody waits": {[]history.Record{record(0, judge.State{Heard: true, Peer: -1}), record(1,
			judge.State{Heard: true, Peer: -1}),
			record(2, judge.State{Heard: true, Peer: -1}), record(3, judge.State{Heard: true, Peer: -1})},
			"no rank waits", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			for _, r := range tt.records {
				_, err := r.Write(dir)
				require.NoError(t, err)
			}
			records, skipped, err := history.Read(dir)
			require.NoError(t, err)
			require.Empty(t, skipped)
			found := history.Why(records)
			require.Len(t, found, 1)
			require.Equal(t, tt.sentence, found[0].Sentence)
			require.Equal(t, tt.culprits, found[0].Culprits)
		})
	}
}

// TestHistoryFollows: of two communicators of the same processes the one that failed first names the culprit, and the
// other, in which a process is missed that ended for that, nobody.
func TestHistoryFollows(t *testing.T) {
	at := time.Unix(1000, 0)
	late := func(comm string, rank, pid int, when time.Duration, cause string, culprit int) history.Record {
		return history.Record{Comm: comm, Rank: rank, Size: 3, Host: "a", Pid: pid, Time: at.Add(when), Cause: cause,
			Culprits: []int{culprit}, State: judge.State{Heard: true, Peer: -1}}
	}
	const died, never = "rank 0 died: its process ended without goodbye", "timed out: rank 1 never entered it"
	found := history.Why([]history.Record{late("1", 1, 11, 20*time.Millisecond, died, 0),
		late("2", 0, 10, 0, never, 1), late("2", 2, 12, 0, never, 1),
		{Comm: "2", Rank: 1, Size: 3, Host: "a", Pid: 11, Time: at, State: judge.State{Heard: true, Peer: -1}}})
	require.Len(t, found, 2)
	require.Equal(t, []int{1}, found[0].Culprits)
	require.Empty(t, found[1].Culprits)
	require.Equal(t, died+"; communicator 2 of the same processes had failed before", found[1].Sentence)

	found = history.Why([]history.Record{late("1", 1, 11, time.Second, died, 0), late("2", 0, 10, 0, "timed out", 1)})
	require.Equal(t, [][]int{{1}, {0}}, [][]int{found[0].Culprits, found[1].Culprits}, "no process has ranks of both")
}

func TestHistoryPrint(t *testing.T) {
	f := history.Why([]history.Record{record(0, judge.State{Heard: true, Last: 1, At: 1, Peer: 1, Round: 2,
		Step: 3}, "Barrier()"),
		record(1, judge.State{Heard: true, Peer: 3, Sending: true})})[0]
	var b strings.Builder
	require.NoError(t, f.Print(&b))
	require.Equal(t, `communicator c0ffee00 of 4 ranks: ranks 2 and 3 left no file: dead, or stopped? rank 0 waits in Barrier() #1
to blame: ranks 2 and 3

rank  host   pid  is                            for  calls  last call
0     hostA  100  in #1, step 2.3, from rank 1       1      #1 Barrier()
1     hostA  101  in a message to rank 3             0
2-3   ?      ?    left no file
`, regexp.MustCompile(" +\n").ReplaceAllString(b.String(), "\n"))
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

// Whatever files say, there is a verdict.
func FuzzWhy(f *testing.F) {
	f.Add([]byte(`{"Comm":"a","Rank":1,"Size":3,"State":{"Heard":true,"At":2,"Peer":2},"Calls":[{"Number":1,"What":"x"}]}`), []byte(`{"Comm":"a","Rank":0,"Size":2,"Cause":"x","Culprits":[1]}`))
	file := filepath.Join(f.TempDir(), "record")
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var records []history.Record
		for _, b := range [][]byte{a, b} {
			require.NoError(t, os.WriteFile(file, b, 0o600))
			read, _, err := history.Read(file)
			if err != nil || read[0].Size > 1000 {
				return
			}
			records = append(records, read...)
		}
		for _, f := range history.Why(records) {
			require.NoError(t, f.Print(io.Discard))
		}
	})
}

// Ranks without a file have a row, wherever they are.
func TestHistoryPrintWithoutSome(t *testing.T) {
	for missing, row := range map[int]string{0: "\n0 +\\? +\\? +left no file", 2: "\n2 +\\? +\\? +left no file",
		3: "\n3 +\\? +\\? +left no file"} {
		var records []history.Record
		for r := range 4 {
			if r != missing {
				records = append(records, record(r, judge.State{Heard: true, Last: 1, At: 1, Peer: missing}, "Barrier()"))
			}
		}
		var b strings.Builder
		require.NoError(t, history.Why(records)[0].Print(&b))
		require.Regexp(t, row, b.String())
		require.Equal(t, 1, strings.Count(b.String(), "  left no file"), b.String())
	}
}
