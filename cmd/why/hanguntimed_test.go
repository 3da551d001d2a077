package why

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// untimed is a job whose ranks all call collectives of two groups, without the times at which GPUs began them. A rank's
// order names the groups of its calls: "abba" is group 0, 1, 1, 0. All calls but the last two have ended.
func untimed(orders ...string) *hang.Job {
	j := new(hang.Job)
	for g, name := range []string{"0", "1"} {
		j.Groups = append(j.Groups, hang.Group{Name: name, Desc: map[int]string{0: "default_pg"}[g]})
	}
	for r, order := range orders {
		for g := range j.Groups {
			j.Groups[g].Ranks = append(j.Groups[g].Ranks, r)
		}
		k := j.Rank(r)
		k.Source = "f"
		numbers := map[int]int64{}
		for i, letter := range order {
			g := int(letter - 'a')
			numbers[g]++
			c := hang.Call{Group: g, Number: numbers[g], Kind: "all_reduce", Peer: -1, State: hang.Ended,
				At: time.Unix(1_700_000_000, int64(1000*i+r))}
			if i >= len(order)-2 {
				c.State = hang.Open
			}
			k.Calls = append(k.Calls, c)
		}
	}
	return j
}

// Dumps without the times at which GPUs began calls show that ranks called two groups in different order, unless they
// have always done so.
func TestOpposite(t *testing.T) {
	a := hang.Judge(untimed("abab", "abab", "abba", "abab"))
	require.Equal(t, hang.Order, a.Reason, a.Sentence)
	require.Equal(t, []int{2}, a.Culprits)
	require.False(t, a.Either)
	require.Contains(t, a.Sentence,
		"ranks 0, 1 and 3 called all_reduce #2 of the default group first, and rank 2 called all_reduce #2 of group 1 first")

	a = hang.Judge(untimed("abab", "abba"))
	require.Equal(t, []int{0, 1}, a.Culprits, a.Sentence)
	require.True(t, a.Either)

	for _, orders := range [][]string{{"abab", "abab"}, {"abab", "baba"}} {
		a = hang.Judge(untimed(orders...))
		require.Equal(t, hang.Unknown, a.Reason, "%v: %s", orders, a.Sentence)
		require.Empty(t, a.Culprits)
	}
	j := untimed("abab", "abba", "aba") // the third has not called the other one
	require.NotEqual(t, []int{0, 1}, hang.Judge(j).Culprits)
}

// Where nothing shows whether GPUs have begun a call in which all ranks are, the remedy says how to see that. An error
// of the network is worth more.
func TestAlike(t *testing.T) {
	j := untimed("aab", "aab")
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason)
	require.Contains(t, a.Sentence,
		"ranks 0 and 1 all have called all_reduce #2 of the default group, alike as far as the files show")
	require.Contains(t, a.Remedy, "TORCH_NCCL_ENABLE_TIMING=1")
	j = untimed("aab", "aab")
	j.Faults = []string{"NET/IB: Got completion from peer 10.0.0.9"}
	a = hang.Judge(j)
	require.Equal(t, hang.Stuck, a.Reason)
	require.Contains(t, a.Sentence, "10.0.0.9")
}

// A rank that came after the others' time-out was slow even if the call has ended since. Calls that others made after
// that call do not count as earlier waits.
func TestSlowEnded(t *testing.T) {
	const s = time.Second
	even, late := []time.Duration{0, 0, 0}, []time.Duration{0, 40 * s, 0}
	of := func(limit time.Duration) hang.Answer {
		j := paced(limit, make([]time.Duration, 3), even, even, even, even, late, even)
		for r := range j.Ranks {
			for i := range j.Ranks[r].Calls {
				c := &j.Ranks[r].Calls[i]
				c.State, c.Ends = hang.Ended, j.Ranks[1].Calls[i].At.Add(time.Millisecond)
			}
		}
		return hang.Judge(j)
	}
	a := of(30 * s)
	require.Equal(t, hang.Slow, a.Reason, a.Sentence)
	require.Equal(t, []int{1}, a.Culprits)
	require.Contains(t, a.Sentence, "it called all_reduce #5 of the default group 40s after the first")
	require.Equal(t, hang.Nothing, of(time.Minute).Reason)
}
