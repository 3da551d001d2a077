package hang

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

// A Verdict is what the ranks of a group have found, while they lived, as the reason of its failure.
type Verdict struct {
	Group    int // index of Job.Groups
	Sentence string
	Culprits []int             // ascending; none if nobody is to blame
	At       time.Time         // when the first rank knew of it
	TimedOut bool              // a call ran out of time
	Slow     bool              // of TimedOut: data still moved
	Silent   bool              // of TimedOut: those to blame were asked, and did not answer
	Died     bool              // those to blame ended, as the others saw it
	Lost     bool              // other files say that the group has failed, and none of its own says why
	Knew     map[int]time.Time // the ranks that have left a file of the failure, and when they knew of it
	Unaware  map[int]time.Time // the ranks whose file of the group knows of no failure, and when they wrote it
	Before   map[int][]int     // by rank: groups that had failed before, by its file of this group
	Outlived []int             // of Died: culprits whose file shows them alive, maybe after another group's failure
	rivals   []*Verdict        // failures of others' fault of which it is not known which was first
}

// Two times of one host tell which of two failures was first if they are so far apart; those of two hosts if they are
// farther apart than their clocks may be.
const (
	nearOrder = 5 * time.Millisecond
	farOrder  = time.Minute
)

// sooner reports whether a failure is known to have been before another one.
func (j *Job) sooner(u, v *Verdict) bool {
	if after, before := u.outlived(v), v.outlived(u); after != before { // who has ended had known of the other failure
		return after
	}
	votes := 0
	for r := range j.Ranks {
		votes += u.vote(v, r) - v.vote(u, r)
	}
	if votes != 0 {
		return votes > 0
	}
	return j.clocks(u, v) > 0
}

// outlived reports whether all to blame for a failure have told of this one before they died.
func (u *Verdict) outlived(v *Verdict) bool {
	return v.Died && !slices.ContainsFunc(v.Culprits, func(r int) bool { _, knew := u.Knew[r]; return !knew })
}

// vote is 1 if a rank knew of this failure before it knew of another one. Who held up others learns of all that has
// come of it at once, in any order.
func (u *Verdict) vote(v *Verdict, r int) int {
	at, knew := u.Knew[r]
	other, knows := v.Knew[r]
	wrote, unaware := v.Unaware[r]
	first := slices.Contains(v.Before[r], u.Group)
	switch late := func(v *Verdict) bool { return v.TimedOut && slices.Contains(v.Culprits, r) }; {
	case knew && knows:
		first = other.Sub(at) > nearOrder && !late(u) && !late(v)
	case knew && unaware:
		first = first || wrote.After(at.Add(-nearOrder))
	case knew:
		first = v.Lost && !slices.Contains(u.Before[r], v.Group)
	}
	if first {
		return 1
	}
	return 0
}

// clocks is 1 if hosts knew of a failure before they knew of another one, -1 if after, 0 if that is not known.
func (j *Job) clocks(u, v *Verdict) int {
	if u.Lost || v.Lost {
		return 0
	}
	far, sooner, later := v.At.Sub(u.At), false, false
	for r, at := range u.Knew {
		for q, other := range v.Knew {
			if host := j.Ranks[r].Host; host == j.Ranks[q].Host && host != "" {
				sooner = sooner || other.Sub(at) > nearOrder
				later = later || at.Sub(other) > nearOrder
			}
		}
	}
	switch {
	case sooner && !later, sooner == later && far > farOrder:
		return 1
	case later && !sooner, sooner == later && far < -farOrder:
		return -1
	}
	return 0
}

// first is the failure that was first, nil if no group has failed, and makes notes of the others. A group that others
// have replaced has failed before, and the job went on: its failure counts only if nothing is wrong with theirs.
func (j *Job) first() *Verdict {
	var live []*Verdict
	for i := range j.Verdicts {
		if v := &j.Verdicts[i]; !j.replaced(v.Group) {
			live = append(live, v)
		} else {
			j.Notes = append(j.Notes, "before, and Shrink went on without it: "+v.Sentence)
		}
	}
	if len(live) == 0 {
		return nil
	}
	roots := slices.DeleteFunc(slices.Clone(live), func(v *Verdict) bool {
		return slices.ContainsFunc(live, func(u *Verdict) bool { return u != v && j.sooner(u, v) })
	})
	if len(roots) == 0 {
		roots = live
	}
	first := slices.MinFunc(roots, func(a, b *Verdict) int { return a.At.Compare(b.At) })
	for _, v := range roots { // of time-outs it is seen who waited for whom
		if !slices.Equal(v.Culprits, first.Culprits) && !(v.TimedOut && first.TimedOut) {
			first.rivals = append(first.rivals, v)
		}
	}
	for _, v := range live {
		switch later := history.Spell(v.At.Sub(first.At)); {
		case v == first, slices.Contains(first.rivals, v):
		case slices.Equal(v.Culprits, first.Culprits) && len(v.Culprits) > 0:
			j.Notes = append(j.Notes, fmt.Sprintf("%s blames %s too", &j.Groups[v.Group], history.Ranks(v.Culprits)))
		case v.Lost, first.Lost:
			j.Notes = append(j.Notes, v.Sentence)
		case later > 0:
			j.Notes = append(j.Notes, fmt.Sprintf("%v later: %s", later, v.Sentence))
		default:
			j.Notes = append(j.Notes, "at the same time: "+v.Sentence)
		}
	}
	return first
}

// replaced reports whether a group that has replaced this one has failed, or has ranks that wait.
func (j *Job) replaced(group int) bool {
	for i := range j.Groups {
		if j.Groups[i].After != group+1 || i == group {
			continue
		}
		if slices.ContainsFunc(j.Verdicts, func(v Verdict) bool { return v.Group == i }) {
			return true
		}
		for r := range j.Ranks {
			if slices.ContainsFunc(j.Ranks[r].Calls, func(c Call) bool { return c.Group == i && !c.ended() }) {
				return true
			}
		}
	}
	return false
}

// until drops calls that ranks began after they knew of a failure.
func (j *Job) until(v *Verdict) {
	for r := range j.Ranks {
		at, knew := v.Knew[r]
		if !knew {
			at = v.At
		}
		j.Ranks[r].Calls = slices.DeleteFunc(j.Ranks[r].Calls, func(c Call) bool {
			return !c.ended() && c.Group != v.Group && c.At.After(at)
		})
	}
}

// weigh makes a cause of the verdict of a group that has failed, and of the cause that follows from the places of all
// ranks. The group knows how its ranks have ended, and for whom they waited; but a rank that does not come may wait in
// another group.
func (jd *judge) weigh(v *Verdict, found cause) cause {
	c := cause{Reason: Failed, culprits: v.Culprits, at: place{group: v.Group}, verdict: v}
	switch {
	case v.Lost && len(found.culprits) > 0 && found.at.group == v.Group: // its other files show it
		return found
	case v.Lost, len(v.rivals) > 0:
		c.Reason, c.culprits = Unknown, nil
		return c
	}
	for _, r := range v.Culprits {
		if jd.Ranks[r].Death == "" {
			continue
		}
		c.Reason = Died
	}
	if len(v.Culprits) == 0 {
		c.Reason = Unknown
		if v.Slow {
			c.Reason = Short
		}
	}
	switch {
	case c.Reason == Died, v.Silent:
		return c
	case len(v.Outlived) > 0:
		c.Reason, c.culprits = Unknown, nil
		return c
	case !v.TimedOut && len(jd.Lost) > 0: // that may have failed first
		c.Reason, c.culprits = Unknown, nil
		return c
	case !v.TimedOut:
		if found.either() && slices.Equal(found.culprits, v.Culprits) { // it does not know who is right
			c.sides = found.sides
		}
		return c
	}
	sure := slices.DeleteFunc(slices.Clone(v.Culprits), func(r int) bool { return jd.elsewhereOf(v, r) })
	switch {
	case len(sure) == len(v.Culprits):
	case len(found.culprits) > 0:
		return found
	case len(sure) > 0:
		c.culprits = sure
	default:
		c.Reason, c.culprits, c.unproven = Unknown, nil, v.Culprits
	}
	return c
}

// elsewhereOf reports whether a rank that did not come to a call of a group may have waited in another group instead.
func (jd *judge) elsewhereOf(v *Verdict, r int) bool {
	k := &jd.Ranks[r]
	_, told := v.Knew[r]
	return slices.ContainsFunc(jd.waits[r], func(c *Call) bool { return c.Group != v.Group }) || len(k.Hidden) > 0 ||
		!told && len(v.Culprits) > 1 || slices.ContainsFunc(k.Blind, func(g int) bool { return g != v.Group && !told })
}
