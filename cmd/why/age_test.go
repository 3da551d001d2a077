package why

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// seen sets when ranks were seen, since the last call of those that wait.
func seen(j *hang.Job, by hang.Witness, after time.Duration) *hang.Job {
	for r := range j.Ranks {
		j.Ranks[r].Taken, j.Ranks[r].By = j.Ranks[0].Calls[len(j.Ranks[0].Calls)-1].At.Add(after), by
	}
	return j
}

// late4 is a job of 4 ranks, of which rank 3 has not come to the last call.
func late4() *hang.Job {
	even := make([]time.Duration, 4)
	return paced(10*time.Minute, even, even, even, even, []time.Duration{0, 0, 0, -1})
}

// A rank is accused only if others have waited for it for long, by the files' own times. If they have not, no rank
// waits for long; if nothing shows it, it cannot be said, and the sentence has the candidate.
func TestAges(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		by       hang.Witness
		after    time.Duration
		patience time.Duration
		want     hang.Reason
		says     string
	}{
		{hang.FileTime, 20 * time.Millisecond, 0, hang.Nothing,
			"no rank waits for long: ranks 0, 1 and 2 wait in all_reduce #4 of the default group since 20ms"},
		{hang.FileTime, 2900 * time.Millisecond, 0, hang.Nothing, "since 2.9s"},
		{hang.FileTime, 3 * s, 0, hang.Absent, "rank 3 never called"},
		{hang.FileTime, 3 * s, 5 * s, hang.Nothing, "since 3s"},
		{hang.FileTime, 20 * time.Millisecond, -1, hang.Absent, "rank 3 never called"},
		{hang.FileTime, -time.Hour, 0, hang.Unknown,
			"I cannot say, as files have other times than their contents, so nothing shows how long ranks have waited: rank 3"},
		{hang.Content, time.Second, 0, hang.Nothing, "since 1s"},
		{hang.Content, time.Minute, 0, hang.Absent, ""},
		{hang.LastLine, time.Second, 0, hang.Unknown,
			"I cannot say, as the log shows a wait of 1s only: rank 3 never called all_reduce #4"},
		{hang.LastLine, time.Minute, 0, hang.Absent, ""},
	} {
		j := seen(late4(), c.by, c.after)
		j.Patience = c.patience
		a := hang.Judge(j)
		require.Equal(t, c.want, a.Reason, "%v: %s", c, a.Sentence)
		require.Contains(t, a.Sentence, c.says)
		require.Equal(t, c.want == hang.Absent, len(a.Culprits) == 1, "%v: %v", c, a.Culprits)
	}
}

// That times of files are all that shows a wait is said, unless it is the time-out of the call.
func TestAgesOfFiles(t *testing.T) {
	for after, noted := range map[time.Duration]bool{
		time.Minute: true, 10*time.Minute + time.Second: false, 24 * time.Hour: true,
	} {
		a := hang.Judge(seen(late4(), hang.FileTime, after))
		require.Equal(t, []int{3}, a.Culprits)
		require.Equal(t, noted, strings.Contains(strings.Join(a.Notes, "\n"), "by the times of their files"), "%v", after)
	}
}

// A difference, and a missing file, are no all-clear where ranks have waited only a moment. What ranks have waited for
// each other before does not accuse one of them.
func TestAgesUnknown(t *testing.T) {
	const s = time.Second
	j := seen(late4(), hang.FileTime, time.Millisecond)
	j.Ranks[1].Calls[3].Kind = "broadcast"
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason)
	require.Contains(t, a.Sentence, "I cannot say, as ranks have waited only 1ms: as collective #4 of the default group rank 1")
	require.Empty(t, a.Culprits)

	j = seen(late4(), hang.FileTime, time.Millisecond)
	j.Ranks[3] = hang.Rank{}
	a = hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason)
	require.Empty(t, a.Culprits)
	require.Contains(t, a.Sentence, "I cannot say, because the file of rank 3 is missing; ranks 0, 1 and 2 wait")

	even := make([]time.Duration, 4)
	one, other := []time.Duration{0, 0, 0, 5 * s}, []time.Duration{0, 0, 5 * s, 0}
	for after, want := range map[time.Duration]hang.Reason{4 * s: hang.Unknown, 6 * s: hang.Absent} {
		j = seen(paced(10*time.Minute, even, even, even, one, other, []time.Duration{0, 0, 0, -1}), hang.FileTime, after)
		a = hang.Judge(j)
		require.Equal(t, want, a.Reason, a.Sentence)
		require.Equal(t, want == hang.Unknown, strings.Contains(a.Sentence, "and 5s for each other before"), a.Sentence)
	}
}

// Ranks wait for long in one call, while another is young: only the first counts, also where it waits for the second.
func TestAgesOfTwoPlaces(t *testing.T) {
	job := func() *hang.Job {
		j := seen(late4(), hang.FileTime, time.Minute)
		j.Groups = append(j.Groups, hang.Group{Name: "1", Ranks: []int{2, 3}})
		return j
	}
	young := func(j *hang.Job, r int) {
		j.Ranks[r].Calls = append(j.Ranks[r].Calls, hang.Call{Group: 1, Number: 1, Kind: "all_reduce", Peer: -1,
			State: hang.Begun, At: j.Ranks[r].Taken.Add(-time.Millisecond)})
	}
	j := job()
	young(j, 2) // rank 2 waits for rank 3 in both
	require.Equal(t, []int{3}, hang.Judge(j).Culprits)
	j = job()
	young(j, 3) // rank 3 holds up the others, and has just called something else
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
}

// ended has calls end 1 ms after they were made, as dumps have it.
func ended(j *hang.Job) *hang.Job {
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			if c := &j.Ranks[r].Calls[i]; c.State == hang.Ended {
				c.Ends = c.At.Add(time.Millisecond)
			}
		}
	}
	return j
}

// A file of an earlier attempt, and one that is older than what others have gone on to, accuse nobody: by what is in
// the files, whatever their times.
func TestAttempts(t *testing.T) {
	move := func(k *hang.Rank, by time.Duration) {
		for i := range k.Calls {
			c := &k.Calls[i]
			c.At = c.At.Add(by)
			if !c.Ends.IsZero() {
				c.Ends = c.Ends.Add(by)
			}
		}
	}
	for name, change := range map[string]func(*hang.Job){
		"20 minutes before": func(j *hang.Job) {
			move(&j.Ranks[1], -20*time.Minute)
			j.Ranks[1].Calls = j.Ranks[1].Calls[:3]
		},
		"further": func(j *hang.Job) { // the earlier attempt came to calls that this one has not made
			move(&j.Ranks[1], -20*time.Minute)
			c := j.Ranks[1].Calls[2]
			c.Number, c.At, c.Ends = 5, c.At.Add(time.Second), c.Ends.Add(time.Second)
			j.Ranks[1].Calls[3].State, j.Ranks[1].Calls[3].Ends = hang.Ended, j.Ranks[1].Calls[3].At
			j.Ranks[1].Calls = append(j.Ranks[1].Calls, c)
		},
		"other versions": func(j *hang.Job) {
			for r := range j.Ranks {
				j.Ranks[r].Build = map[bool]string{true: "NCCL 2.26", false: "NCCL 2.27"}[r == 1]
			}
		},
		"hung in the same call": func(j *hang.Job) { move(&j.Ranks[1], -20*time.Minute) },
		"lacks a call":          func(j *hang.Job) { j.Ranks[1].Calls = j.Ranks[1].Calls[:2] },
		"other ranks": func(j *hang.Job) {
			j.Groups = append(j.Groups, hang.Group{Name: "0", Desc: "default_pg", Ranks: []int{0, 1}})
			for r := range j.Ranks {
				j.Ranks[r].Made = []int{map[int]int{1: 1}[r]}
			}
			for i := range j.Ranks[1].Calls[:3] {
				j.Ranks[1].Calls[i].Group = 1
			}
			j.Ranks[1].Calls = j.Ranks[1].Calls[:3]
		},
	} {
		j := ended(late4())
		change(j)
		a := hang.Judge(seen(j, hang.FileTime, 90*time.Second))
		require.Equal(t, []int{3}, a.Culprits, "%s: %s", name, a.Sentence)
		require.Contains(t, strings.Join(a.Notes, "\n"), "the file of rank 1 is", name)
		require.Contains(t, strings.Join(a.Notes, "\n"), "give the newest one", name)

		j = ended(late4()) // rank 1 has such a file and no other rank is late
		k := j.Ranks[0].Calls[3]
		k.At = k.At.Add(time.Microsecond)
		j.Ranks[3].Calls = append(j.Ranks[3].Calls, k)
		change(j)
		a = hang.Judge(seen(j, hang.FileTime, 90*time.Second))
		require.Empty(t, a.Culprits, "%s: %s", name, a.Sentence)
		require.Equal(t, hang.Unknown, a.Reason)
		require.Contains(t, a.Sentence, "I cannot say, because the files of rank 1 are of another time, or run", name)
	}
}

// hung gives a rank all_reduces of a size, which last 1 ms, one each 100 ms. The last one has not ended if it waits.
func hung(k *hang.Rank, begin time.Time, last int64, size int64, waits bool) {
	k.Calls = nil
	for n := int64(1); n <= last; n++ {
		at := begin.Add(time.Duration(n) * 100 * time.Millisecond)
		text := fmt.Sprintf("Float[%d]", size)
		c := hang.Call{Number: n, Kind: "all_reduce", Peer: -1, State: hang.Ended, At: at, Ends: at.Add(time.Millisecond),
			Limit: 10 * time.Minute, In: text, Out: text, Type: "Float", Sizes: hang.Sizes{In: size, Out: size}}
		if n == last && waits {
			c.State, c.Ends = hang.Begun, time.Time{}
		}
		k.Calls = append(k.Calls, c)
	}
}

// A rank's only dump is of an earlier attempt, in which it waited: in a call of another size, or further on. It accuses
// nobody, and no rank whose dump is new is taken for old, whether the times of ended calls tell, or what others have
// ended since, or the folders of attempts.
func TestWaitingAttempts(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		gap     time.Duration
		last    int64
		size    int64
		folders bool
		want    []int
		says    string
	}{
		{500 * time.Second, 10, 600, false, []int{3}, "its calls are 8m20s before"},
		{500 * time.Second, 10, 1000, false, []int{3}, "its calls are 8m20s before"},
		{500 * time.Second, 45, 600, false, []int{3}, "its calls are 8m20s before"},
		{90 * time.Second, 45, 600, false, []int{3}, "its calls are 1m30s before"},
		{20 * time.Second, 10, 600, false, []int{3}, "is older than that of others, which have ended all_reduce #39 since"},
		{20 * time.Second, 10, 1000, false, []int{3}, "is older than that of others, which have ended all_reduce #39 since"},
		{20 * time.Second, 45, 600, false, nil, "the file of rank 3 is older than that of others"},
		{20 * time.Second, 45, 600, true, []int{3}, "it lies in attempt_0, and its calls are before those of attempt_1"},
	} {
		j := late4()
		for r := range 4 {
			k := &j.Ranks[r]
			if hung(k, begin, map[bool]int64{true: 39, false: 40}[r == 3], 1000, r != 3); c.folders {
				k.Source = "run/attempt_1/nccl_trace"
			}
		}
		k := &j.Ranks[2]
		if hung(k, begin.Add(-c.gap), c.last, c.size, true); c.folders {
			k.Source = "run/attempt_0/nccl_trace"
		}
		a := hang.Judge(seen(j, hang.FileTime, 90*time.Second))
		require.Equal(t, c.want, a.Culprits, "%v: %s", c, a.Sentence)
		require.Contains(t, strings.Join(a.Notes, "\n"), c.says, "%v", c)
	}
}

// A long call gives others what they take for several: the rank that waits in it is to blame, and its file is no older.
// Nor is one in the folder of another attempt whose calls are as new: each agent of torchrun counts for itself.
func TestNoEarlierAttempts(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	j := late4()
	for r := range 4 {
		hung(&j.Ranks[r], begin, 40, 1000, true)
	}
	hung(&j.Ranks[2], begin, 35, 1000, true)
	long := &j.Ranks[2].Calls[34]
	long.In, long.Sizes.In, long.Sizes.Out = "Float[8000]", 8000, 8000
	a := hang.Judge(seen(j, hang.FileTime, 90*time.Second))
	require.Equal(t, hang.Shapes, a.Reason, a.Sentence)
	require.Equal(t, []int{2}, a.Culprits)

	for r := range 4 {
		k := &j.Ranks[r]
		hung(k, begin, map[bool]int64{true: 39, false: 40}[r == 2], 1000, r != 2)
		k.Source = fmt.Sprintf("run/attempt_%d/nccl_trace", map[bool]int{true: 0, false: 1}[r == 2])
	}
	a = hang.Judge(seen(j, hang.FileTime, 90*time.Second))
	require.Equal(t, []int{2}, a.Culprits, a.Sentence)
}

// What RAS and logs without times show of one moment accuses nobody where dumps of that moment show that ranks have
// waited only for it.
func TestAgesOfOthers(t *testing.T) {
	glance := late4()
	glance.Glance = true
	for after, want := range map[time.Duration][]int{20 * time.Millisecond: nil, time.Minute: {3}} {
		dumps, other := hang.Judge(seen(late4(), hang.FileTime, after)), hang.Judge(glance)
		require.Equal(t, []int{3}, other.Culprits, "alone it does")
		all := hang.Merge([]hang.Answer{other, dumps})
		require.Len(t, all, 1)
		require.Equal(t, want, all[0].Culprits, "%v: %s", after, all[0].Sentence)
		if want == nil {
			require.Equal(t, hang.Nothing, all[0].Reason, all[0].Sentence)
		}
	}
}
