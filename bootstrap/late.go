package bootstrap

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// TrialTime is how long the ranks have to tell where they were stopped, after one of them has
// run out of time.
const TrialTime = 1500 * time.Millisecond

// A Stopped is where a rank's operation was stopped.
type Stopped struct {
	Last        uint64 // the last collective that the rank is known to have begun
	Unsure      bool   // the rank may have begun later ones
	At          uint64 // the collective that the rank was in, 0 if in none
	Peer        int    // the rank that it waited for, -1 if unknown; with At 0 in a Send or Recv
	Sending     bool   // it waited to send
	Round, Step int    // of the schedule
	Waited      time.Duration
	Still       time.Duration // of Waited: since data moved last, as far as is known
}

// A Lateness is why an operation ran out of time.
type Lateness struct {
	Reason  judge.Reason
	Call    Called        // the collective that ranks waited in, zero if they waited in a Send or Recv
	Waiting []int         // who waited there, ascending; at most 1024
	Waited  time.Duration // the longest wait of these
	Still   time.Duration // for how long no data have moved among them
	Last    Called        // the last collective that the first of the culprits has begun, zero if none or not known
}

func (l *Lateness) String() string {
	return fmt.Sprintf("rank %s waited for %s in collective #%d (%v)", ranges(l.Waiting), spell(l.Waited),
		l.Call.Number, l.Reason)
}

// A trial finds out who holds up a rank whose operation has run out of time.
type trial struct {
	said  map[int]Position // nil when the trial has ended
	timer *time.Timer
}

// late notes where a rank was stopped. The first call begins a trial, and stops all others. Under mu.
func (r *coordinator) late(rank int, p Position) {
	if r.trial == nil {
		if len(r.audience(-1)) == 0 { // all know of a failure
			return
		}
		t := &trial{said: map[int]Position{}}
		t.timer = time.AfterFunc(TrialTime, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.conclude(t)
		})
		r.trial = t
		r.tell(r.others(rank), &halt{})
	}
	t := r.trial
	if t.said == nil { // the trial has ended
		return
	}
	r.ledger.note(rank, p, time.Now())
	t.said[rank] = p
	for _, q := range r.others(-1) {
		if _, ok := t.said[q]; !ok {
			return
		}
	}
	r.conclude(t)
}

// conclude ends a trial, and tells all ranks which are to blame. Under mu.
func (r *coordinator) conclude(t *trial) {
	t.timer.Stop()
	said := t.said
	t.said = nil
	if said == nil || r.judge() || len(r.audience(-1)) == 0 {
		return
	}
	f := verdictOf(r.size, said, r.gone)
	far := func(rank int) bool { return r.land.places[rank] != r.land.hub }
	switch {
	case r.inquest != nil:
	case f.Late.Reason == judge.Silent && r.land.several() && slices.ContainsFunc(f.Culprits, far):
		r.investigate(func(q *inquest) { q.late = f })
	default:
		r.announce(f)
		r.forget() // complaints are consequences
	}
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
	l := &Lateness{Reason: v.Reason, Call: Called{Number: v.Number}, Waiting: v.Waiting[:min(len(v.Waiting), maxListed)]}
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
	return &Failure{Rank: -1, Culprits: v.Culprits[:min(len(v.Culprits), maxListed)], Late: l}
}
