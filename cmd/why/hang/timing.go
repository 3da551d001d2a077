package hang

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

const (
	// clocks is how far the clocks of hosts may differ where their calls do not show the difference.
	clocks = time.Minute
	// another is how far apart two ranks' times of the same call are if their files are of different runs.
	another = time.Hour
	// few is how many calls in common show the difference of two clocks, at least.
	few = 3
)

// outdated finds ranks whose files were written before most others began to wait, or in another run. It drops their
// calls, which would accuse ranks of waits that are long over.
func (j *Job) outdated() map[int]bool {
	var since, newest []time.Time
	for r := range j.Ranks {
		calls := j.Ranks[r].Calls
		if len(calls) == 0 {
			continue
		}
		newest = append(newest, calls[len(calls)-1].At)
		if i := slices.IndexFunc(calls, func(c Call) bool { return !c.ended() }); i >= 0 {
			since = append(since, calls[i].At)
		}
	}
	old := map[int]bool{}
	if len(since) == 0 {
		return old
	}
	waited, usual := middle(since), middle(newest)
	tries := 64 // a try looks at all calls
	for r := range j.Ranks {
		k := &j.Ranks[r]
		var text string
		switch n := len(k.Calls); {
		case n == 0 || k.Source == "" || j.Own: // its reader compares times
			continue
		case usual.Sub(k.Calls[n-1].At).Abs() > another && tries > 0 && j.elsewhen(r, usual, &tries):
			text = fmt.Sprintf("the file of rank %d is of another run: its last call is %v from those of the others", r,
				history.Spell(usual.Sub(k.Calls[n-1].At).Abs()))
		case !k.Taken.IsZero() && k.Taken.Before(waited.Add(-2*time.Second)):
			text = fmt.Sprintf("the file of rank %d was written %v before the others began to wait", r,
				history.Spell(waited.Sub(k.Taken)))
		default:
			continue
		}
		old[r] = true
		k.Source, k.Calls, k.Made = "", nil, nil
		if len(old) <= 4 {
			j.Notes = append(j.Notes, text)
		}
	}
	return old
}

// middle is the median of times, which it sorts.
func middle(all []time.Time) time.Time {
	slices.SortFunc(all, time.Time.Compare)
	return all[len(all)/2]
}

// elsewhen reports whether a rank's calls are far in time from the same calls of ranks whose last call was at about
// the usual time.
func (j *Job) elsewhen(r int, usual time.Time, tries *int) bool {
	*tries--
	mine := map[spot]time.Time{}
	for i := range j.Ranks[r].Calls {
		if c := &j.Ranks[r].Calls[i]; !c.message() {
			mine[spot{c.Group, c.Number}] = c.At
		}
	}
	for q := range j.Ranks {
		calls := j.Ranks[q].Calls
		if q == r || len(calls) == 0 || calls[len(calls)-1].At.Sub(usual).Abs() > another {
			continue
		}
		for i := range calls {
			if at, ok := mine[spot{calls[i].Group, calls[i].Number}]; ok && !calls[i].message() {
				return calls[i].At.Sub(at).Abs() > another+2*calls[i].Limit
			}
		}
	}
	return false
}

// anew reports whether a rank's file is of a later run than the files of the ranks that wait at a place: the rank has
// made an earlier collective of the group at a later time.
func (jd *judge) anew(at place, r int) bool {
	if at.number < 0 {
		return false
	}
	n, ok := jd.last[at.group][r]
	if !ok || n >= at.number {
		return false
	}
	for _, q := range jd.open(at) {
		if of := jd.calls[at.group][n][r]; of == nil || !of.At.After(jd.in(at, q).At.Add(clocks)) {
			return false
		}
	}
	return true
}

// A pace is the times at which the ranks of a group have made its collectives, by one clock.
type pace struct {
	numbers []int64 // ascending
	at      map[int64]map[int]time.Duration
	common  int // the least number of calls that a rank shares with the first rank
}

// pace takes out the differences of the ranks' clocks: the difference of two clocks is taken to be the median
// difference of the times at which two ranks made the same collectives.
func (jd *judge) pace(group int) pace {
	p := pace{at: map[int64]map[int]time.Duration{}}
	members := jd.members(place{group: group})
	var epoch time.Time
	apart := map[int][]time.Duration{} // by rank: how much later its calls are than the first rank's
	for n, calls := range jd.calls[group] {
		first := -1
		for r, c := range calls {
			if c.At.IsZero() {
				return pace{}
			}
			if first < 0 || r < first {
				first = r
			}
		}
		if epoch.IsZero() {
			epoch = calls[first].At
		}
		p.numbers = append(p.numbers, n)
		p.at[n] = map[int]time.Duration{}
		for r, c := range calls {
			p.at[n][r] = c.At.Sub(epoch)
			if first == members[0] {
				apart[r] = append(apart[r], c.At.Sub(calls[first].At))
			}
		}
	}
	slices.Sort(p.numbers)
	p.common = len(p.numbers)
	for _, all := range apart {
		p.common = min(p.common, len(all))
	}
	if p.common < few {
		return p
	}
	for r, all := range apart {
		slices.Sort(all)
		for _, n := range p.numbers {
			if t, ok := p.at[n][r]; ok {
				p.at[n][r] = t - all[len(all)/2]
			}
		}
	}
	return p
}

// spread is how long after the first rank the last one made a collective, and which rank was last.
func (p *pace) spread(n int64) (late time.Duration, last int) {
	first, most := time.Duration(1<<62), time.Duration(-1<<62)
	for r, t := range p.at[n] {
		first = min(first, t)
		if t > most || t == most && r < last {
			most, last = t, r
		}
	}
	return most - first, last
}

// slow finds ranks that came to a place after the others' time-out; none if the time-out is too short for the job.
func (jd *judge) slow(at place) cause {
	limit := jd.limit(at)
	if at.number < 0 || limit <= 0 {
		return cause{}
	}
	p := jd.pace(at.group)
	late, _ := p.spread(at.number)
	if p.common < few {
		late -= clocks
	}
	if late <= limit || len(p.at[at.number]) == 0 {
		return cause{}
	}
	c := cause{Reason: Slow, at: at, late: late}
	first := time.Duration(1 << 62)
	for _, t := range p.at[at.number] {
		first = min(first, t)
	}
	for r, t := range p.at[at.number] {
		if t-first > limit {
			c.culprits = append(c.culprits, r)
		}
	}
	slices.Sort(c.culprits)
	if usual := jd.usual(at); 2*usual >= limit {
		return cause{Reason: Short, at: at, late: usual, old: c.culprits}
	}
	return c
}

// overdue finds ranks that came too late to a call that has ended since, for which the watchdog has fired all the same.
// It looks at the newest call of each group that took longer than its time-out; of several in a row at the first, as
// the calls behind that one waited only for it.
func (jd *judge) overdue() cause {
	for g := range jd.Groups {
		over, first := map[int64]bool{}, int64(-1)
		for n, calls := range jd.calls[g] {
			for _, c := range calls {
				if c.Limit > 0 && !c.Ends.IsZero() && c.Ends.Sub(c.At) > c.Limit {
					over[n], first = true, max(first, n)
				}
			}
		}
		if first < 0 {
			continue
		}
		for over[first-1] {
			first--
		}
		if c := jd.slow(place{group: g, number: first}); c.Reason != Nothing {
			return c
		}
	}
	return cause{}
}

// usual is the second longest time that ranks have waited for each other in collectives before a place, 0 if it is not
// known. The longest may have been the job's start.
func (jd *judge) usual(at place) time.Duration {
	if at.number < 0 || jd.limit(at) <= 0 {
		return 0
	}
	p := jd.pace(at.group)
	if p.common < few {
		return 0
	}
	var longest, second time.Duration
	for _, n := range p.numbers {
		if n >= at.number || len(p.at[n]) < 2 {
			continue
		}
		late, _ := p.spread(n)
		if late > longest {
			longest, late = late, longest
		}
		second = max(second, late)
	}
	return second
}

// sayTimes writes the sentence about ranks that came too late, or may have.
func (jd *judge) sayTimes(a *Answer, c *cause) {
	if len(c.between) > 0 {
		jd.sayMoved(a, c)
		return
	}
	limit := jd.limit(c.at)
	if c.Reason == Slow {
		who := jd.who(c.culprits)
		a.Sentence = fmt.Sprintf("%s %s slow, not stuck: %s called %s%s %v after the first, and the time-out is %v", who,
			verb(c.culprits, "was", "were"), verb(c.culprits, "it", "they"),
			jd.what(c.at), jd.line(c.at, c.culprits), history.Spell(c.late), limit)
		a.Remedy = "find out what " + who +
			" did in that time (loading data, compiling, a checkpoint), or give init_process_group a longer timeout"
		return
	}
	a.Sentence = fmt.Sprintf("the time-out of %v is too short for this job: its ranks have waited %v for each other "+
		"before; this time %s came too late to %s", limit, history.Spell(c.late),
		jd.who(c.old), jd.what(c.at))
	a.Remedy = fmt.Sprintf("give init_process_group a timeout of %v or more",
		max(10*time.Minute, 10*c.late.Round(time.Second)))
}

// A Lateness is how often a rank came last to a collective, and how late.
type Lateness struct {
	Rank  int
	Late  time.Duration // behind the first rank: the median over Calls
	Calls int           // number of collectives to which the rank came last
}

// Laggards are the ranks of a job that came last to a collective, the ones that did so most often first, by the calls
// in the job's files.
func Laggards(j *Job) (all []Lateness) {
	jd := newJudge(j)
	late := map[int][]time.Duration{}
	for g := range jd.Groups {
		p := jd.pace(g)
		for _, n := range p.numbers {
			if d, r := p.spread(n); len(p.at[n]) == len(jd.members(place{group: g, number: n})) && len(p.at[n]) > 1 {
				late[r] = append(late[r], d)
			}
		}
	}
	for r, times := range late {
		slices.Sort(times)
		all = append(all, Lateness{r, times[len(times)/2], len(times)})
	}
	slices.SortFunc(all, func(a, b Lateness) int {
		if a.Calls != b.Calls {
			return b.Calls - a.Calls
		}
		return a.Rank - b.Rank
	})
	return all
}
