package hang

import (
	"fmt"
	"slices"
	"time"

	blame "github.com/ringo-go/ringo/trace/judge" // judge is a type here
)

// inside is the cause at a place that lies within the call, by the ranks for which the members wait there; Unknown if
// that is not known. unsure are members that may be in the call, or have ended it.
func (jd *judge) inside(at place, unsure []int) cause {
	members := jd.members(at)
	states := make([]blame.State, len(members))
	var waited, still time.Duration
	known := false
	for i, r := range members {
		c := jd.in(at, r)
		s := &states[i]
		*s = blame.State{Rank: i, Heard: true, Last: 1, Peer: -1, Unsure: slices.Contains(unsure, r)}
		if s.Unsure {
			s.Last = 0
		}
		if c == nil || c.ended() {
			continue
		}
		if at.number >= 0 {
			s.At = 1
		}
		if w := c.Wait; w != nil {
			s.Sending, s.Round, s.Step, s.Peer = w.Sending, w.Round, w.Step, slices.Index(members, w.For)
			known = known || s.Peer >= 0
			if w.Waited > 0 && (waited == 0 || w.Still < still) {
				still = w.Still
			}
			waited = max(waited, w.Waited)
		}
	}
	if !known || at.number < 0 && len(members) != 2 {
		return cause{Reason: Unknown, at: at}
	}
	v := blame.Waits(states)
	var ranks []int
	for _, i := range v.Culprits {
		ranks = append(ranks, members[i])
	}
	switch {
	case v.Reason == blame.Link && still < waited/2:
		return cause{Reason: Short, at: at, late: still, between: ranks}
	case v.Reason == blame.Link:
		return cause{Reason: Link, culprits: ranks, at: at}
	case v.Reason == blame.Absent:
		return cause{Reason: Absent, culprits: ranks, at: at}
	}
	return cause{Reason: Unknown, at: at}
}

// inside says where in the call a rank of a small job waits, ", step 0.2, from rank 3"; "" if not known.
func (w *Wait) inside(ranks int) string {
	const most = 16
	switch {
	case w == nil || w.For < 0 || ranks > most:
		return ""
	case w.Sending:
		return fmt.Sprintf(", step %d.%d, to rank %d", w.Round, w.Step, w.For)
	}
	return fmt.Sprintf(", step %d.%d, from rank %d", w.Round, w.Step, w.For)
}
