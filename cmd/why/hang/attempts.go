package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

const (
	// clocks is how far the clocks of hosts may differ where their calls do not show the difference.
	clocks = time.Minute
	// another is how far apart two ranks' times of the same call are if they cannot wait in it together.
	another = time.Hour
)

// outdated finds ranks whose files are of another attempt of the job than the newest, or were written before others had
// gone on, and drops what these files say: it would accuse ranks of waits that are long over.
func (j *Job) outdated() map[int]bool {
	old := map[int]bool{}
	if j.Own { // its reader compares times
		return old
	}
	drop := func(r int, format string, args ...any) {
		old[r] = true
		k := &j.Ranks[r]
		k.Source, k.Calls, k.Made = "", nil, nil
		if len(old) <= 4 {
			j.Notes = append(j.Notes, fmt.Sprintf("the file of rank %d ", r)+fmt.Sprintf(format, args...)+
				": give the newest one")
		}
	}
	attempts := j.attempts()
	for _, r := range slices.Sorted(maps.Keys(attempts)) {
		drop(r, "is of another run, or an earlier attempt: its calls are %v before those of others",
			history.Spell(attempts[r]))
	}
	worlds := j.worlds()
	for _, r := range slices.Sorted(maps.Keys(worlds)) {
		drop(r, "is of another run, or an earlier attempt, of %d ranks", worlds[r])
	}
	for _, r := range j.builds() {
		drop(r, "is of another run: it was written by %s", j.Ranks[r].Build)
	}
	behind := j.behind()
	for _, r := range slices.Sorted(maps.Keys(behind)) {
		drop(r, "is older than that of others, which have ended %s since", behind[r].name())
	}
	early := j.early()
	for _, r := range slices.Sorted(maps.Keys(early)) {
		drop(r, "was written %v before the others began to wait", history.Spell(early[r]))
	}
	return old
}

// when is the time of a call that all its ranks share, about: that of its end, or else of its beginning.
func (c *Call) when() time.Time {
	if c.State == Ended && dated(c.Ends) {
		return c.Ends
	}
	return c.At
}

// A moment is when a collective was called, by the newest of the ranks that have a time of it.
type moment struct {
	newest time.Time
	ranks  int
}

func (j *Job) moments() map[spot]moment {
	all := map[spot]moment{}
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			if c := &j.Ranks[r].Calls[i]; !c.message() && dated(c.At) {
				m := all[spot{c.Group, c.Number}]
				if m.ranks++; c.when().After(m.newest) {
					m.newest = c.when()
				}
				all[spot{c.Group, c.Number}] = m
			}
		}
	}
	return all
}

// A lag is how long before the newest rank a rank has made the same calls.
type lag struct {
	rank   int
	before time.Duration          // the median
	open   map[spot]time.Duration // calls that it waits in, and how far apart clocks may be of ranks that are both in one
}

// lag finds that of a rank, and how little it may be of a rank of the same attempt. It reports whether the rank has a
// call that others have.
func (j *Job) lag(r int, moments map[spot]moment) (l lag, slack time.Duration, ok bool) {
	const most = 256
	l, slack = lag{r, 0, map[spot]time.Duration{}}, clocks
	var before []time.Duration
	apart := another
	calls := j.Ranks[r].Calls
	for i := len(calls) - 1; i >= 0 && len(before) < most; i-- {
		c := &calls[i]
		if c.message() || !dated(c.At) {
			continue
		}
		if !c.ended() {
			l.open[spot{c.Group, c.Number}] = cmp.Or(c.Limit, another)
		}
		if m := moments[spot{c.Group, c.Number}]; m.ranks > 1 {
			before = append(before, m.newest.Sub(c.when()))
		}
		if c.State != Ended || !dated(c.Ends) {
			slack = max(slack, clocks+c.Limit)
		} else { // an attempt that has hung in the same call has been there for its time-out
			apart = 0
		}
	}
	if len(before) == 0 {
		return l, slack, false
	}
	slices.Sort(before)
	l.before = before[len(before)/2]
	for at, limit := range l.open {
		l.open[at] = min(another, max(apart, limit))
	}
	return l, slack, true
}

// attempts finds ranks whose calls were made long before the same calls of the newest attempt, and how long. Of two
// ranks that wait in one call the clocks may differ more.
func (j *Job) attempts() map[int]time.Duration {
	var all []lag
	slack, moments := clocks, j.moments()
	for r := range j.Ranks {
		if l, s, ok := j.lag(r, moments); ok {
			all, slack = append(all, l), max(slack, s)
		}
	}
	slices.SortStableFunc(all, func(a, b lag) int { return cmp.Compare(a.before, b.before) })
	old, open := map[int]time.Duration{}, map[spot]bool{}
	for i, l := range all {
		together := false
		for at, apart := range l.open {
			together = together || open[at] && l.before < apart
		}
		if i > 0 && !together && (len(old) > 0 || l.before-all[i-1].before > slack) {
			old[l.rank] = l.before
			continue
		}
		for at := range l.open {
			open[at] = true
		}
	}
	return old
}

// worlds finds ranks whose default group has other ranks than that of the newest calls, and how many.
func (j *Job) worlds() map[int]int {
	of, newest, at := map[int]int{}, -1, time.Time{}
	for r := range j.Ranks {
		for _, g := range j.Ranks[r].Made {
			if j.Groups[g].Desc != "default_pg" {
				continue
			}
			of[r] = g
			if t := j.Ranks[r].newest(); newest < 0 || t.After(at) {
				newest, at = g, t
			}
		}
	}
	old := map[int]int{}
	for r, g := range of {
		if g != newest {
			old[r] = len(j.Groups[g].Ranks)
		}
	}
	return old
}

// builds finds ranks whose files other versions have written than those of most: no job mixes them.
func (j *Job) builds() (old []int) {
	ranks, usual := map[string]int{}, ""
	for r := range j.Ranks {
		if b := j.Ranks[r].Build; b != "" {
			if ranks[b]++; ranks[b] > ranks[usual] {
				usual = b
			}
		}
	}
	for r := range j.Ranks {
		if b := j.Ranks[r].Build; b != "" && b != usual && ranks[b] < ranks[usual] {
			old = append(old, r)
		}
	}
	return old
}

// binding are the functions that no rank ends before all have called them.
var binding = []string{"allreduce", "allreducecoalesced", "allreducebarrier", "barrier", "allgather", "reducescatter"}

// behind finds ranks in no call whose files lack a collective that another rank's file shows as ended: they have called
// it since. The ring of a file forgets the oldest calls first.
func (j *Job) behind() map[int]*Call {
	furthest := map[int]*Call{} // by group
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			if f := furthest[c.Group]; !c.message() && c.State == Ended && dated(c.Ends) && (f == nil || c.Number > f.Number) &&
				slices.Contains(binding, family(c)) {
				furthest[c.Group] = c
			}
		}
	}
	old := map[int]*Call{}
	for r := range j.Ranks {
		last, waits := map[int]int64{}, false
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			if waits = waits || !c.ended(); !c.message() {
				last[c.Group] = max(last[c.Group], c.Number)
			}
		}
		for g, n := range last {
			if f := furthest[g]; !waits && f != nil && n < f.Number && slices.Contains(j.Groups[g].Ranks, r) {
				old[r] = f
			}
		}
	}
	return old
}

// early finds ranks whose files have times of before most others began to wait, and how long before. Times of most
// files that are before the newest call in them are none.
func (j *Job) early() map[int]time.Duration {
	var since []time.Time
	files, lost := 0, 0
	for r := range j.Ranks {
		k := &j.Ranks[r]
		if i := slices.IndexFunc(k.Calls, func(c Call) bool { return !c.ended() && dated(c.At) }); i >= 0 {
			since = append(since, k.Calls[i].At)
		}
		if k.By == FileTime && !k.Taken.IsZero() && len(k.Calls) > 0 {
			if files++; k.Taken.Before(k.newest().Add(-time.Second)) {
				lost++
			}
		}
	}
	old := map[int]time.Duration{}
	if len(since) == 0 || files > 1 && 2*lost > files {
		return old
	}
	slices.SortFunc(since, time.Time.Compare)
	waited := since[len(since)/2]
	for r := range j.Ranks {
		k := &j.Ranks[r]
		if len(k.Calls) > 0 && k.Source != "" && !k.Taken.IsZero() && k.Taken.Before(waited.Add(-2*time.Second)) {
			old[r] = waited.Sub(k.Taken)
		}
	}
	return old
}
