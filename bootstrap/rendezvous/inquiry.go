package rendezvous

import (
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// TrialTime is how long the ranks have to tell where they were stopped, after one of them has
// run out of time.
const TrialTime = 1500 * time.Millisecond

// An inquiry finds out who holds up a rank whose operation has run out of time.
type inquiry struct {
	said map[int]Position
	over bool
}

// verdictOf is the Failure that follows from where ranks were stopped, by the positions they said.
func verdictOf(size int, said map[int]Position, gone []bool) *Failure {
	states := make([]judge.State, size)
	for q := range states {
		p, heard := said[q]
		states[q] = judge.State{Rank: q, Heard: heard, Peer: -1}
		if heard {
			s := p.Stop
			states[q] = judge.State{Rank: q, Heard: true, Last: max(s.Last, s.At), Unsure: s.Unsure, At: s.At, Peer: s.Peer,
				Sending: s.Sending, Round: s.Round, Step: s.Step}
		} else if gone[q] { // it left in order, and no rank waits for it, else judge had found that
			states[q].Heard, states[q].Last = true, ^uint64(0)
		}
	}
	v := judge.Waits(states)
	l := &Lateness{Reason: v.Reason, Call: Called{Number: v.Number}, Waiting: v.Waiting[:min(len(v.Waiting), MaxListed)]}
	for _, q := range v.Waiting {
		p := said[q]
		if p.Stop.Waited > 0 && (l.Waited == 0 || p.Stop.Still < l.Still) {
			l.Still = p.Stop.Still
		}
		l.Waited = max(l.Waited, p.Stop.Waited)
		for _, c := range p.Calls {
			if c.Number == v.Number && v.Number > 0 {
				l.Call = c
			}
		}
	}
	if v.Reason == judge.Link && l.Still < l.Waited/2 {
		l.Reason, v.Culprits = judge.Slow, nil // the machine or its network is only slow, or has just failed
	}
	if len(v.Culprits) > 0 {
		if calls := said[v.Culprits[0]].Calls; len(calls) > 0 {
			l.Last = calls[len(calls)-1]
		}
	}
	return &Failure{Rank: -1, Culprits: v.Culprits[:min(len(v.Culprits), MaxListed)], Late: l}
}
