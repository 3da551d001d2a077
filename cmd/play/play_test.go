package play_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/play"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
)

// all calls f with a question for each algorithm, for some numbers of ranks and roots.
func all(t *testing.T, f func(t *testing.T, c book.Collective, q play.Question)) {
	for _, c := range book.Collectives {
		for _, a := range c.Algorithms {
			t.Run(c.Name+"/"+a.Name, func(t *testing.T) {
				for _, n := range []int{2, 3, 4, 6, 7, 12} {
					q := play.Question{Collective: c.Name, Algo: a.Name, Ranks: n, Bytes: 1 << 20, Net: "ndr"}
					if a.Nodes != nil {
						if q.Node = n / 2; n < 4 || n%2 != 0 {
							continue
						}
					}
					if c.Rooted {
						q.Root = sched.Rank(n - 2)
					}
					f(t, c, q)
				}
			})
		}
	}
}

// Every schedule is proved, its hops are those of sched.CostOf, a step's turn follows the turns that
// it needs, and the model comes to every step.
func TestAnswer(t *testing.T) {
	all(t, func(t *testing.T, c book.Collective, q play.Question) {
		p, err := q.Answer()
		require.NoError(t, err)
		require.NoError(t, p.Err)
		require.NoError(t, p.SimErr)
		cost, err := sched.CostOf(p.Table, 2)
		require.NoError(t, err)
		hops, turns := 0, 0
		for r, row := range p.Steps {
			require.Len(t, row, p.Table.Len(sched.Rank(r)))
			last := -1
			for _, s := range row {
				require.Greater(t, s.Turn, last)
				require.NotNil(t, s.Time)
				require.LessOrEqual(t, s.Time.End, p.Time)
				last = s.Turn
				hops, turns = max(hops, s.Hops), max(turns, s.Turn+1)
			}
		}
		require.Equal(t, cost.Hops, hops)
		require.Equal(t, turns, p.Turns)
	})
	p, err := play.Question{Collective: "allreduce", Algo: "ring", Ranks: 8, Bytes: 1 << 20, Net: "shm"}.Answer()
	require.NoError(t, err)
	require.Equal(t, 15, p.Turns, "a ring goes round twice")
}

// Check refutes a ring without any one of its steps, and the play has Check's words. Steps that are
// swapped twice are as before.
func TestEdits(t *testing.T) {
	q := play.Question{Collective: "allreduce", Algo: "ring", Ranks: 4, Bytes: 1 << 10, Net: "shm"}
	for r := range sched.Rank(4) {
		for i := range 7 {
			q.Edits = []play.Edit{{Rank: r, Step: i, With: -1}}
			p, err := q.Answer()
			require.NoError(t, err)
			require.Equal(t, 6, p.Table.Len(r))
			require.EqualError(t, p.Err, sched.Check(p.Table, sched.AllReduce, 2, false).Error())
			require.NotEmpty(t, p.Places())
		}
	}
	edits, err := play.ParseEdits("swap 2 1 5;swap 2 5 1")
	require.NoError(t, err)
	q.Edits = edits
	p, err := q.Answer()
	require.NoError(t, err)
	require.NoError(t, p.Err)
	q.Edits = edits[:1]
	p, err = q.Answer()
	require.NoError(t, err)
	require.ErrorContains(t, p.Err, "lacks the contribution of ranks [2]")
	require.Equal(t, sched.Fault{Rank: 0, Step: -1, Out: 0, Why: p.Places()[0].Why}, p.Places()[0])
	require.Equal(t, "swap 2 1 5", edits[0].String())
	for _, wrong := range []string{"drop 1", "swap 1 2", "drop 1 x", "jump 1 2", "drop -1 2"} {
		_, err := play.ParseEdits(wrong)
		require.Error(t, err, wrong)
	}
	for _, e := range []play.Edit{{Rank: 4, With: -1}, {Step: 7, With: -1}, {With: 7}} {
		q.Edits = []play.Edit{e}
		_, err := q.Answer()
		require.ErrorContains(t, err, "no such step")
	}
}

// Parse reads the table that String writes.
func TestTable(t *testing.T) {
	all(t, func(t *testing.T, c book.Collective, q play.Question) {
		p, err := q.Answer()
		require.NoError(t, err)
		read, err := play.Parse(p.Table.String())
		require.NoError(t, err)
		require.Equal(t, sched.Format(p.Table), sched.Format(read))
		require.Equal(t, p.Table.String(), read.String())
	})
}

func FuzzTable(f *testing.F) {
	f.Add("2 1 1 0\n,1,i0, 1,,,o0\n0,,,o0")
	f.Add("1 1 1 0\n,,i0,o0")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := play.Parse(text)
		if err != nil {
			return
		}
		again, err := play.Parse(table.String())
		require.NoError(t, err)
		require.Equal(t, table, again)
		// Ask answers JSON for any table.
		var answer map[string]any
		question := "collective=allreduce\nalgo=own\nranks=" + fmt.Sprint(table.Shape().Ranks) +
			"\nbytes=8\nnet=shm\nedits=\ntable=" + text
		require.NoError(t, json.Unmarshal(play.Ask(question), &answer))
	})
}

// Answers for the page are JSON with the content of a Play, and errors for wrong questions.
func TestAsk(t *testing.T) {
	var known struct {
		Collectives []struct {
			Name       string
			Rooted     bool
			Algorithms []struct {
				Name  string
				Nodes bool
			}
		}
		Nets []struct{ Name, Title string }
		Most int
	}
	require.NoError(t, json.Unmarshal(play.Ask(""), &known))
	require.Len(t, known.Collectives, len(book.Collectives))
	require.True(t, slices.ContainsFunc(known.Collectives[0].Algorithms, func(a struct {
		Name  string
		Nodes bool
	}) bool {
		return a.Name == "hier" && a.Nodes
	}))
	require.Equal(t, play.Most, known.Most)

	var answer struct {
		Goal   string
		Turns  int
		Steps  [][][]any
		Values [][]any
		Error  string
		Places []struct {
			Rank, Step int
			Why        string
		}
		Time  float64
		Wrong string
	}
	ask := "collective=allreduce\nalgo=ring\nranks=3\nnode=0\nroot=0\nbytes=1024\nnet=shm\nedits="
	require.NoError(t, json.Unmarshal(play.Ask(ask), &answer))
	require.Equal(t, "all-reduce", answer.Goal)
	require.Equal(t, 5, answer.Turns)
	require.Equal(t, []any{1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0}, answer.Steps[0][1][:8], "from 2 ⊕ In[1] → 1")
	require.Equal(t, "from 2 ⊕ In[1] → 1", answer.Steps[0][1][9])
	require.Equal(t, []any{1.0, "0000000000000005", "(0+2)[1]"}, answer.Values[int(answer.Steps[0][1][8].(float64))])
	require.Empty(t, answer.Error)
	require.Positive(t, answer.Time)

	require.NoError(t, json.Unmarshal(play.Ask(ask+"drop 1 0"), &answer))
	require.Contains(t, answer.Error, "rank 2 step 1")
	require.Equal(t, 2, answer.Places[0].Rank)
	require.NotEmpty(t, answer.Places[0].Why)
	require.Contains(t, answer.Error, answer.Places[0].Why)

	for wrong, why := range map[string]string{
		"collective=x":                                   `no collective "x"`,
		"collective=allreduce\nranks=65":                 "65 ranks: want 1 to 64",
		"collective=allreduce\nranks=4\nnet=shm\nalgo=x": `allreduce has no algorithm "x"`,
		"collective=allreduce\nranks=4\nnet=shm\nalgo=hier\nnode=4": "hier needs nodes: 4 ranks do not make two or more " +
			"nodes of 4",
		"collective=allreduce\nranks=4\nnet=wet": `no net "wet"`,
		"collective=reduce\nranks=4\nroot=4":     "root 4 is none of the 4 ranks",
		"ranks=x":                                `strconv.ParseInt: parsing "x": invalid syntax`,
		"speed=1":                                `question: no key "speed"`,
		"collective=allreduce\nranks=2\nnet=shm\nbytes=1\ntable=2 1 1 0\nx": "table: shape {Ranks:2 In:1 Out:1 Tmp:0} with " +
			"1 rows: want 1 to 64 ranks, each with a row",
	} {
		require.NoError(t, json.Unmarshal(play.Ask(wrong), &answer))
		require.Equal(t, why, answer.Wrong)
	}
}
