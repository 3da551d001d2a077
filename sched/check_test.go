package sched_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// table is a schedule written out: the steps of each rank.
type table struct {
	shape sched.Shape
	steps [][]sched.Step
}

func (t table) Shape() sched.Shape                { return t.shape }
func (t table) Len(r sched.Rank) int              { return len(t.steps[r]) }
func (t table) At(r sched.Rank, i int) sched.Step { return t.steps[r][i] }

// tableOf writes s out, so that a test can break it.
func tableOf(s sched.Schedule) table {
	t := table{shape: s.Shape(), steps: make([][]sched.Step, s.Shape().Ranks)}
	for r := range t.steps {
		for i := range s.Len(sched.Rank(r)) {
			t.steps[r] = append(t.steps[r], s.At(sched.Rank(r), i))
		}
	}
	return t
}

const nobody = sched.Nobody

func in(c int32) sched.Ref  { return sched.Ref{Buf: sched.In, Chunk: c} }
func out(c int32) sched.Ref { return sched.Ref{Buf: sched.Out, Chunk: c} }
func tmp(c int32) sched.Ref { return sched.Ref{Buf: sched.Tmp, Chunk: c} }

func TestCheckFindsFaults(t *testing.T) {
	pair := sched.Shape{Ranks: 2, In: 1, Out: 1, Tmp: 1}
	halves := sched.Shape{Ranks: 2, In: 2, Out: 2, Tmp: 2}
	ring4 := func(breakIt func(steps [][]sched.Step)) table {
		t := tableOf(ring.AllReduce{N: 4})
		breakIt(t.steps)
		return t
	}
	for name, c := range map[string]struct {
		s       sched.Schedule
		goal    sched.Goal
		inPlace bool
		want    []string // all of it in the message
	}{
		"a contribution is missing": {
			s:    ring4(func(s [][]sched.Step) { s[2][1].Src = sched.Ref{}; s[2][1].Dst = out(0) }),
			goal: sched.AllReduce,
			want: []string{"check all-reduce: rank 0 Out[0]: lacks the contribution of ranks [2]", "(0+(1+3))[0]"},
		},
		"a contribution counts twice": {
			s: table{pair, [][]sched.Step{
				{{Recv: nobody, Src: in(0), Send: 1}, {Recv: 1, Src: in(0), Dst: out(0), Send: nobody}},
				{{Recv: 0, Src: in(0), Dst: out(0), Send: 0}},
			}},
			goal: sched.AllReduce,
			want: []string{"rank 0 step 1 (from 1 ⊕ In[0] → Out[0])", "contribution of rank 0 twice: 0[0] and (0+1)[0]"},
		},
		"all send before they receive": {
			s: table{sched.Shape{Ranks: 2, In: 3, Out: 3}, [][]sched.Step{
				{{Recv: nobody, Src: in(0), Send: 1}, {Recv: nobody, Src: in(1), Send: 1}, {Recv: nobody, Src: in(2), Send: 1},
					{Recv: 1, Src: in(0), Dst: out(0), Send: nobody}},
				{{Recv: nobody, Src: in(0), Send: 0}, {Recv: nobody, Src: in(1), Send: 0}, {Recv: nobody, Src: in(2), Send: 0},
					{Recv: 0, Src: in(0), Dst: out(0), Send: nobody}},
			}},
			goal: sched.AllReduce,
			want: []string{
				"deadlock at depth 2, 2 of 2 ranks wait:",
				"rank 0 step 2 (In[2] → 1): the queue to rank 1 is full",
				"rank 1 step 2 (In[2] → 0): the queue to rank 0 is full",
			},
		},
		"all receive before they send": {
			s: table{pair, [][]sched.Step{
				{{Recv: 1, Src: in(0), Dst: out(0), Send: nobody}, {Recv: nobody, Src: in(0), Send: 1}},
				{{Recv: 0, Src: in(0), Dst: out(0), Send: nobody}, {Recv: nobody, Src: in(0), Send: 0}},
			}},
			goal: sched.AllReduce,
			want: []string{"deadlock", "rank 0 step 0 (from 1 ⊕ In[0] → Out[0]): nothing comes from rank 1"},
		},
		"a message is left over": {
			s: table{pair, [][]sched.Step{
				{{Recv: nobody, Src: in(0), Dst: out(0), Send: 1}, {Recv: nobody, Src: in(0), Send: 1}},
				{{Recv: 0, Dst: out(0), Send: nobody}},
			}},
			goal: sched.Broadcast(0),
			want: []string{"1 of the messages from rank 0 to rank 1 are never received"},
		},
		"In is clobbered in place": {
			s: table{pair, [][]sched.Step{
				{{Recv: nobody, Src: in(0), Send: 1}, {Recv: 1, Dst: out(0), Send: nobody}, {Recv: nobody, Src: out(0), Send: 0},
					{Recv: 0, Src: in(0), Dst: out(0), Send: nobody}},
				{{Recv: nobody, Src: in(0), Send: 0}, {Recv: 0, Src: in(0), Dst: out(0), Send: nobody}},
			}},
			goal: sched.AllReduce, inPlace: true,
			want: []string{"rank 0 step 3", "reads In[0] after Out was written over it: it holds 1[0]"},
		},
		"another order of adding on each rank": {
			s: table{sched.Shape{Ranks: 3, In: 1, Out: 1}, [][]sched.Step{
				rotated(0), rotated(1), rotated(2),
			}},
			goal: sched.AllReduce,
			want: []string{"rank 1 Out[0]: is added up in another order than on rank 0, so the bits may differ: (0+(1+2))[0] " +
				"and (2+(0+1))[0]"},
		},
		"Out is never written": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Src: in(0), Dst: out(0), Send: nobody}}, {}}},
			goal: sched.Broadcast(0),
			want: []string{"rank 1 Out[0]: is never written"},
		},
		"the chunk of another rank": {
			s: table{sched.Shape{Ranks: 1, In: 2, Out: 2},
				[][]sched.Step{{{Recv: nobody, Src: in(0), Dst: out(0), Send: nobody},
					{Recv: nobody, Src: in(0), Dst: out(1), Send: nobody}}}},
			goal: sched.AllGather,
			want: []string{"step 1 (In[0] → Out[1]): has In[0] and Out[1] in one message: chunks 0 and 1 of a block may " +
				"differ in length"},
		},
		"the chunk of another rank of the same length": {
			s: table{sched.Shape{Ranks: 2, In: 2, Out: 1}, [][]sched.Step{
				{{Recv: nobody, Src: in(1), Dst: out(0), Send: nobody}, {Recv: nobody, Src: in(0), Send: 1}},
				{{Recv: 0, Dst: out(0), Send: nobody}},
			}},
			goal: sched.Scatter(0),
			want: []string{"rank 0 Out[0]: holds 0[1] instead of 0[0]"},
		},
		"a message of another length": {
			s: table{halves, [][]sched.Step{
				{{Recv: nobody, Src: in(0), Dst: out(0), Send: 1}}, {{Recv: 0, Dst: out(1), Send: nobody}},
			}},
			goal: sched.Broadcast(0),
			want: []string{"rank 1 step 0", "receives 0[0] for Out[1]: chunks 0 and 1 of a block may differ in length"},
		},
		"different chunks are added": {
			s: table{sched.Shape{Ranks: 2, In: 2, Out: 1}, [][]sched.Step{
				{{Recv: nobody, Src: in(1), Send: 1}}, {{Recv: 0, Src: in(0), Dst: out(0), Send: nobody}},
			}},
			goal: sched.ReduceScatter,
			want: []string{"adds different chunks: 0[1] and 1[0]"},
		},
		"a sum of the wrong chunk": {
			s: table{sched.Shape{Ranks: 2, In: 2, Out: 1}, [][]sched.Step{
				{{Recv: nobody, Src: in(1), Send: 1}, {Recv: 1, Dst: out(0), Send: nobody}},
				{{Recv: 0, Src: in(1), Dst: out(0), Send: 0}},
			}},
			goal: sched.ReduceScatter,
			want: []string{"rank 0 Out[0]: holds a sum of In[1] instead of In[0]"},
		},
		"a sum in a broadcast": {
			s: table{pair, [][]sched.Step{
				{{Recv: nobody, Src: in(0), Dst: out(0), Send: 0}, {Recv: 0, Src: in(0), Dst: out(0), Send: nobody}}, {},
			}},
			goal: sched.Broadcast(0),
			want: []string{"adds, but this collective only copies"},
		},
		"scratch is read before it is written": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Src: tmp(0), Send: 1}}, {}}},
			goal: sched.AllReduce,
			want: []string{"reads Tmp[0], which is not written yet"},
		},
		"In of a rank that has none": {
			s:    table{pair, [][]sched.Step{{}, {{Recv: nobody, Src: in(0), Dst: out(0), Send: nobody}}}},
			goal: sched.Broadcast(0),
			want: []string{"rank 1 has no In in this collective"},
		},
		"Out of a rank that has none": {
			s:    table{pair, [][]sched.Step{{}, {{Recv: nobody, Src: in(0), Dst: out(0), Send: nobody}}}},
			goal: sched.Reduce(0),
			want: []string{"rank 1 has no Out in this collective"},
		},
		"In is written": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Src: in(0), Dst: in(0), Send: nobody}}, {}}},
			goal: sched.AllReduce,
			want: []string{"writes to In"},
		},
		"neither source nor destination": {
			s: table{pair, [][]sched.Step{{{Recv: 0, Send: 0}, {Recv: nobody, Send: nobody}},
				{{Recv: nobody, Send: nobody}}}},
			goal: sched.AllReduce,
			want: []string{"rank 1 step 0", "neither Src nor Dst"},
		},
		"no value": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Dst: out(0), Send: 1}}, {}}},
			goal: sched.AllReduce,
			want: []string{"neither Recv nor Src"},
		},
		"a value that goes nowhere": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Src: in(0), Send: nobody}}, {}}},
			goal: sched.AllReduce,
			want: []string{"goes nowhere"},
		},
		"a chunk out of the shape": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Src: in(1), Send: 1}}, {}}},
			goal: sched.AllReduce,
			want: []string{"In[1] is out of shape"},
		},
		"a peer out of range": {
			s:    table{pair, [][]sched.Step{{{Recv: nobody, Src: in(0), Send: 2}}, {}}},
			goal: sched.AllReduce,
			want: []string{"peer 2 is none of the 2 ranks"},
		},
		"a shape of another collective": {
			s: ring.AllReduce{N: 4}, goal: sched.AllGather,
			want: []string{"check all-gather: shape {Ranks:4 In:4 Out:4 Tmp:0}: In must be 1 and Out 4 equal blocks"},
		},
		"a root out of range": {
			s: ring.Broadcast{N: 4, Root: 1}, goal: sched.Broadcast(4),
			want: []string{"check broadcast from 4: root is none of the 4 ranks"},
		},
		"no root": {
			s: ring.Broadcast{N: 4}, goal: sched.Broadcast(nobody),
			want: []string{"root is none of the 4 ranks"},
		},
		"another root": {
			s: ring.Broadcast{N: 4, Root: 1}, goal: sched.Broadcast(0),
			want: []string{"rank 1 has no In"},
		},
		"no form in place": {
			s: direct.AlltoAll{N: 4}, goal: sched.AlltoAll, inPlace: true,
			want: []string{"check all-to-all: has no form in place"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := sched.Check(c.s, c.goal, 2, c.inPlace)
			require.Error(t, err)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// rotated is a one-shot all-reduce of three ranks in which rank r adds in the
// order r, r+1, r+2: right sums, different bits.
func rotated(r sched.Rank) []sched.Step {
	a, b := (r+1)%3, (r+2)%3
	return []sched.Step{
		{Recv: nobody, Src: in(0), Send: a},
		{Recv: nobody, Src: in(0), Send: b},
		{Recv: a, Src: in(0), Dst: out(0), Send: nobody},
		{Recv: b, Src: out(0), Dst: out(0), Send: nobody},
	}
}

func TestCheckDepth(t *testing.T) {
	require.ErrorContains(t, sched.Check(ring.AllReduce{N: 4}, sched.AllReduce, 0, false), "depth 0")

	// A rank that holds a message until it can pass it on stops a ring of full
	// queues: this is why a piece of the engine fills at most half a queue.
	require.ErrorContains(t, sched.Check(ring.AllReduce{N: 4}, sched.AllReduce, 1, false), "deadlock at depth 1")
	require.NoError(t, sched.Check(ring.AllReduce{N: 4}, sched.AllReduce, 2, false))

	// A rank that sends k messages ahead needs a queue of k.
	const k = 8
	ahead := table{shape: sched.Shape{Ranks: 2, In: k, Out: 2 * k}, steps: make([][]sched.Step, 2)}
	for r := range sched.Rank(2) {
		for c := range int32(k) {
			ahead.steps[r] = append(ahead.steps[r], sched.Step{Recv: nobody, Src: in(c), Dst: out(int32(r)*k + c), Send: 1 - r})
		}
		for c := range int32(k) {
			ahead.steps[r] = append(ahead.steps[r], sched.Step{Recv: 1 - r, Dst: out(int32(1-r)*k + c), Send: nobody})
		}
	}
	require.ErrorContains(t, sched.Check(ahead, sched.AllGather, k-1, false), "deadlock at depth 7, 2 of 2 ranks wait:")
	require.NoError(t, sched.Check(ahead, sched.AllGather, k, false))
}

// The list of ranks that wait is cut: a line for each of 10,000 helps nobody.
func TestDeadlockOfMany(t *testing.T) {
	err := sched.Check(ring.AllReduce{N: 64}, sched.AllReduce, 1, false)
	require.ErrorContains(t, err, "and 48 more")
}

// A block may have several chunks.
func TestBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		s    sched.Schedule
		goal sched.Goal
	}{
		"all-gather":     {ring.AllGather{N: 3}, sched.AllGather},
		"reduce-scatter": {ring.ReduceScatter{N: 3}, sched.ReduceScatter},
		"all-to-all":     {direct.AlltoAll{N: 3}, sched.AlltoAll},
		"gather":         {direct.Gather{N: 3, Root: 1}, sched.Gather(1)},
		"scatter":        {direct.Scatter{N: 3, Root: 1}, sched.Scatter(1)},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, sched.Check(sched.Split(c.s, 2), c.goal, 2, false))
			if c.goal != sched.AlltoAll {
				require.NoError(t, sched.Check(sched.Split(c.s, 2), c.goal, 2, true))
			}
		})
	}
}
