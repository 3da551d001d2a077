package judge

import (
	"fmt"
	"slices"
)

// A State is where one rank is.
type State struct {
	Rank    int
	Heard   bool   // the rank has told its State; if not, nothing below is known
	Last    uint64 // the last collective that it has begun, 0 if none
	Unsure  bool   // it may have begun and ended collectives after Last
	At      uint64 // the collective that it is in, 0 if in none
	Peer    int    // the rank that it waits for, -1 if none or unknown; if At is 0, in a Send or Recv
	Sending bool   // it waits to send
	Round   int    // of the schedule, in which it waits
	Step    int    // of the round
}

// waits reports whether the rank is in a call.
func (s *State) waits() bool { return s.At > 0 || s.Peer >= 0 }

// behind reports whether the rank has come less far in a collective than rank t.
func (s *State) behind(t *State) bool {
	return s.Round < t.Round || s.Round == t.Round && s.Step < t.Step
}

// A Reason is why ranks are to blame.
type Reason uint8

const (
	Unknown Reason = iota
	Silent         // they do not answer
	Absent         // they are in no call, and others wait for them
	Link           // two ranks: messages of one of them do not reach the other
	Circle         // they wait for each other
	Slow           // nobody: data still moved when time ran out
	Reasons        // the number of Reasons
)

func (r Reason) String() string {
	if r < Reasons {
		return [...]string{"unknown", "silent", "absent", "link", "circle", "slow"}[r]
	}
	return "?"
}

// A Verdict is who holds up the others.
type Verdict struct {
	Reason   Reason
	Culprits []int  // ascending
	Number   uint64 // the collective that others wait in, 0 if they wait in a Send or Recv
	Waiting  []int  // the ranks that wait there, ascending
}

// Waits finds who holds up the others. States are by rank. The cost is in proportion to the
// number of ranks.
func Waits(states []State) Verdict {
	var v Verdict
	first := -1 // the rank that waits in the earliest collective, or in a message
	for r := range states {
		s := &states[r]
		switch {
		case !s.Heard:
			v.Culprits = append(v.Culprits, r)
		case s.At > 0 && (v.Number == 0 || s.At < v.Number):
			v.Number, first = s.At, r
		case s.waits() && first < 0:
			first = r
		}
	}
	for r := range states {
		if s := &states[r]; s.Heard && (v.Number > 0 && s.At == v.Number || v.Number == 0 && s.waits()) {
			v.Waiting = append(v.Waiting, r)
		}
	}
	switch {
	case len(v.Culprits) > 0:
		v.Reason = Silent
	case first >= 0:
		v.Reason, v.Culprits = follow(states, first)
	}
	return v
}

// follow goes from a rank that waits to the rank that it waits for, until one does not wait or the way is a circle.
func follow(states []State, r int) (Reason, []int) {
	var way, absent []int
	passed := map[int]int{} // a rank's place on the way
	for number := uint64(0); ; {
		if i, ok := passed[r]; ok {
			return circle(states, way[i:])
		}
		passed[r] = len(way)
		way = append(way, r)
		s := &states[r]
		if s.At > 0 {
			if s.At != number {
				number, absent = s.At, absentees(states, s.At)
			}
			if len(absent) > 0 {
				idle := slices.DeleteFunc(slices.Clone(absent), func(q int) bool { return states[q].waits() })
				sure := slices.DeleteFunc(slices.Clone(idle), func(q int) bool { return states[q].Unsure })
				switch {
				case len(sure) > 0:
					return Absent, sure
				case len(idle) == 0:
					r = absent[0] // all absent ranks wait in other calls
					continue
				case s.Peer < 0:
					return Absent, idle // the likeliest
				}
			}
		}
		next := s.Peer
		switch {
		case next < 0 || next >= len(states) || next == r:
			return Unknown, nil
		case states[next].waits() && (s.At == 0 || states[next].At == s.At):
			r = next
		case s.At == 0, states[next].Unsure:
			return Absent, []int{next} // next has not made the other end of the message, or not entered the collective
		default:
			return Link, pair(r, next) // next has done its part of this collective
		}
	}
}

// absentees are the ranks that have not begun a collective.
func absentees(states []State, number uint64) (absent []int) {
	for q := range states {
		if max(states[q].Last, states[q].At) < number {
			absent = append(absent, q)
		}
	}
	return absent
}

// circle judges ranks each of which waits for the next.
func circle(states []State, c []int) (Reason, []int) {
	least := c[0]
	for _, r := range c {
		if states[r].behind(&states[least]) {
			least = r
		}
	}
	s := &states[least]
	outside := slices.DeleteFunc(slices.Clone(c), func(q int) bool { return states[q].At > 0 })
	if n := len(outside); n > 0 && n < len(c) { // some of them are in messages, and others wait for these in a collective
		in := 0
		for q := range states {
			if states[q].At > 0 {
				in++
			}
		}
		if n < in {
			slices.Sort(outside)
			return Absent, outside
		}
	} else if s.At > 0 || len(c) == 2 && s.Sending != states[s.Peer].Sending {
		return Link, pair(least, s.Peer)
	}
	c = slices.Clone(c)
	slices.Sort(c)
	return Circle, c
}

func pair(a, b int) []int { return []int{min(a, b), max(a, b)} }

// String says where a rank is: "in no call".
func (s *State) String() string {
	way := "from"
	if s.Sending {
		way = "to"
	}
	switch {
	case s.At > 0 && s.Peer >= 0:
		return fmt.Sprintf("in #%d, step %d.%d, %s rank %d", s.At, s.Round, s.Step, way, s.Peer)
	case s.At > 0:
		return fmt.Sprintf("in #%d", s.At)
	case s.Peer >= 0:
		return fmt.Sprintf("in a message %s rank %d", way, s.Peer)
	}
	return "in no call"
}
