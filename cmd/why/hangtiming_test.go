package why

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// paced is a job of one collective for each late, which has by rank how late the rank makes it. The last collective has
// not ended. A rank with a negative lateness does not make it. skew is by rank how wrong its clock is.
func paced(limit time.Duration, skew []time.Duration, late ...[]time.Duration) *hang.Job {
	j := &hang.Job{Groups: []hang.Group{{Name: "0", Desc: "default_pg"}}}
	start := time.Unix(1_700_000_000, 0)
	for r := range skew {
		j.Groups[0].Ranks = append(j.Groups[0].Ranks, r)
		k := j.Rank(r)
		k.Source = "f"
		at := start
		for n := range late {
			at = at.Add(slices.Max(late[n]) + time.Second)
			if late[n][r] < 0 {
				continue
			}
			c := hang.Call{Number: int64(n + 1), Kind: "all_reduce", Peer: -1, State: hang.Ended,
				At: at.Add(late[n][r] - slices.Max(late[n]) + skew[r]), Limit: limit}
			if n == len(late)-1 {
				c.State = hang.Begun
			}
			k.Calls = append(k.Calls, c)
		}
	}
	return j
}

// A rank that came after the others' time-out was slow, whatever its clock; a rank with a wrong clock that came in time
// was not.
func TestSlow(t *testing.T) {
	const s = time.Second
	even := []time.Duration{0, 0, 0}
	for _, skew := range []time.Duration{0, 45 * s, -45 * s, time.Hour - time.Minute} {
		clocks := []time.Duration{0, 0, skew}
		a := hang.Judge(paced(30*s, clocks, even, even, even, even, []time.Duration{0, 0, 40 * s}))
		require.Equal(t, hang.Slow, a.Reason, "%v: %s", skew, a.Sentence)
		require.Equal(t, []int{2}, a.Culprits)
		require.Contains(t, a.Sentence,
			"rank 2 was slow, not stuck: it called all_reduce #5 of the default group 40s after the first, and the time-out "+
				"is 30s")
		a = hang.Judge(paced(30*s, clocks, even, even, even, even, even))
		require.Equal(t, hang.Stuck, a.Reason, "%v: %s", skew, a.Sentence)
	}
	// Without earlier calls in common the clocks may differ by a minute.
	require.Equal(t, hang.Stuck, hang.Judge(paced(30*s, make([]time.Duration, 3), []time.Duration{0, 0, 80 * s})).Reason)
	require.Equal(t, hang.Slow, hang.Judge(paced(30*s, make([]time.Duration, 3), []time.Duration{0, 0, 100 * s})).Reason)
}

// A job that has waited nearly as long before has too short a time-out, and nobody is to blame. A single long wait may
// have been its start.
func TestShort(t *testing.T) {
	const s = time.Second
	even, clocks := []time.Duration{0, 0, 0}, make([]time.Duration, 3)
	for _, last := range [][]time.Duration{{0, -1, 0}, {0, 50 * s, 0}} {
		a := hang.Judge(paced(30*s, clocks, even, even, even, even, []time.Duration{20 * s, 0, 0},
			[]time.Duration{0, 25 * s, 0}, last))
		require.Equal(t, hang.Short, a.Reason, a.Sentence)
		require.Empty(t, a.Culprits)
		require.Contains(t, a.Sentence,
			"the time-out of 30s is too short for this job: its ranks have waited 20s for each other before; this time rank 1 ")
		a = hang.Judge(paced(30*s, clocks, even, even, even, even, []time.Duration{29 * s, 0, 0}, even, last))
		require.Equal(t, []int{1}, a.Culprits, a.Sentence)
	}
}

// A file of another run, and one that was written before the others waited, accuse nobody, and are not taken for
// missing ones.
func TestOutdated(t *testing.T) {
	even, clocks := []time.Duration{0, 0, 0, 0}, make([]time.Duration, 4)
	job := func() *hang.Job { return paced(10*time.Minute, clocks, even, even, even, []time.Duration{0, 0, -1, 0}) }
	j := job()
	for i := range j.Ranks[1].Calls {
		j.Ranks[1].Calls[i].At = j.Ranks[1].Calls[i].At.Add(-3 * time.Hour)
	}
	a := hang.Judge(j)
	require.Equal(t, []int{2}, a.Culprits, a.Sentence)
	require.Regexp(t, "the file of rank 1 is of another run, or an earlier attempt: its calls are 3h0m0s before those of others", a.Notes[0])
	require.Empty(t, a.Missing)

	j = job()
	j.Ranks[2].Taken = j.Ranks[0].Calls[3].At.Add(-time.Minute)
	a = hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Contains(t, a.Sentence,
		"I cannot say, because the files of rank 2 are of another time, or run, than those of the others; ranks 0, 1 and 3 "+
			"wait in all_reduce #4")
	j = job()
	j.Ranks[2].Taken = j.Ranks[0].Calls[3].At.Add(10 * time.Minute)
	require.Equal(t, []int{2}, hang.Judge(j).Culprits)

	j = job() // a launcher has begun anew: rank 2 is in the second call of its next run
	j.Ranks[2].Calls = j.Ranks[2].Calls[1:2]
	j.Ranks[2].Calls[0].At = j.Ranks[0].Calls[3].At.Add(12 * time.Minute)
	a = hang.Judge(j)
	require.Empty(t, a.Culprits, a.Sentence)
	require.Contains(t, a.Sentence, "of another time, or run")
}

// Laggards tells which rank came last most often, and how late.
func TestLaggards(t *testing.T) {
	even, late := []time.Duration{0, 0, 0}, []time.Duration{0, 2 * time.Second, 0}
	all := hang.Laggards(paced(time.Minute, make([]time.Duration, 3), even, even, even, even, even, even, even, late,
		late, late))
	i := slices.IndexFunc(all, func(l hang.Lateness) bool { return l.Rank == 1 })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, hang.Lateness{Rank: 1, Late: 2 * time.Second, Calls: 3}, all[i])
}

// Other files tell which ranks do not answer, where a process stands and which exception ended it. Guessed numbers of
// ranks are not matched with theirs.
func TestHints(t *testing.T) {
	even, clocks := []time.Duration{0, 0, 0, 0}, make([]time.Duration, 4)
	job := func() *hang.Job { return paced(10*time.Minute, clocks, even, even, []time.Duration{0, 0, -1, 0}) }
	j := job()
	j.Ranks[2].Pid, j.Ranks[3].Pid, j.Ranks[0].Pid = 7, 8, 8
	require.Equal(t, []bool{true, false, true, false},
		j.Hear([]hang.Hint{{Rank: -1, Pid: 7, Stack: "a.py:1 in f"}, {Rank: -1, Pid: 8, Death: "d"},
			{Rank: 1, Raised: "ended with E"}, {Rank: 9, Death: "d"}}))
	a := hang.Judge(j)
	require.Equal(t, []int{2}, a.Culprits, "the exception of rank 1, which waits, did not end it: %s", a.Sentence)
	require.Contains(t, a.Sentence, "it stands at a.py:1 in f")

	j = job()
	j.Hear([]hang.Hint{{Rank: 2, Raised: "ended with E"}})
	require.Equal(t, hang.Died, hang.Judge(j).Reason)

	other := job()
	other.Ranks[2].Mute, other.Ranks[2].Name = true, "process 7"
	j = job()
	j.Learn(other)
	a = hang.Judge(j)
	require.Equal(t, hang.Silent, a.Reason)
	require.Contains(t, a.Sentence, "rank 2 (process 7) does not answer RAS: dead, stopped, or cut off")
	other.Guessed = true
	j = job()
	j.Learn(other)
	require.Equal(t, hang.Absent, hang.Judge(j).Reason)
	other.Hear([]hang.Hint{{Rank: 1, Death: "d"}})
	require.Empty(t, other.Ranks[1].Death)
}

// Several ranks without files are not accused, nor are most ranks by one that waits alone. A group with unknown members
// does not hide a culprit.
func TestDoubt(t *testing.T) {
	even, clocks := make([]time.Duration, 5), make([]time.Duration, 5)
	j := paced(time.Minute, clocks, even, even)
	j.Ranks[1], j.Ranks[4] = hang.Rank{}, hang.Rank{}
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Contains(t, a.Sentence, "I cannot say, because the files of ranks 1 and 4 are missing")
	j.Ranks[1].Mute, j.Ranks[4].Mute = true, true
	require.Equal(t, []int{1, 4}, hang.Judge(j).Culprits)

	a = hang.Judge(paced(time.Minute, clocks, even, even, even, even, []time.Duration{-1, -1, 0, -1, -1}))
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Contains(t, a.Sentence,
		"rank 2 waits in all_reduce #5 of the default group, which ranks 0, 1, 3 and 4, most of its ranks, have not called")

	j = paced(time.Minute, clocks, even, even)
	j.Groups[0].Open = true
	require.Equal(t, hang.Unknown, hang.Judge(j).Reason)
}

// Roots that differ; GPUs that began the collectives of two groups in different order, though the hosts called them
// alike.
func TestRootsAndStreams(t *testing.T) {
	even, clocks := make([]time.Duration, 3), make([]time.Duration, 3)
	j := paced(time.Minute, clocks, even, even)
	for r := range j.Ranks {
		c := &j.Ranks[r].Calls[1]
		c.Kind, c.Root = "broadcast", 1
		if r == 1 {
			c.Root = 3
		}
	}
	a := hang.Judge(j)
	require.Equal(t, hang.Roots, a.Reason, a.Sentence)
	require.Equal(t, []int{1}, a.Culprits)
	require.Equal(t, "rank 1 called broadcast #2 of the default group with root 2, and ranks 0 and 2 with root 0",
		a.Sentence)

	j = paced(time.Minute, clocks, even, even)
	j.Groups = append(j.Groups, hang.Group{Name: "1", Ranks: []int{0, 1, 2}})
	for r := range j.Ranks {
		c := j.Ranks[r].Calls[1]
		c.Group, c.Number, c.At = 1, 1, c.At.Add(time.Second)
		one := &j.Ranks[r].Calls[1]
		if r == 2 {
			one.State = hang.Called
		} else {
			c.State = hang.Called
		}
		j.Ranks[r].Calls = append(j.Ranks[r].Calls, c)
	}
	a = hang.Judge(j)
	require.Equal(t, hang.Order, a.Reason, a.Sentence)
	require.Equal(t, []int{2}, a.Culprits)
}

// Messages to a rank that is in no group, and to one beyond MaxRanks.
func TestFarPeers(t *testing.T) {
	for _, peer := range []int{7, hang.MaxRanks - 1, hang.MaxRanks, 1 << 40} {
		j := &hang.Job{Groups: []hang.Group{{Name: "0"}}}
		k := j.Rank(0)
		k.Source, k.Calls = "f", []hang.Call{{Kind: "send", Peer: peer, Send: true, State: hang.Begun}}
		require.Empty(t, hang.Judge(j).Culprits)
	}
}
