package hang

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

// few is how many calls in common show the difference of two clocks, at least.
const few = 3

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
