package why

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/test/hangs"
)

// A program is the calls of one rank, in order. The host goes on after a call unless the step waits.
type program []step

type step struct {
	group int
	kind  string
	size  int64
	peer  int // of a message; -1 for a collective
	send  bool
	waits bool // before it the host waits for the end of all earlier calls
	where string
}

// A run carries out programs of ranks as PyTorch on NCCL does: each group has a stream of its own on each rank, a call
// begins when those before it on its stream have ended, and ends when all members have begun it.
type run struct {
	groups   [][]int
	programs []program
	stops    map[int]int  // by rank: how many steps its host makes before it stands still
	spins    map[int]int  // by rank: the call before which its GPU stands still
	gone     map[int]bool // ranks that leave no file
	next     []int        // by rank: the next step of its host
	calls    [][]hang.Call
	numbers  []map[int]int64
	clock    []time.Time
	r        *rand.Rand
}

func newRun(seed uint64, ranks int, groups ...[]int) *run {
	all := make([]int, ranks)
	for i := range all {
		all[i] = i
	}
	w := &run{
		groups: append([][]int{all}, groups...), programs: make([]program, ranks), stops: map[int]int{}, spins: map[int]int{},
		gone: map[int]bool{},
		next: make([]int, ranks), calls: make([][]hang.Call, ranks), r: rand.New(rand.NewPCG(seed, 29)),
	}
	for range ranks {
		w.numbers = append(w.numbers, map[int]int64{})
		w.clock = append(w.clock, time.Unix(1_700_000_000, w.r.Int64N(50_000_000)))
	}
	return w
}

// all gives ranks the same steps.
func (w *run) all(ranks []int, steps ...step) {
	for _, r := range ranks {
		w.programs[r] = append(w.programs[r], steps...)
	}
}

// job carries out the programs until no rank can go on, and returns the job of the files that they leave.
func (w *run) job() *hang.Job {
	for moved := true; moved; {
		moved = false
		for r := range w.programs {
			moved = w.host(r) || moved
		}
		for r := range w.programs {
			moved = w.gpu(r) || moved
		}
	}
	j := &hang.Job{}
	for i, ranks := range w.groups {
		j.Groups = append(j.Groups, hang.Group{Name: fmt.Sprint(i),
			Desc: map[bool]string{true: "default_pg", false: "mesh"}[i == 0], Ranks: ranks})
	}
	for r := range w.programs {
		to := j.Rank(r)
		if w.gone[r] {
			continue
		}
		to.Source = fmt.Sprintf("nccl_trace_rank_%d", r)
		to.Calls = w.calls[r]
		if n := len(to.Calls); n > 40 { // the buffer is a ring
			to.Calls = to.Calls[n-40:]
		}
		for i, ranks := range w.groups {
			for _, m := range ranks {
				if m == r {
					to.Made = append(to.Made, i)
				}
			}
		}
	}
	return j
}

// host makes the next call of a rank, if it can.
func (w *run) host(r int) bool {
	i := w.next[r]
	if stop, ok := w.stops[r]; i == len(w.programs[r]) || ok && i >= stop {
		return false
	}
	s := w.programs[r][i]
	if s.waits {
		for _, c := range w.calls[r] {
			if c.State != hang.Ended {
				return false
			}
		}
	}
	w.next[r]++
	if s.kind == "" { // a step that only waits
		return true
	}
	w.clock[r] = w.clock[r].Add(time.Duration(1+w.r.IntN(1000)) * time.Microsecond)
	c := hang.Call{
		Group: s.group, Kind: s.kind, Peer: s.peer, Send: s.send, At: w.clock[r], Limit: 10 * time.Minute, Where: s.where,
		In: fmt.Sprintf("Float[%d]", s.size), Out: fmt.Sprintf("Float[%d]", s.size),
		Sizes: hang.Sizes{In: s.size, Out: s.size},
	}
	if s.peer < 0 {
		w.numbers[r][s.group]++
		c.Number = w.numbers[r][s.group]
	}
	w.calls[r] = append(w.calls[r], c)
	return true
}

// gpu begins and ends calls of a rank.
func (w *run) gpu(r int) (moved bool) {
	busy := map[int]bool{}
	for i := range w.calls[r] {
		c := &w.calls[r][i]
		if at, ok := w.spins[r]; ok && i >= at {
			return moved
		}
		if c.State == hang.Ended || busy[c.Group] {
			continue
		}
		busy[c.Group] = true
		if c.State == hang.Called {
			c.State, moved = hang.Begun, true
		}
		if w.meets(r, c) {
			c.State, c.Ends, moved = hang.Ended, c.At.Add(time.Millisecond), true
			busy[c.Group] = false
		}
	}
	return moved
}

// meets reports whether a call that rank r has begun can end: all members have begun or ended it alike. It ends the
// other end of a message.
func (w *run) meets(r int, c *hang.Call) bool {
	if c.Peer >= 0 {
		for i := range w.calls[c.Peer] {
			o := &w.calls[c.Peer][i]
			if o.Peer == r && o.Send != c.Send && o.Group == c.Group && o.State == hang.Begun {
				o.State, o.Ends = hang.Ended, o.At.Add(time.Millisecond)
				return true
			}
		}
		return false
	}
	for _, m := range w.groups[c.Group] {
		met := false
		for i := range w.calls[m] {
			o := &w.calls[m][i]
			if o.Peer < 0 && o.Group == c.Group && o.Number == c.Number {
				met = o.State != hang.Called && o.Kind == c.Kind && o.In == c.In
			}
		}
		if !met {
			return false
		}
	}
	return true
}

func collective(group int, kind string, size int64, where string) step {
	return step{group: group, kind: kind, size: size, peer: -1, where: where}
}

// wait is a host that waits for its GPU, as loss.item() does.
var wait = step{waits: true}

// training is some steps of a data-parallel program of all ranks.
func training(steps int) (p program) {
	for i := range steps {
		for k := range 3 {
			p = append(p, collective(0, "all_reduce", int64(1000*(k+1)), fmt.Sprintf("train.py:%d in step", 40+k)))
		}
		p = append(p, collective(0, "_all_gather_base", 64, "train.py:50 in gather"), wait)
		if i%4 == 3 {
			p = append(p, collective(0, "broadcast", 8, "train.py:60 in sync"), wait)
		}
	}
	return p
}

func ranksOf(n int) (all []int) {
	for r := range n {
		all = append(all, r)
	}
	return all
}

// Ranks of every number, with one fault at a random place: the answer has the right reason and the right ranks.
func TestScenarios(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 8, 16, 64} {
		for seed := range seeds(8) {
			r := rand.New(rand.NewPCG(seed, uint64(ranks)))
			odd := r.IntN(ranks)
			p := training(6)
			at := r.IntN(len(p))
			for p[at].waits {
				at = r.IntN(len(p))
			}
			begin := func() *run {
				w := newRun(seed, ranks)
				w.all(ranksOf(ranks), p...)
				return w
			}
			check := func(name string, w *run, reason hang.Reason, culprits ...int) hang.Answer {
				a := hang.Judge(w.job())
				require.Equal(t, reason, a.Reason, "%s, %d ranks, seed %d, at %d: %s", name, ranks, seed, at, a.Sentence)
				require.Equal(t, culprits, a.Culprits, "%s, %d ranks, seed %d, at %d: %s", name, ranks, seed, at, a.Sentence)
				return a
			}
			w := begin()
			check("well", w, hang.Nothing)

			w = begin()
			w.stops[odd] = at
			check("stands still", w, hang.Absent, odd)

			w = begin()
			w.stops[odd], w.gone[odd] = at, true
			check("killed: its file may not have been copied", w, hang.Unknown)

			w = begin()
			w.programs[odd] = append(append(program(nil), p[:at]...), p[at+1:]...)
			last := at >= len(p)-2 // nothing shows whether the rank left out the last call or has not come to it
			switch {
			case last:
				check("leaves the last call out", w, hang.Absent, odd)
			case ranks > 2:
				check("leaves a call out", w, hang.Different, odd)
			}

			w = begin()
			w.programs[odd] = append(program(nil), p...)
			w.programs[odd][at].kind = "reduce"
			if ranks > 2 {
				check("another call", w, hang.Different, odd)
			}

			w = begin()
			w.programs[odd] = append(program(nil), p...)
			w.programs[odd][at].size++
			if ranks > 2 {
				check("another size", w, hang.Shapes, odd)
			}
		}
	}
}

// In a grid of groups a rank that stands still holds up its row, and through it all others: it alone is to blame.
func TestGrids(t *testing.T) {
	for _, shape := range [][2]int{{2, 2}, {2, 4}, {4, 4}, {8, 8}} {
		rows, columns := shape[0], shape[1]
		ranks := rows * columns
		for seed := range seeds(8) {
			r := rand.New(rand.NewPCG(seed, uint64(ranks)))
			odd := r.IntN(ranks)
			begin := func() *run {
				w := newRun(seed, ranks, hangs.Grid(rows, columns)...)
				for q := range ranks {
					row, column := 1+q/columns, 1+rows+q%columns
					for range 8 {
						w.programs[q] = append(w.programs[q], collective(row, "all_reduce", 100, "model.py:10 in forward"), wait,
							collective(column, "all_reduce", 1000, "model.py:20 in backward"), wait)
					}
				}
				return w
			}
			w := begin()
			w.stops[odd] = r.IntN(32)
			a := hang.Judge(w.job())
			require.Equal(t, hang.Absent, a.Reason, "%d x %d, seed %d: %s", rows, columns, seed, a.Sentence)
			require.Equal(t, []int{odd}, a.Culprits, a.Sentence)

			w = begin()
			w.spins[odd] = r.IntN(16)
			a = hang.Judge(w.job())
			require.Equal(t, hang.Blocked, a.Reason, "%d x %d, seed %d: %s", rows, columns, seed, a.Sentence)
			require.Equal(t, []int{odd}, a.Culprits, a.Sentence)
		}
	}
}

// Two groups have the same ranks, and one rank calls them in the other order.
func TestOrder(t *testing.T) {
	for _, ranks := range []int{2, 3, 8} {
		for seed := range seeds(8) {
			r := rand.New(rand.NewPCG(seed, uint64(ranks)))
			odd := r.IntN(ranks)
			w := newRun(seed, ranks, ranksOf(ranks))
			for q := range ranks {
				for range 4 {
					w.programs[q] = append(w.programs[q], collective(0, "all_reduce", 100, "a.py:1 in f"), wait,
						collective(1, "all_reduce", 100, "a.py:2 in f"), wait)
				}
			}
			at := 4 * r.IntN(4)
			p := w.programs[odd]
			p[at], p[at+2] = p[at+2], p[at]
			a := hang.Judge(w.job())
			require.Equal(t, hang.Order, a.Reason, "%d ranks, seed %d: %s", ranks, seed, a.Sentence)
			require.Contains(t, a.Culprits, odd, a.Sentence)
		}
	}
}

// A mesh is groups of so many ranks beside the default one: of an order of both only members of both know, and which of
// two is right say their own earlier calls.
func TestOrderInMesh(t *testing.T) {
	for _, shape := range [][2]int{{4, 2}, {8, 2}, {8, 4}, {6, 3}} {
		ranks, part := shape[0], shape[1]
		var groups [][]int
		for first := 0; first < ranks; first += part {
			groups = append(groups, ranksOf(ranks)[first:first+part])
		}
		for seed := range seeds(6) {
			r := rand.New(rand.NewPCG(seed, uint64(ranks)))
			odd := r.IntN(ranks)
			mates := groups[odd/part]
			for _, name := range []string{"another order", "left out", "the first step", "a new call"} {
				steps := 4
				if name == "the first step" {
					steps = 0
				}
				w := newRun(seed, ranks, groups...)
				for q := range ranks {
					own := collective(1+q/part, "all_reduce", 100, "model.py:10 in forward")
					all := collective(0, "all_reduce", 1000, "model.py:20 in backward")
					for range steps {
						w.programs[q] = append(w.programs[q], own, wait, own, wait, all, wait)
					}
					last := program{own, wait, own, wait, all, wait, own, wait}
					switch {
					case name == "a new call" && q != odd: // which the odd one leaves out
						last = append(program{collective(0, "broadcast", 8, "log.py:3 in log"), wait}, last...)
					case q != odd || name == "a new call":
					case name == "left out":
						last = last[2:]
					default:
						last = program{all, wait, own, wait, own, wait}
					}
					w.programs[q] = append(w.programs[q], last...)
				}
				a := hang.Judge(w.job())
				says := fmt.Sprintf("%s, %d ranks in parts of %d, seed %d, odd %d: %s", name, ranks, part, seed, odd, a.Sentence)
				require.Equal(t, hang.Order, a.Reason, says)
				switch {
				case part == 2 && (name == "the first step" || name == "a new call"):
					require.Equal(t, mates, a.Culprits, says)
					require.True(t, a.Either, says)
				default:
					require.Equal(t, []int{odd}, a.Culprits, says)
					require.False(t, a.Either, says)
				}
			}
		}
	}
}

// Ranks in a row hand messages on: one that stands still holds up the rest.
func TestPipelines(t *testing.T) {
	for _, ranks := range []int{2, 4, 16} {
		for seed := range seeds(8) {
			r := rand.New(rand.NewPCG(seed, uint64(ranks)))
			odd := r.IntN(ranks)
			w := newRun(seed, ranks)
			for q := range ranks {
				for range 6 {
					if q > 0 {
						w.programs[q] = append(w.programs[q], step{kind: "recv", size: 64, peer: q - 1, where: "pipe.py:5 in stage"},
							wait)
					}
					if q < ranks-1 {
						w.programs[q] = append(w.programs[q], step{kind: "send", size: 64, peer: q + 1, send: true,
							where: "pipe.py:9 in stage"}, wait)
					}
				}
			}
			w.stops[odd] = r.IntN(6)
			a := hang.Judge(w.job())
			require.Equal(t, hang.Absent, a.Reason, "%d ranks, seed %d, odd %d: %s", ranks, seed, odd, a.Sentence)
			require.Equal(t, []int{odd}, a.Culprits, a.Sentence)
		}
	}
}

// Missing knowledge accuses nobody.
func TestUnknown(t *testing.T) {
	w := newRun(1, 8)
	w.all(ranksOf(8), training(3)...)
	w.stops[5] = 4
	for r := range 8 {
		w.gone[r] = r != 2
	}
	a := hang.Judge(w.job())
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)
	require.Contains(t, a.Sentence, "I cannot say, because the files of ranks 0, 1, 3, 4, 5, 6 and 7 are missing")

	w = newRun(1, 4)
	w.all(ranksOf(4), training(3)...)
	j := w.job()
	for r := range j.Ranks { // all are in the last call, and it does not end
		c := &j.Ranks[r].Calls[len(j.Ranks[r].Calls)-1]
		c.State, c.Ends = hang.Begun, time.Time{}
	}
	a = hang.Judge(j)
	require.Equal(t, hang.Stuck, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)

	require.Equal(t, hang.Nothing, hang.Judge(&hang.Job{}).Reason)
}

// One rank has not made a group; a log tells of a rank's end.
func TestMadeAndDied(t *testing.T) {
	w := newRun(1, 4, []int{1, 2, 3})
	w.all([]int{1, 2, 3}, collective(1, "all_reduce", 8, "a.py:1 in f"))
	w.stops[3] = 0
	j := w.job()
	j.Ranks[3].Made = []int{0}
	a := hang.Judge(j)
	require.Equal(t, hang.NotMade, a.Reason, a.Sentence)
	require.Equal(t, "rank 3 never made group 1 (mesh); ranks 1 and 2 wait in all_reduce #1 of group 1 (mesh) (a.py:1 "+
		"in f)", a.Sentence)

	w = newRun(1, 4)
	w.all(ranksOf(4), training(2)...)
	w.stops[2], w.gone[2] = 3, true
	j = w.job()
	j.Ranks[2].Death = "was killed by signal 9"
	a = hang.Judge(j)
	require.Equal(t, hang.Died, a.Reason)
	require.Equal(t, []int{2}, a.Culprits)
	require.Contains(t, a.Sentence, "rank 2 was killed by signal 9; ranks 0, 1 and 3 wait in ")

	w = newRun(1, 4)
	w.all(ranksOf(4), training(1)...)
	j = w.job() // nobody waits
	j.Ranks[2].Death = "was killed by signal 9"
	a = hang.Judge(j)
	require.Equal(t, hang.Died, a.Reason)
	require.Equal(t, "rank 2 was killed by signal 9", a.Sentence)
	require.NotEmpty(t, a.Remedy)
}

// States have names.
func TestStates(t *testing.T) {
	for state, want := range map[hang.State]string{hang.Called: "called", hang.Begun: "begun", hang.Ended: "ended"} {
		require.Equal(t, want, state.String())
	}
}

// NCCL counts calls from 0. The first call of a group is judged like any other.
func TestCountedFromNought(t *testing.T) {
	for _, odd := range []int{0, 3} {
		for _, first := range []program{
			{collective(0, "all_reduce", 999, "train.py:41 in step")},             // another size
			{collective(0, "broadcast", 1000, "train.py:60 in sync"), wait},       // another call
			{step{waits: true}, collective(0, "all_reduce", 1000, "late.py:1 x")}, // none
		} {
			w := newRun(1, 4)
			for r := range 4 {
				if r == odd {
					w.programs[r] = first
				} else {
					w.programs[r] = program{collective(0, "all_reduce", 1000, "train.py:41 in step"), wait}
				}
			}
			if first[0] == wait {
				w.stops[odd] = 1
			}
			j := w.job()
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
