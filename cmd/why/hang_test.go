package why

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// Generated jobs with a fault each are in TestWhyProof of package command.

// two is a job of some ranks that have ended one call, and are in a second: late is by rank, negative for those that
// have not come.
func two(late ...time.Duration) *hang.Job {
	even := make([]time.Duration, len(late))
	return paced(10*time.Minute, even, even, late)
}

// Missing knowledge accuses nobody.
func TestUnknown(t *testing.T) {
	j := two(0, 0, 0, 0, 0, -1, 0, 0)
	for r := range j.Ranks {
		if r != 2 {
			j.Ranks[r] = hang.Rank{}
		}
	}
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)
	require.Contains(t, a.Sentence, "I cannot say, because the files of ranks 0, 1, 3, 4, 5, 6 and 7 are missing")

	a = hang.Judge(two(0, 0, 0, 0))
	require.Equal(t, hang.Stuck, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)

	require.Equal(t, hang.Nothing, hang.Judge(&hang.Job{}).Reason)
}

// One rank has not made a group; a log tells of a rank's end.
func TestMadeAndDied(t *testing.T) {
	j := two(0, 0, 0, -1)
	j.Groups = append(j.Groups, hang.Group{Name: "1", Desc: "mesh", Ranks: []int{1, 2, 3}})
	for r := range j.Ranks {
		j.Ranks[r].Made = []int{0, 1}
		if calls := j.Ranks[r].Calls; r == 1 || r == 2 {
			calls[1].Group, calls[1].Number, calls[1].Where = 1, 1, "a.py:1 in f"
		} else {
			j.Ranks[r].Calls = calls[:1]
		}
	}
	j.Ranks[3].Made = []int{0}
	a := hang.Judge(j)
	require.Equal(t, hang.NotMade, a.Reason, a.Sentence)
	require.Equal(t, "rank 3 never made group 1 (mesh); ranks 1 and 2 wait in all_reduce #1 of group 1 (mesh) (a.py:1 "+
		"in f)", a.Sentence)

	j = two(0, 0, -1, 0)
	j.Ranks[2] = hang.Rank{Death: "was killed by signal 9"}
	a = hang.Judge(j)
	require.Equal(t, hang.Died, a.Reason)
	require.Equal(t, []int{2}, a.Culprits)
	require.Contains(t, a.Sentence, "rank 2 was killed by signal 9; ranks 0, 1 and 3 wait in ")

	j = two(0, 0, 0, 0) // nobody waits
	for r := range j.Ranks {
		j.Ranks[r].Calls = j.Ranks[r].Calls[:1]
	}
	j.Ranks[2].Death = "was killed by signal 9"
	a = hang.Judge(j)
	require.Equal(t, hang.Died, a.Reason)
	require.Equal(t, "rank 2 was killed by signal 9", a.Sentence)
	require.NotEmpty(t, a.Remedy)
}

// Two ranks that know only each other and call two groups in different order are both to blame, and one may be right.
func TestEither(t *testing.T) {
	j := two(0, 0, 0, 0)
	j.Groups = append(j.Groups, hang.Group{Name: "1", Ranks: []int{0, 1}})
	for r := range j.Ranks {
		if c := &j.Ranks[r].Calls[1]; r == 1 {
			c.Group, c.Number = 1, 1
		}
	}
	a := hang.Judge(j)
	require.Equal(t, hang.Order, a.Reason, a.Sentence)
	require.Equal(t, []int{0, 1}, a.Culprits)
	require.True(t, a.Either)
}

// NCCL counts calls from 0. The first call of a group is judged like any other.
func TestCountedFromNought(t *testing.T) {
	for _, odd := range []int{0, 3} {
		for _, change := range []func(k *hang.Rank){
			func(k *hang.Rank) { k.Calls[0].In, k.Calls[0].Sizes.In = "Float[999]", 999 },
			func(k *hang.Rank) { k.Calls[0].Kind = "broadcast" },
			func(k *hang.Rank) { k.Calls = nil },
		} {
			j := paced(10*time.Minute, make([]time.Duration, 4), make([]time.Duration, 4))
			for r := range j.Ranks {
				c := &j.Ranks[r].Calls[0]
				c.In, c.Sizes = "Float[1000]", hang.Sizes{In: 1000, Out: 1000}
				if r == odd {
					change(&j.Ranks[r])
				}
			}
			want := hang.Judge(j)
			for r := range j.Ranks {
				for i := range j.Ranks[r].Calls {
					j.Ranks[r].Calls[i].Number--
				}
			}
			got := hang.Judge(j)
			require.Equal(t, []int{odd}, want.Culprits, want.Sentence)
			require.Equal(t, want.Culprits, got.Culprits, got.Sentence)
			require.Equal(t, want.Reason, got.Reason, got.Sentence)
			require.Equal(t, strings.ReplaceAll(want.Sentence, "#1", "#0"), got.Sentence)
		}
	}
}
