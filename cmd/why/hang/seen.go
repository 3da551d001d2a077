package hang

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/trace/history"
)

// ended reports whether a call has ended, or may have.
func (c *Call) ended() bool { return c.State == Ended || c.State == Seen }

// infer finds out which collectives of state Seen can have ended. A collective has not ended if a rank of the group has
// not made it, or made a different one in its place. It has ended if the rank has made the group's next one.
func (j *Job) infer() {
	least, most := j.reached()
	odd := j.unlike()
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			switch {
			case c.State != Seen || c.message():
			case c.Number > least[c.Group], odd[spot{c.Group, c.Number}]:
				c.State = Begun
			case c.Number < most[c.Group][r]:
				c.State = Ended
			}
		}
	}
}

// A spot is a collective of a group.
type spot struct {
	group  int
	number int64
}

// unlike are the collectives of state Seen that ranks have made with different kinds, sizes or roots.
func (j *Job) unlike() map[spot]bool {
	kinds, odd := map[spot]string{}, map[spot]bool{}
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			if c.State != Seen || c.message() {
				continue
			}
			at := spot{c.Group, c.Number}
			key := fmt.Sprint(family(c), equal(c), rooted(c))
			if kind, ok := kinds[at]; ok && kind != key {
				odd[at] = true
			}
			kinds[at] = key
		}
	}
	return odd
}

// reached is how far ranks have come in each group: the number of the last collective of the rank that is furthest
// behind, among ranks with a file, and that of each rank.
func (j *Job) reached() (least []int64, most []map[int]int64) {
	for range j.Groups {
		least, most = append(least, -1), append(most, map[int]int64{})
	}
	for r := range j.Ranks {
		for i := range j.Ranks[r].Calls {
			if c := &j.Ranks[r].Calls[i]; !c.message() {
				most[c.Group][r] = max(most[c.Group][r], c.Number)
			}
		}
	}
	for g := range j.Groups {
		for _, r := range j.Groups[g].Ranks {
			if j.Ranks[r].Source != "" && (least[g] < 0 || most[g][r] < least[g]) {
				least[g] = most[g][r]
			}
		}
	}
	return least, most
}

// newest is the last call of a rank if its state is Seen, else nil.
func (jd *judge) newest(r int) *Call {
	calls := jd.Ranks[r].Calls
	if len(calls) == 0 || calls[len(calls)-1].State != Seen {
		return nil
	}
	return &calls[len(calls)-1]
}

// together reports whether one of the idle ranks may be in its last collective together with the whole group, none of
// which is known to wait. Then nobody is known to be late.
func (jd *judge) together(idle []int) bool {
	waits := func(r int) bool { return len(jd.waits[r]) > 0 }
	for _, r := range idle {
		last := jd.newest(r)
		for i := range jd.Ranks[r].Calls {
			c := &jd.Ranks[r].Calls[i]
			members := jd.Groups[c.Group].Ranks
			if c.State == Seen && !c.message() && len(members) > 1 && last != nil && !c.At.Before(last.At) &&
				!slices.ContainsFunc(members, waits) {
				return true
			}
		}
	}
	return false
}

// quiet is the cause in a job in which no rank is known to wait.
func (jd *judge) quiet() cause {
	var dead, silent []int
	at, seen, mute := place{group: -1}, false, 0
	for r := range jd.Ranks {
		switch rank := &jd.Ranks[r]; {
		case rank.Death != "" || rank.Raised != "" && (rank.Source == "" || len(rank.Calls) == 0):
			dead = append(dead, r)
		case rank.Source == "" || rank.Mute:
			silent = append(silent, r)
			if rank.Mute {
				mute++
			}
		case !seen && jd.newest(r) != nil:
			at, seen = jd.place(r, jd.newest(r)), true
		}
	}
	late := jd.overdue()
	switch {
	case len(dead) > 0:
		return cause{Reason: Died, culprits: dead, at: at, quiet: true}
	case late.Reason != Nothing:
		return late
	case (seen || mute > 0) && len(silent) > 0 && 2*len(silent) <= len(jd.Ranks) &&
		(mute == len(silent) || len(silent) == 1):
		return cause{Reason: Silent, culprits: silent, at: at, quiet: true}
	case seen:
		return cause{Reason: Unknown, at: at, quiet: true}
	}
	return cause{}
}

// sayQuiet writes the sentence for a job in which no rank is known to wait.
func (jd *judge) sayQuiet(a *Answer, c *cause) {
	who := jd.who(c.culprits)
	switch c.Reason {
	case Died:
		a.Sentence = fmt.Sprintf("%s %s", who, jd.death(c.culprits))
		a.Remedy = jd.readLog(c.culprits, history.Ranks(c.culprits))
	case Silent:
		a.Sentence = fmt.Sprintf("%s %s: dead, stopped, or cut off", who, jd.quietly(c.culprits))
		if c.at.group >= 0 {
			a.Sentence += fmt.Sprintf("; the others have called %s last", jd.what(c.at))
		}
		a.Remedy = "look whether the process of " + history.Ranks(c.culprits) + " lives, and at the end of its log"
	default:
		a.Sentence = fmt.Sprintf("I cannot say: all ranks have called as much as the others of their groups, last %s, and "+
			"whether that has ended the files do not show", jd.what(c.at))
		a.Remedy = "dumps of PyTorch's flight recorder show it: TORCH_NCCL_TRACE_BUFFER_SIZE=2000"
	}
}
