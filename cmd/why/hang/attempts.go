package hang

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	for _, find := range []func() map[int]string{j.attempts, j.folders, j.worlds, j.builds, j.behind, j.early} {
		why := find()
		for _, r := range slices.Sorted(maps.Keys(why)) {
			old[r] = true
			k := &j.Ranks[r]
			k.Source, k.Calls, k.Made = "", nil, nil
			if len(old) <= 4 {
				j.Notes = append(j.Notes, fmt.Sprintf("the file of rank %d %s: give the newest one", r, why[r]))
			}
		}
	}
	return old
}

// when is the time of a call that all its ranks share, about: that of its end, or else of its beginning.
func (c *Call) when() time.Time {
	if c.over() {
		return c.Ends
	}
	return c.At
}

// A moment is when a collective was called, by the newest of the ranks that have a time of it.
type moment struct {
	newest time.Time
	ranks  int
}

// A sight is a collective as ranks have noted it: its ends only, or its beginnings too.
type sight struct {
	spot
	ends bool
}

func (j *Job) moments() map[sight]moment {
	all := map[sight]moment{}
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			if c.message() || !dated(c.At) {
				continue
			}
			for _, ends := range []bool{false, true} {
				at := sight{spot{c.Group, c.Number}, ends}
				m := all[at]
				if ends && !c.over() {
					continue
				}
				if m.ranks++; c.when().After(m.newest) {
					m.newest = c.when()
				}
				all[at] = m
			}
		}
	}
	return all
}

// over reports whether a call has ended at a known time.
func (c *Call) over() bool { return c.State == Ended && dated(c.Ends) }

// A lag is how long before the newest rank a rank has made the same calls.
type lag struct {
	rank   int
	before time.Duration          // the median
	slack  time.Duration          // how much later than another rank of its attempt it may be
	open   map[spot]time.Duration // calls that it waits in, and how far apart clocks may be of ranks that are both in one
}

// lag finds that of a rank, and reports whether the rank has a call that others have. All ranks end a call at about one
// time, so ends alone count where others have ends of the same calls; but ranks begin a call up to its time-out apart.
func (j *Job) lag(r int, moments map[sight]moment) (l lag, ok bool) {
	const most = 256
	l = lag{r, 0, clocks, map[spot]time.Duration{}}
	var before, ends []time.Duration
	apart := another
	calls := j.Ranks[r].Calls
	for i := len(calls) - 1; i >= 0 && len(before) < most; i-- {
		c := &calls[i]
		if c.message() || !dated(c.At) {
			continue
		}
		at := spot{c.Group, c.Number}
		if !c.ended() {
			l.open[at] = cmp.Or(c.Limit, another)
		}
		if m := moments[sight{at, false}]; m.ranks > 1 {
			before = append(before, m.newest.Sub(c.when()))
		}
		if m := moments[sight{at, true}]; c.over() && m.ranks > 1 {
			ends = append(ends, m.newest.Sub(c.Ends))
		}
		if c.over() { // an attempt that has hung in the same call has been there for its time-out
			apart = 0
		} else {
			l.slack = max(l.slack, clocks+c.Limit)
		}
	}
	if len(ends) > 0 {
		before, l.slack = ends, clocks
	}
	if len(before) == 0 {
		return l, false
	}
	slices.Sort(before)
	l.before = before[len(before)/2]
	for at, limit := range l.open {
		l.open[at] = min(another, max(apart, limit))
	}
	return l, true
}

// attempts finds ranks whose calls were made long before the same calls of the newest attempt, and says how long. Of
// two ranks that wait in one call the clocks may differ more.
func (j *Job) attempts() map[int]string {
	var all []lag
	moments := j.moments()
	for r := range j.Ranks {
		if l, ok := j.lag(r, moments); ok {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b lag) int { return cmp.Compare(a.before, b.before) })
	old, open := map[int]string{}, map[spot]bool{}
	last := time.Duration(0) // of the newest attempt
	for i, l := range all {
		together := false
		for at, apart := range l.open {
			together = together || open[at] && l.before < apart
		}
		if i > 0 && !together && l.before-last > l.slack {
			old[l.rank] = fmt.Sprintf("is of another run, or an earlier attempt: its calls are %v before those of others",
				history.Spell(l.before))
			continue
		}
		last = l.before
		for at := range l.open {
			open[at] = true
		}
	}
	return old
}

// attempt matches the folders that torchrun makes for its attempts.
var attempt = regexp.MustCompile(`(?:^|/)attempt_(\d{1,6})(?:$|[/.])`)

// AttemptOf is the number of the attempt in whose folder of torchrun a file lies, -1 if it lies in none.
func AttemptOf(file string) int {
	all := attempt.FindAllStringSubmatch(filepath.ToSlash(file), -1)
	if len(all) == 0 {
		return -1
	}
	n, _ := strconv.Atoi(all[len(all)-1][1])
	return n
}

// folders finds ranks whose files lie in the folder of another attempt than the newest call, and have no call as new as
// the oldest there. The name alone proves nothing, as agents of torchrun count attempts each for itself.
func (j *Job) folders() map[int]string {
	numbers := make([]int, len(j.Ranks))
	newest, first, last := -1, time.Time{}, time.Time{}
	for r := range j.Ranks {
		k := &j.Ranks[r]
		numbers[r] = AttemptOf(k.Source)
		if t := k.newest(); numbers[r] >= 0 && t.After(last) {
			newest, last = numbers[r], t
		}
	}
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			at := j.Ranks[r].Calls[i].At
			if numbers[r] == newest && dated(at) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	old := map[int]string{}
	for r, n := range numbers {
		if n >= 0 && n != newest && j.Ranks[r].newest().Before(first) {
			old[r] = fmt.Sprintf("is of an earlier attempt: it lies in attempt_%d, and its calls are before those of attempt_%d",
				n, newest)
		}
	}
	return old
}

// worlds finds ranks whose default group has other ranks than that of the newest calls, and says how many.
func (j *Job) worlds() map[int]string {
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
	old := map[int]string{}
	for r, g := range of {
		if g != newest {
			old[r] = fmt.Sprintf("is of another run, or an earlier attempt, of %d ranks", len(j.Groups[g].Ranks))
		}
	}
	return old
}

// builds finds ranks whose files other versions have written than those of most: no job mixes them.
func (j *Job) builds() map[int]string {
	old, ranks, usual := map[int]string{}, map[string]int{}, ""
	for r := range j.Ranks {
		if b := j.Ranks[r].Build; b != "" {
			if ranks[b]++; ranks[b] > ranks[usual] {
				usual = b
			}
		}
	}
	for r := range j.Ranks {
		if b := j.Ranks[r].Build; b != "" && b != usual && ranks[b] < ranks[usual] {
			old[r] = "is of another run: it was written by " + b
		}
	}
	return old
}

// binding are the functions that no rank ends before all have called them.
var binding = []string{"allreduce", "allreducecoalesced", "allreducebarrier", "barrier", "allgather", "reducescatter"}

// behind finds ranks whose files lack a collective that another rank's file shows as ended: they have called it since.
// The ring of a file forgets the oldest calls first. A rank that waits in a longer call than the others' may have given
// them what they took for it in several calls: it lacks a call only if they have moved more than its calls can give.
func (j *Job) behind() map[int]string {
	furthest, by := map[int]*Call{}, map[int]int{} // by group
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			if f := furthest[c.Group]; !c.message() && c.over() && (f == nil || c.Number > f.Number) && c.binds() {
				furthest[c.Group], by[c.Group] = c, r
			}
		}
	}
	old := map[int]string{}
	for r := range j.Ranks {
		last, waits := map[int]int64{}, false
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			if waits = waits || !c.ended(); !c.message() {
				last[c.Group] = max(last[c.Group], c.Number)
			}
		}
		for g, n := range last {
			if f := furthest[g]; f != nil && n < f.Number && slices.Contains(j.Groups[g].Ranks, r) &&
				(!waits || j.starves(r, by[g], g)) {
				old[r] = fmt.Sprintf("is older than that of others, which have ended %s since", f.name())
			}
		}
	}
	return old
}

// binds reports whether no rank ends the call before all have called it.
func (c *Call) binds() bool { return slices.Contains(binding, family(c)) }

// starves reports whether the calls in which a rank waits in a group give less than another rank has taken since.
func (j *Job) starves(r, other, group int) bool {
	gives, takes, from := int64(0), int64(0), int64(-1)
	for i := range j.Ranks[r].Calls {
		c := &j.Ranks[r].Calls[i]
		if c.Group != group || c.message() || c.ended() {
			continue
		}
		n := c.moves()
		if n < 0 {
			return false
		}
		if gives += n; from < 0 || c.Number < from {
			from = c.Number
		}
	}
	for i := range j.Ranks[other].Calls {
		c := &j.Ranks[other].Calls[i]
		if c.Group == group && c.over() && c.Number >= from && c.binds() {
			takes += max(0, c.moves())
		}
	}
	return from >= 0 && takes > gives
}

// moves is how many bytes a collective moves about, of each rank: a reduction of all moves them twice; -1 if not known.
func (c *Call) moves() int64 {
	n := max(c.Sizes.In, c.Sizes.Out) * bytesOf[strings.ToLower(c.Type)]
	switch {
	case c.In == "" && c.Out == "", n <= 0:
		return -1
	case strings.HasPrefix(family(c), "allreduce"):
		return 2 * n
	}
	return n
}

// early finds ranks whose files have times of before most others began to wait, and says how long before. Times of most
// files that are before the newest call in them are none.
func (j *Job) early() map[int]string {
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
	old := map[int]string{}
	if len(since) == 0 || files > 1 && 2*lost > files {
		return old
	}
	slices.SortFunc(since, time.Time.Compare)
	waited := since[len(since)/2]
	for r := range j.Ranks {
		k := &j.Ranks[r]
		if len(k.Calls) > 0 && k.Source != "" && !k.Taken.IsZero() && k.Taken.Before(waited.Add(-2*time.Second)) {
			old[r] = fmt.Sprintf("was written %v before the others began to wait", history.Spell(waited.Sub(k.Taken)))
		}
	}
	return old
}
