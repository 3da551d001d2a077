package sched_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// changed is a schedule with a rank's steps replaced.
type changed struct {
	sched.Schedule
	rank  sched.Rank
	steps []sched.Step
}

func (c changed) Len(r sched.Rank) int {
	if r == c.rank {
		return len(c.steps)
	}
	return c.Schedule.Len(r)
}

func (c changed) At(r sched.Rank, i int) sched.Step {
	if r == c.rank {
		return c.steps[i]
	}
	return c.Schedule.At(r, i)
}

// stepsOf lists a rank's steps in the order that is given.
func stepsOf(s sched.Schedule, r sched.Rank, order ...int) changed {
	c := changed{Schedule: s, rank: r}
	for _, i := range order {
		c.steps = append(c.steps, s.At(r, i))
	}
	return c
}

// Watch sees every step of every rank once, in order, with the contributions that it has.
func TestWatchSees(t *testing.T) {
	const n = 5
	s := ring.AllReduce{N: n}
	next := make([]int, n)
	require.NoError(t, sched.Watch(s, sched.AllReduce, 2, false, func(e sched.Event) {
		require.Equal(t, next[e.Rank], e.Index)
		require.Equal(t, s.At(e.Rank, e.Index), e.Step)
		next[e.Rank]++
		from := e.Value.From()
		require.Len(t, from, min(e.Index+1, n))
		require.Contains(t, from, e.Rank)
		require.IsIncreasing(t, append([]sched.Rank{-1}, from...))
		require.Equal(t, (int(e.Rank)+n-1-e.Index+n)%n, e.Value.Chunk())
		if e.Index == 1 && e.Rank == 2 {
			require.Equal(t, "(1+2)[0]", e.Value.String())
		}
	}))
	require.Equal(t, []int{9, 9, 9, 9, 9}, next)
}

// A Refutation knows the place, and what Watch says is what Check says. When a step cannot be,
// the other ranks go on.
func TestRefutation(t *testing.T) {
	ring3 := ring.AllReduce{N: 3}
	for name, tc := range map[string]struct {
		s     sched.Schedule
		err   string
		place sched.Fault
		seen  int // steps that happen
	}{
		"a sum that is not kept": {stepsOf(ring3, 1, 0, 1, 2, 3),
			"check all-reduce: 1 of the messages from rank 0 to rank 1 are never received",
			sched.Fault{Rank: 1, Step: -1, Out: -1, Why: "1 of the messages from rank 0 to rank 1 are never received"}, 14},
		"steps in another order": {stepsOf(ring3, 1, 0, 2, 1, 3, 4),
			"check all-reduce: rank 1 step 1 (from 0 ⊕ In[1] → Out[1] → 2): adds different chunks: 0[2] and 1[1], which may " +
				"differ in length",
			sched.Fault{Rank: 1, Step: 1, Out: -1, Why: "adds different chunks: 0[2] and 1[1], which may differ in length"}, 6},
		"no first message": {stepsOf(ring.Broadcast{N: 3}, 0),
			"check broadcast from 0: deadlock at depth 2, 2 of 3 ranks wait:\n\trank 1 step 0 (from 0 → Out[0] → 2): nothing " +
				"comes from rank 0\n\trank 2 step 0 (from 1 → Out[0]): nothing comes from rank 1",
			sched.Fault{Rank: 1, Step: 0, Out: -1, Why: "nothing comes from rank 0"}, 0},
		"nothing at all": {stepsOf(ring.AllReduce{N: 1}, 0), "check all-reduce: rank 0 Out[0]: is never written",
			sched.Fault{Rank: 0, Step: -1, Out: 0, Why: "is never written"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			goal := sched.AllReduce
			if tc.s.(changed).Schedule == (ring.Broadcast{N: 3}) {
				goal = sched.Broadcast(0)
			}
			err := sched.Check(tc.s, goal, 2, false)
			require.EqualError(t, err, tc.err)
			var r *sched.Refutation
			require.ErrorAs(t, err, &r)
			require.Equal(t, tc.place, r.Faults[0])
			seen := 0
			require.EqualError(t, sched.Watch(tc.s, goal, 2, false, func(sched.Event) { seen++ }), tc.err)
			require.Equal(t, tc.seen, seen)
		})
	}
}
