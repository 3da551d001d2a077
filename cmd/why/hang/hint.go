package hang

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/trace/history"
)

// A Hint is what a text tells of one process, which it names by its rank, its process number or both. Death, Raised and
// Stack are as in Rank.
type Hint struct {
	Rank   int // -1 if the text does not say it
	Pid    int // 0 if the text does not say it
	Death  string
	Raised string
	Stack  string
	Alone  bool // the process has called a send or recv outside of a batch
}

// Told is the error of texts that tell nothing of calls, but say what went wrong.
type Told struct {
	Text string
	Mute error // of texts that say nothing at all
}

func (t Told) Error() string { return t.Text }
func (t Told) Unwrap() error { return t.Mute }

// Hear adds hints to the ranks that they are about, and reports for each hint whether the job has its rank. A process
// number that two ranks have counts for neither.
func (j *Job) Hear(hints []Hint) []bool {
	heard := make([]bool, len(hints))
	pids := map[int]int{} // the rank, -1 if there are several
	for r := range j.Ranks {
		if p := j.Ranks[r].Pid; p > 0 {
			if _, ok := pids[p]; ok {
				r = -1
			}
			pids[p] = r
		}
	}
	for i, h := range hints {
		r, ok := pids[h.Pid]
		if !ok || r < 0 {
			r = h.Rank
		}
		if r < 0 || r >= len(j.Ranks) || j.Guessed && !ok {
			continue
		}
		to := &j.Ranks[r]
		if !ok && h.Pid > 0 && to.Pid > 0 && h.Death != "" { // a process of this rank in an earlier attempt
			continue
		}
		heard[i] = true
		for _, field := range []struct {
			to   *string
			text string
		}{{&to.Death, h.Death}, {&to.Raised, h.Raised}, {&to.Stack, h.Stack}} {
			if *field.to == "" {
				*field.to = field.text
			}
		}
		to.Alone = to.Alone || h.Alone
		if to.Pid == 0 {
			to.Pid = h.Pid
		}
	}
	return heard
}

// Standing says where ranks stand, a note for each of the first 8 places, for a job that does not know its ranks.
func Standing(hints []Hint) (notes []string) {
	by := map[string][]int{}
	var places []string
	for _, h := range hints {
		if h.Stack == "" || h.Rank < 0 || slices.Contains(by[h.Stack], h.Rank) {
			continue
		}
		if by[h.Stack] == nil {
			places = append(places, h.Stack)
		}
		by[h.Stack] = append(by[h.Stack], h.Rank)
	}
	const most = 8
	for _, p := range places[:min(most, len(places))] {
		slices.Sort(by[p])
		notes = append(notes, fmt.Sprintf("%s %s at %s", history.Ranks(by[p]), verb(by[p], "stands", "stand"), p))
	}
	return notes
}

// Learn takes from another job of the same ranks the processes of ranks, which ranks do not answer, and the errors of
// networks and GPUs. Guessed numbers of ranks teach nothing.
func (j *Job) Learn(o *Job) {
	if len(o.Ranks) != len(j.Ranks) || o.Guessed || j.Guessed || o.Own && j.Own {
		return
	}
	for r := range j.Ranks {
		j.Ranks[r].Mute = j.Ranks[r].Mute || o.Ranks[r].Mute
		if to, from := &j.Ranks[r], &o.Ranks[r]; to.Name == "" {
			to.Name = from.Name
			if to.Pid == 0 {
				to.Pid = from.Pid
			}
		}
	}
	for _, f := range o.Faults {
		if !slices.Contains(j.Faults, f) {
			j.Faults = append(j.Faults, f)
		}
	}
}
