package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// A Finding is why the ranks of one communicator hang, or have failed.
type Finding struct {
	Comm     string
	Size     int
	Sentence string // the verdict
	Culprits []int  // ascending; none if nobody is to blame
	Records  []Record
}

// Why makes one Finding for each communicator of the Records of its ranks. A rank without a Record is
// taken for Silent. Of several Records of one rank the latest counts.
func Why(records []Record) []Finding {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Rank, b.Rank), b.Time.Compare(a.Time))
	})
	records = slices.CompactFunc(records, func(a, b Record) bool { return a.Comm == b.Comm && a.Rank == b.Rank })
	var found []Finding
	for len(records) > 0 {
		n := slices.IndexFunc(records, func(r Record) bool { return r.Comm != records[0].Comm })
		if n < 0 {
			n = len(records)
		}
		f := Finding{Comm: records[0].Comm, Records: records[:n]}
		for _, r := range f.Records {
			f.Size = max(f.Size, r.Size)
		}
		f.judge()
		found = append(found, f)
		records = records[n:]
	}
	follows(found)
	return found
}

// follows puts the communicators that have failed first, in the order of their failures. A process that ends because of
// one failure is missed in its other communicators, which then blame nobody.
func follows(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		s, t := a.failed(), b.failed()
		switch {
		case s.IsZero() && t.IsZero():
			return 0
		case s.IsZero():
			return 1
		case t.IsZero():
			return -1
		}
		return s.Compare(t)
	})
	for i := range found {
		f := &found[i]
		if f.failed().IsZero() || !ends(f.Sentence) {
			continue
		}
		for _, first := range found[:i] {
			if !first.failed().IsZero() && first.shares(f) {
				f.Culprits = nil
				f.Sentence += fmt.Sprintf("; communicator %s of the same processes had failed before", first.Comm)
				break
			}
		}
	}
}

// ends reports whether the end of a process explains a failure.
func ends(sentence string) bool {
	return strings.Contains(sentence, " died: ") || strings.Contains(sentence, "has closed the communicator")
}

// failed is the time of the first failure, zero if there is none.
func (f *Finding) failed() (at time.Time) {
	for _, r := range f.Records {
		if r.Cause != "" && (at.IsZero() || r.Time.Before(at)) {
			at = r.Time
		}
	}
	return at
}

// shares reports whether a process has a rank of both communicators.
func (f *Finding) shares(other *Finding) bool {
	return slices.ContainsFunc(f.Records, func(a Record) bool {
		return slices.ContainsFunc(other.Records, func(b Record) bool { return a.Host == b.Host && a.Pid == b.Pid })
	})
}

// judge fills in the verdict: the one that ranks found when the communicator failed, or else calls that
// differ, or else the ranks that hold up the others.
func (f *Finding) judge() {
	if f.voted() || f.differ() {
		return
	}
	states := make([]judge.State, f.Size)
	for q := range states {
		states[q] = judge.State{Rank: q, Peer: -1}
	}
	var waited time.Duration
	for _, r := range f.Records {
		states[r.Rank] = r.State
		waited = max(waited, r.Waited)
	}
	v := judge.Waits(states)
	f.Culprits = v.Culprits
	f.Sentence = f.sentence(&v, waited)
}

// voted takes the verdict of the ranks whose communicator has failed, see judge.Elect, and reports whether any has. The
// sentence is that of the first Record that says the same, else of the first.
func (f *Finding) voted() bool {
	var votes []judge.Vote
	var failed []Record
	for _, r := range f.Records {
		if r.Cause != "" {
			votes = append(votes, judge.Vote{Culprits: r.Culprits, Candidates: r.Candidates, Path: r.Path})
			failed = append(failed, r)
		}
	}
	if len(failed) == 0 {
		return false
	}
	var candidates []int
	f.Culprits, candidates = judge.Elect(votes)
	first := max(0, slices.IndexFunc(failed, func(r Record) bool { return slices.Equal(r.Culprits, f.Culprits) }))
	f.Sentence = failed[first].Cause
	if len(f.Culprits) > 0 && !slices.Equal(failed[first].Culprits, f.Culprits) {
		f.Sentence += fmt.Sprintf("; what the ranks say together is the fault of %s", Ranks(f.Culprits))
	}
	if len(candidates) > 0 && len(failed[first].Candidates) == 0 { // else it says so
		f.Sentence += fmt.Sprintf("; who is to blame cannot be known: %s, or the network between them", Ranks(candidates))
	}
	return true
}

// sentence says who holds up whom, and how long ranks have waited.
func (f *Finding) sentence(v *judge.Verdict, waited time.Duration) string {
	what := "a Send or Recv"
	if v.Number > 0 {
		what = fmt.Sprintf("%s #%d", f.call(v.Number), v.Number)
	}
	wait := fmt.Sprintf("%s waits in %s", Ranks(v.Waiting), what)
	if len(v.Waiting) > 1 {
		wait = fmt.Sprintf("%s wait in %s", Ranks(v.Waiting), what)
	}
	if waited > 0 {
		wait += fmt.Sprintf(" since %v", Spell(waited))
	}
	switch {
	case len(v.Waiting) == 0 && v.Reason == judge.Silent:
		return fmt.Sprintf("%s left no file, and no other rank waits", Ranks(v.Culprits))
	case len(v.Waiting) == 0:
		return "no rank waits"
	case v.Reason == judge.Silent:
		return fmt.Sprintf("%s left no file: dead, or stopped? %s", Ranks(v.Culprits), wait)
	case v.Reason == judge.Absent && v.Number > 0:
		return fmt.Sprintf("%s never entered %s; %s", Ranks(v.Culprits), what, wait)
	case v.Reason == judge.Absent:
		return fmt.Sprintf("%s did not make the other end of a Send or Recv; %s", Ranks(v.Culprits), wait)
	case v.Reason == judge.Link:
		return fmt.Sprintf("nothing moves between %s; %s", Ranks(v.Culprits), wait)
	case v.Reason == judge.Circle:
		return fmt.Sprintf("%s wait for each other; %s", Ranks(v.Culprits), wait)
	}
	return wait + ", and nobody says for whom: the files of a failure say more than those of a signal"
}

// call is the text of a collective in the first Record that has it.
func (f *Finding) call(number uint64) string {
	for _, r := range f.Records {
		for _, c := range r.Calls {
			if c.Number == number {
				return c.What
			}
		}
	}
	return "collective"
}

// differ looks for the first collective that ranks call differently.
func (f *Finding) differ() bool {
	calls := map[uint64]map[string][]int{}
	first := uint64(0)
	for _, r := range f.Records {
		for _, c := range r.Calls {
			if c.Number == 0 {
				continue
			}
			if calls[c.Number] == nil {
				calls[c.Number] = map[string][]int{}
			}
			calls[c.Number][c.What] = append(calls[c.Number][c.What], r.Rank)
			if len(calls[c.Number]) > 1 && (first == 0 || c.Number < first) {
				first = c.Number
			}
		}
	}
	if first == 0 {
		return false
	}
	type side struct {
		what  string
		ranks []int
	}
	var sides []side
	for what, ranks := range calls[first] {
		sides = append(sides, side{what, ranks})
	}
	slices.SortFunc(sides, func(a, b side) int {
		return cmp.Or(cmp.Compare(len(b.ranks), len(a.ranks)), cmp.Compare(a.ranks[0], b.ranks[0]))
	})
	if len(sides[0].ranks) == len(sides[1].ranks) {
		f.Culprits = slices.Concat(sides[0].ranks, sides[1].ranks)
	} else {
		for _, s := range sides[1:] {
			f.Culprits = append(f.Culprits, s.ranks...)
		}
	}
	slices.Sort(f.Culprits)
	f.Sentence = fmt.Sprintf("as collective #%d %s called %s, and %s %s", first, Ranks(sides[0].ranks), sides[0].what,
		Ranks(sides[1].ranks), sides[1].what)
	return true
}

// Print writes the verdict and a table of the ranks.
func (f *Finding) Print(w io.Writer) error {
	fmt.Fprintf(w, "communicator %s of %d ranks: %s\n", f.Comm, f.Size, f.Sentence)
	if len(f.Culprits) > 0 {
		fmt.Fprintf(w, "to blame: %s\n", Ranks(f.Culprits))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nrank\thost\tpid\tis\tfor\tcalls\tlast call")
	next := 0
	for _, r := range f.Records {
		if r.Rank > next {
			fmt.Fprintf(t, "%s\t?\t?\tleft no file\t\t\t\n", ranks(next, r.Rank-1))
		}
		next = r.Rank + 1
		last := ""
		if n := len(r.Calls); n > 0 {
			last = r.Calls[n-1].What
			if number := r.Calls[n-1].Number; number > 0 {
				last = fmt.Sprintf("#%d %s", number, last)
			}
		}
		since := ""
		if r.Waited > 0 {
			since = Spell(r.Waited).String()
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\t%d\t%s\n", r.Rank, r.Host, r.Pid, r.State.String(), since, r.Total, last)
	}
	if next < f.Size {
		fmt.Fprintf(t, "%s\t?\t?\tleft no file\t\t\t\n", ranks(next, f.Size-1))
	}
	return t.Flush()
}

func ranks(a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d-%d", a, b)
}
