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
	Knew     map[int]time.Time // the ranks that have left a file of the failure, and when they knew of it
}

// follows reports whether a failure follows from another one: those to blame had another group fail before they ended,
// and are not to blame for that.
func (v *Verdict) follows(u *Verdict) bool {
	if len(v.Culprits) == 0 {
		return false
	}
	for _, r := range v.Culprits {
		at, knew := u.Knew[r]
		since, lives := v.Knew[r] // by the same clock
		if !lives {
			since, lives = v.At, v.TimedOut
		}
		if !knew || lives && !at.Before(since) || slices.Contains(u.Culprits, r) {
			return false
		}
	}
	return true
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
	roots := slices.DeleteFunc(slices.Clone(live), func(v *Verdict) bool {
		return slices.ContainsFunc(live, func(u *Verdict) bool { return u != v && v.follows(u) && !u.follows(v) })
	})
	if len(roots) == 0 {
		return nil
	}
	first := slices.MinFunc(roots, func(a, b *Verdict) int { return a.At.Compare(b.At) })
	for _, v := range live {
		switch later := v.At.Sub(first.At); {
		case v == first:
		case slices.Equal(v.Culprits, first.Culprits) && len(v.Culprits) > 0:
			j.Notes = append(j.Notes, fmt.Sprintf("%s blames %s too", &j.Groups[v.Group], history.Ranks(v.Culprits)))
		case v.follows(first), later >= 0:
			j.Notes = append(j.Notes, fmt.Sprintf("%v later: %s", history.Spell(max(0, later)), v.Sentence))
		default:
			j.Notes = append(j.Notes, v.Sentence)
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
	case !v.TimedOut && len(jd.Lost) > 0: // that may have failed first
		c.Reason, c.culprits = Unknown, nil
		return c
	case !v.TimedOut && found.either() && slices.Equal(found.culprits, v.Culprits): // it did not know who is right
		return found
	case !v.TimedOut:
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
