package why

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/histories"
	"github.com/ringo-go/ringo/trace/history"
	blame "github.com/ringo-go/ringo/trace/judge"
)

// record is the history of a rank of four, which is in state s after some calls.
func record(rank int, s blame.State, calls ...string) history.Record {
	r := history.Record{Comm: "c0ffee00", Rank: rank, Size: 4, Host: "hostA", Pid: 100 + rank, State: s,
		Time: time.Unix(1000, 0), Total: uint64(len(calls))}
	for i, c := range calls {
		r.Calls = append(r.Calls, history.Call{Number: uint64(i + 1), What: c})
	}
	return r
}

func TestHistories(t *testing.T) {
	const a, b = "AllReduce(count 4, float32, sum)", "Barrier()"
	waits := func(rank int) history.Record {
		r := record(rank, blame.State{Heard: true, Last: 2, At: 2, Peer: -1}, a, b)
		r.Waited = 4910 * time.Millisecond
		return r
	}
	failed := func(rank int) history.Record {
		r := waits(rank)
		r.Cause, r.Culprits, r.Name = "rank 2 died: killed", []int{2}, "grads"
		return r
	}
	cut := func(rank int, culprits []int, candidates ...int) history.Record {
		r := waits(rank)
		r.Cause, r.Culprits, r.Candidates = "cut off", culprits, candidates
		return r
	}
	way := func(rank int, between ...int) history.Record {
		r := cut(rank, between)
		r.Path = true
		return r
	}
	idle := func(rank int) history.Record { return record(rank, blame.State{Heard: true, Last: 1, Peer: -1}, a) }
	moves := func(rank, peer int, still time.Duration) history.Record {
		r := waits(rank)
		r.State.Peer, r.Still = peer, still
		return r
	}
	stateless := waits(0)
	stateless.State = blame.State{}
	earlier := idle(2)
	earlier.Time = earlier.Time.Add(-time.Minute)
	after := func(rank int) history.Record {
		r := idle(rank)
		r.Failed = []string{"0ff"}
		return r
	}
	const failure = "communicator c0ffee00 of 4 ranks: "
	for name, tt := range map[string]struct {
		records  []history.Record
		reason   hang.Reason
		sentence string
		culprits []int
	}{
		"never entered": {[]history.Record{waits(0), waits(1), idle(2), waits(3)}, hang.Absent,
			"rank 2 never entered Barrier() #2 of communicator c0ffee00, its last call was " + a + " #1 of communicator " +
				"c0ffee00; ranks 0, 1 and 3 wait in Barrier() #2 of communicator c0ffee00 since 4.9s", []int{2}},
		"no file": {[]history.Record{waits(3), waits(0), waits(1)}, hang.Unknown,
			"I cannot say, because the file of rank 2 is missing; ranks 0, 1 and 3 wait in Barrier() #2 of communicator " +
				"c0ffee00 since 4.9s", nil},
		"no file, and another is in no call": {[]history.Record{waits(3), waits(0), idle(2)}, hang.Absent,
			"rank 2 never entered Barrier() #2 of communicator c0ffee00, its last call was " + a + " #1 of communicator " +
				"c0ffee00; ranks 0 and 3 wait in Barrier() #2 of communicator c0ffee00 since 4.9s", []int{2}},
		"no state": {[]history.Record{stateless, waits(1), waits(2), waits(3)}, hang.Unknown,
			"I cannot say, because the file of rank 0 (host hostA) cannot be read; ranks 1, 2 and 3 wait in Barrier() #2 of " +
				"communicator c0ffee00 since 4.9s", nil},
		"of another time": {[]history.Record{waits(0), waits(1), earlier, waits(3)}, hang.Unknown,
			"I cannot say, because the file of rank 2 (host hostA) is of another time; ranks 0, 1 and 3 wait in Barrier() #2 " +
				"of communicator c0ffee00 since 4.9s", nil},
		"other calls": {[]history.Record{waits(0), waits(1), record(2, blame.State{Heard: true, Last: 2, At: 2,
			Peer: -1}, a, a), waits(3)}, hang.Different,
			"as collective #2 of communicator c0ffee00 rank 2 called AllReduce, and ranks 0, 1 and 3 Barrier", []int{2}},
		"nothing moves": {[]history.Record{moves(0, 3, 4*time.Second), moves(1, 0, 4*time.Second), moves(2, 1, 4*time.Second),
			moves(3, 2, 4*time.Second)}, hang.Link, "nothing moves between ranks 0 and 3 in Barrier() #2 of communicator " +
			"c0ffee00; ranks 0, 1, 2 and 3 wait in Barrier() #2 of communicator c0ffee00 since 4.9s", []int{0, 3}},
		"data still moved": {[]history.Record{moves(0, 3, time.Second), moves(1, 0, 4*time.Second), moves(2, 1, time.Second),
			moves(3, 2, 4*time.Second)}, hang.Short, "the time-out is too short, or the network has failed just now: data " +
			"still moved between ranks 0 and 3 1s before; ranks 0, 1, 2 and 3 wait in Barrier() #2 of communicator c0ffee00 " +
			"since 4.9s", nil},
		"the group has said": {[]history.Record{failed(0), failed(1), failed(3)}, hang.Failed,
			"communicator c0ffee00 (grads) of 4 ranks: rank 2 died: killed", []int{2}},
		"sets differ, and one rank is in most": {[]history.Record{cut(0, []int{2}), cut(1, []int{0, 1}), cut(2, []int{0, 2}),
			cut(3, []int{0, 3})}, hang.Failed, failure + "cut off; what the ranks say together is the fault of rank 0", []int{0}},
		"who cannot know has no vote": {[]history.Record{cut(0, nil, 0, 1, 2, 3), cut(1, []int{0}), waits(2), waits(3)},
			hang.Failed, failure + "cut off", []int{0}},
		"nobody can know": {[]history.Record{cut(0, nil, 0, 1), cut(1, nil, 0, 1), waits(2), waits(3)}, hang.Unknown,
			failure + "cut off", nil},
		"a way between two": {[]history.Record{way(0, 1, 3), way(1, 1, 3), way(2, 1, 2), waits(3)}, hang.Failed,
			failure + "cut off", []int{1, 3}},
		"one names another than the other": {[]history.Record{cut(0, []int{1}), cut(1, []int{0}), waits(2), waits(3)},
			hang.Unknown, failure + "cut off; who is to blame cannot be known: ranks 0 and 1, or the network between them", nil},
		"nobody waits": {[]history.Record{idle(0), idle(1), idle(2), idle(3)}, hang.Nothing,
			"no rank waits: all calls that the ranks have noted have ended", nil},
		"nobody waits, and another communicator had failed": {[]history.Record{idle(0), after(1), after(2), idle(3)},
			hang.Unknown, "I cannot say: communicator 0ff had failed, by the files of others, and no file of it says why", nil},
		"who has died had another communicator fail": {[]history.Record{after(0), after(1), failed(2), after(3)},
			hang.Unknown, "I cannot say: communicator 0ff had failed, by the files of others, and no file of it says why", nil},
		"who has died wrote a file just before": {[]history.Record{failed(0), failed(1), idle(2), failed(3)}, hang.Unknown,
			"I cannot say, for a file of rank 2 was written just before, as when another communicator has failed: " +
				"communicator c0ffee00 (grads) of 4 ranks: rank 2 died: killed", nil},
		"nobody waits of those with a file": {[]history.Record{idle(0), idle(1), idle(2)}, hang.Unknown,
			"I cannot say, because the file of rank 3 is missing; no other rank waits", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			for _, r := range tt.records {
				_, err := r.Write(dir)
				require.NoError(t, err)
			}
			jobs, skipped, err := histories.Read(dir)
			require.NoError(t, err)
			require.Empty(t, skipped)
			require.Len(t, jobs, 1)
			a := hang.Judge(jobs[0])
			require.Equal(t, tt.sentence, a.Sentence)
			require.Equal(t, tt.reason, a.Reason, a.Sentence)
			require.Equal(t, tt.culprits, a.Culprits)
		})
	}
}

// Histories of a group of four processes on two hosts say which files are missing, and of which host. One that is cut
// off anywhere, as when it is being copied, is not one that is missing.
func TestHistoriesSayWhatToFetch(t *testing.T) {
	members := history.Members{{Host: "a", Pid: 100}, {Host: "a", Pid: 101}, {Host: "b", Pid: 102}, {Host: "b", Pid: 103}}
	write := func(dir string, rank int) string {
		r := record(rank, blame.State{Heard: true, Last: 1, At: 1, Peer: -1}, "Barrier()")
		r.Host, r.Pid, r.Members, r.Waited = members[rank].Host, members[rank].Pid, members, time.Minute
		file, err := r.Write(dir)
		require.NoError(t, err)
		return file
	}
	dir := t.TempDir()
	write(dir, 0)
	write(dir, 1)
	ask := func() hang.Answer {
		jobs, _, err := histories.Read(dir)
		require.NoError(t, err)
		return hang.Judge(jobs[0])
	}
	a := ask()
	require.Empty(t, a.Culprits)
	require.Contains(t, a.Sentence, "I cannot say, because the files of ranks 2 and 3 (host b) are missing; ranks 0 and 1 wait")
	require.Equal(t, "fetch ringo-c0ffee00-rank2.json of host b, ringo-c0ffee00-rank3.json of host b; if there is none, look "+
		"whether process 102 lives there", a.Remedy)
	file := write(dir, 2)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for n := 0; n < len(whole)-2; n += 40 {
		require.NoError(t, os.WriteFile(file, whole[:n], 0o600))
		a = ask()
		require.Empty(t, a.Culprits)
		require.Contains(t, a.Sentence, "because the file of rank 2 (host b) cannot be read, and the file of rank 3 (host b) is missing")
		var text strings.Builder
		require.NoError(t, a.Print(&text))
		require.Regexp(t, "\n2 +left a file that cannot be read\n3 +left no file\n", text.String())
	}
}

// Two communicators of the same processes are one job: the failure that was first counts, by the clock of who died of
// it. Of processes that have nothing in common there are two jobs, and two answers.
func TestHistoriesOfSeveralCommunicators(t *testing.T) {
	at := time.Unix(1000, 0)
	late := func(comm string, rank, pid int, when time.Duration, cause string, culprit int) history.Record {
		return history.Record{Comm: comm, Rank: rank, Size: 3, Host: "a", Pid: pid, Time: at.Add(when), Cause: cause,
			Culprits: []int{culprit}, State: blame.State{Heard: true, Peer: -1}}
	}
	const died, never = "rank 0 died: its process ended without goodbye", "timed out in a call: rank 1 never entered it"
	jobs := histories.Jobs([]history.Record{late("1", 1, 11, 20*time.Millisecond, died, 0),
		late("2", 0, 10, 0, never, 1), late("2", 2, 12, 0, never, 1),
		{Comm: "2", Rank: 1, Size: 3, Host: "a", Pid: 11, Time: at, State: blame.State{Heard: true, Peer: -1}}}, nil)
	require.Len(t, jobs, 1)
	a := hang.Judge(jobs[0])
	require.Equal(t, []int{1}, a.Culprits, a.Sentence)
	require.Contains(t, a.Notes, "20ms later: communicator 1 of 3 ranks: "+died+"; its rank 0 is rank 3 of the job")

	jobs = histories.Jobs([]history.Record{late("1", 1, 11, time.Second, died, 0),
		late("2", 0, 10, 0, "timed out", 1)}, nil)
	require.Len(t, jobs, 2, "no process has ranks of both")
	one, other := hang.Judge(jobs[0]), hang.Judge(jobs[1])
	require.Len(t, hang.Merge([]hang.Answer{one, other}), 2)
}

// Ranks of a communicator that Split has made have other numbers than in the job: who is to blame has the job's.
func TestHistoriesOfRenumberedRanks(t *testing.T) {
	var records []history.Record
	for rank, of := range []int{3, 1} { // rank 0 of the pair is rank 3 of the job
		r := record(rank, blame.State{Heard: true, Last: 7, At: 7, Peer: -1})
		r.Comm, r.Name, r.Size, r.Pid, r.Origin, r.OriginSize = "0pair", "pairs", 2, 100+of, "world", 4
		r.Members = history.Members{{Host: "hostA", Pid: 103, Number: 3}, {Host: "hostA", Pid: 101, Number: 1}}
		r.Cause, r.Culprits = "timed out in a call: rank 0 never entered it", []int{0}
		records = append(records, r)
	}
	jobs := histories.Jobs(records, nil)
	require.Len(t, jobs, 1)
	a := hang.Judge(jobs[0])
	require.Equal(t, 4, a.Ranks)
	require.Equal(t, []int{3}, a.Culprits)
	require.Equal(t, "communicator 0pair (pairs) of 2 ranks: timed out in a call: rank 0 never entered it; its rank 0 is rank 3 "+
		"of the job", a.Sentence)

	for i := range records { // without numbers, by the processes
		records[i].Origin, records[i].Members = "", nil
	}
	for rank := range 4 {
		records = append(records, record(rank, blame.State{Heard: true, Last: 2, Peer: -1}))
	}
	a = hang.Judge(histories.Jobs(records, nil)[0])
	require.Equal(t, []int{3}, a.Culprits)
	require.Equal(t, 4, a.Ranks)
}

// What the kernel and a launcher print of a process is about the rank whose number the others' histories have.
func TestHistoriesJoinLogs(t *testing.T) {
	var records []history.Record
	for rank := range 3 {
		r := record(rank, blame.State{Heard: true, Last: 1, At: 1, Peer: -1}, "Barrier()")
		for _, pid := range []int{100, 101, 102, 16178} {
			r.Members = append(r.Members, history.Member{Host: "a", Pid: pid})
		}
		r.Host, r.Cause, r.Culprits = "a", "rank 3 died: killed by signal 9", []int{3}
		records = append(records, r)
	}
	j := histories.Jobs(records, nil)[0]
	heard := j.Hear([]hang.Hint{{Rank: -1, Pid: 16178, Death: "was killed because memory was short, as the kernel says"}})
	require.Equal(t, []bool{true}, heard)
	a := hang.Judge(j)
	require.Equal(t, hang.Died, a.Reason)
	require.Equal(t, []int{3}, a.Culprits)
	require.Equal(t, "rank 3 (process 16178 on host a) was killed because memory was short, as the kernel says; communicator "+
		"c0ffee00 of 4 ranks: rank 3 died: killed by signal 9", a.Sentence)
}

// Whatever files say, there is a verdict.
func FuzzHistories(f *testing.F) {
	f.Add([]byte(`{"Comm":"a","Rank":1,"Size":3,"State":{"Heard":true,"At":2,"Peer":2},"Calls":[{"Number":1,"What":"x"}]}`),
		[]byte(`{"Comm":"a","Rank":0,"Size":2,"Cause":"x","Culprits":[1]}`))
	f.Add([]byte(`{"Comm":"a","Size":2,"Origin":"b","OriginSize":9,"Members":{"h":"0:1:8 1:1:8"},"State":{"Heard":true}}`),
		[]byte(`{"Comm":"b","Rank":1,"Size":2,"Pid":1,"Host":"h","After":"a","Beside":["a","c"],"Cause":"x","Silent":[0]}`))
	file := filepath.Join(f.TempDir(), "record")
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var records []history.Record
		for _, b := range [][]byte{a, b} {
			require.NoError(t, os.WriteFile(file, b, 0o600))
			read, _, err := history.Read(file)
			if err != nil || read[0].Size > 1000 || read[0].OriginSize > 1000 {
				return
			}
			records = append(records, read...)
		}
		for _, j := range histories.Jobs(records, nil) {
			a := hang.Judge(j)
			require.NoError(t, a.Print(io.Discard))
		}
	})
}
