package rendezvous

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

const (
	pingTime    = 3 * time.Second         // for ranks to answer the hub
	KnockTime   = 3 * time.Second         // for a host to answer a connection
	AgainTime   = 1500 * time.Millisecond // the same, when it is asked once more
	knockedTime = KnockTime + time.Second // for ranks to say which hosts have answered them
	MaxTargets  = 64                      // hosts at which others knock
)

// InquestTime bounds the time from a complaint to the hub's word.
const InquestTime = SettleTime + pingTime + knockedTime + AgainTime

// An inquest finds out who is to blame when ranks of several hosts hear nothing of each other.
type inquest struct {
	ranks *ranks
	land  *Land
	out   *outbox

	lost    map[int]string // by rank whose connection to the hub has ended in silence: how
	losses  []loss         // the connections that have broken
	late    *Failure       // that ranks answered nothing in an inquiry
	reason  string         // the first complaint
	phase   phase
	stage   uint64       // counts what ranks and hosts are asked
	asked   map[int]bool // in this stage, who has not answered
	heard   map[int]bool // ranks that have answered
	targets []int        // by rank, one of each host that does not answer
	said    []judge.Testimony
	own     int          // hosts that the hub itself still tries to reach
	back    map[int]bool // places that have answered the hub's try
}

// A phase is what an inquest waits for.
type phase uint8

const (
	answers   phase = iota // all ranks are asked to answer
	looks                  // which hosts acknowledge what was sent, of those where no rank answers
	witnesses              // a rank of each host that answers knocks at those that do not, and so does the hub
	last                   // the hub tries once more, or both ends of a path do
)

// begin asks all ranks to answer.
func (q *inquest) begin() (over bool) { return q.ask(answers, q.ranks.all(), nil, pingTime) }

// ask begins the next stage: it asks ranks to knock at targets.
func (q *inquest) ask(phase phase, ranks, targets []int, wait time.Duration) (over bool) {
	q.phase = phase
	q.stage++
	q.asked = map[int]bool{}
	m := &Knock{Stage: q.stage, Targets: targets}
	for _, t := range targets {
		m.At = append(m.At, q.land.Addresses[t])
	}
	for _, rank := range ranks {
		q.asked[rank] = true
	}
	q.out.do(Begin{Timer{Of: Inquest}, wait})
	q.out.tell(ranks, m)
	return q.ready()
}

// reach has the hub itself try hosts, in the stage that comes next.
func (q *inquest) reach(ranks []int, wait time.Duration) {
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(rank int) bool { return q.land.Addresses[rank] == "" })
	if q.own = len(ranks); q.own > 0 {
		q.out.do(Reach{q.stage + 1, ranks, wait})
	}
}

// ready ends a stage early if all have answered. over is that all is known.
func (q *inquest) ready() (over bool) { return len(q.asked) == 0 && q.own == 0 && q.end() }

// end ends a stage.
func (q *inquest) end() (over bool) {
	switch q.phase {
	case answers:
		q.phase = looks
		if silent := slices.DeleteFunc(q.ranks.all(), func(rank int) bool { return q.heard[rank] }); len(silent) > 0 {
			q.out.do(Look{silent})
			return false
		}
		return q.surveyed(nil)
	case looks: // the answer is on its way
		return false
	case witnesses:
		if l := judge.Losses(q.testimonies()); l.Path && slices.Contains(l.Culprits, q.land.Hub) {
			q.reach(q.targets, AgainTime)
			return q.ask(last, nil, q.targets, AgainTime+time.Second)
		}
	}
	return true
}

// answered notes a rank's answer.
func (q *inquest) answered(rank int, m *Knocked) (over bool) {
	if q.stage != m.Stage || !q.asked[rank] {
		return false
	}
	delete(q.asked, rank)
	q.heard[rank] = true
	if q.targets != nil {
		t := judge.Testimony{From: q.land.Places[rank], Hears: []int{q.land.Hub}}
		for i, target := range q.targets {
			if place := q.land.Places[target]; i < len(m.Heard) && m.Heard[i] {
				t.Hears = append(t.Hears, place)
			} else if i < len(m.Heard) && q.land.Addresses[target] != "" {
				t.Lost = append(t.Lost, place)
			}
		}
		q.said = append(q.said, t)
	}
	return q.ready()
}

// reached notes what came of a try of the hub.
func (q *inquest) reached(r Reached) (over bool) {
	q.back[q.land.Places[r.Rank]] = q.back[q.land.Places[r.Rank]] || r.OK
	if r.Stage != q.stage || q.own == 0 {
		return false
	}
	q.own--
	return q.ready()
}

// surveyed takes which hosts acknowledge what was sent to them, and asks about those that are not heard.
func (q *inquest) surveyed(acknowledging []int) (over bool) {
	hub := judge.Testimony{From: q.land.Hub}
	var asked []int
	for _, p := range slices.Compact(slices.Sorted(slices.Values(q.land.Places))) {
		if p == q.land.Hub {
			continue
		}
		all := q.land.at(p)
		here := slices.DeleteFunc(slices.Clone(all), func(rank int) bool { return q.ranks.gone[rank] })
		silent := slices.ContainsFunc(all, func(rank int) bool { return q.lost[rank] != "" })
		acknowledges := func(rank int) bool { return slices.Contains(acknowledging, rank) }
		switch i := slices.IndexFunc(here, func(rank int) bool { return q.heard[rank] }); {
		case i >= 0 && silent: // another rank there answers: what was cut works again
			hub.Lost = append(hub.Lost, p)
			q.back[p] = true
		case i >= 0:
			hub.Hears = append(hub.Hears, p)
			asked = append(asked, here[i])
		case !silent && slices.ContainsFunc(here, acknowledges):
			hub.Hears = append(hub.Hears, p)
		case len(here) > 0 || silent:
			hub.Lost = append(hub.Lost, p)
			q.targets = append(q.targets, all[0])
		}
	}
	q.said = append(q.said, hub)
	if len(q.targets) == 0 { // does the way between two that have lost each other pass again?
		asked = nil
		for _, l := range q.losses {
			if l.silent && l.peer >= 0 && q.heard[l.from] && !q.ranks.gone[l.from] && len(asked) < MaxWitnesses {
				asked = append(asked, l.from)
				q.targets = append(q.targets, l.peer)
			}
		}
		return len(asked) == 0 || q.ask(last, asked, q.targets, knockedTime)
	}
	if len(asked) == 0 {
		return true
	}
	q.targets = q.targets[:min(len(q.targets), MaxTargets)]
	q.reach(q.targets, KnockTime)
	return q.ask(witnesses, asked[:min(len(asked), MaxWitnesses)], q.targets, knockedTime)
}

// explains reports whether the death of a rank explains what the inquest is about.
func (q *inquest) explains(rank int) bool {
	return len(q.lost) == 0 && (slices.ContainsFunc(q.losses, func(l loss) bool { return l.peer == rank }) ||
		q.late != nil && slices.Contains(q.late.Culprits, rank))
}

// testimonies are what hosts have said, and what follows from the connections that broke.
func (q *inquest) testimonies() []judge.Testimony {
	all := slices.Clone(q.said)
	for _, l := range q.losses {
		t := judge.Testimony{From: q.land.of(l.from)}
		if peer := []int{q.land.of(l.peer)}; l.silent {
			t.Lost = peer
		} else {
			t.Hears = peer
		}
		all = append(all, t)
	}
	return all
}

// stopped is the Failure of an inquiry where all hosts answer: processes that still do not are stopped. If all answer
// by now, some host was cut off.
func (q *inquest) stopped() *Failure {
	f, late := *q.late, *q.late.Late
	f.Late = &late
	f.Culprits = slices.DeleteFunc(slices.Clone(f.Culprits), func(rank int) bool { return q.heard[rank] })
	if len(f.Culprits) == 0 {
		late.Last, f.Culprits, f.Reason = Called{}, nil, history.Ranks(q.late.Culprits)+" answered nothing for a time"
		f.Candidates = append(slices.Clone(q.late.Culprits), q.land.at(q.land.Hub)...)
		slices.Sort(f.Candidates)
		f.Candidates = slices.Compact(f.Candidates)
	}
	return &f
}

// broken is the loss to tell of where all hosts live, and whether the way between its ends is the fault: the way does
// not pass now either, or there is no silence and their connection was reset. Else one of the two hosts may have been
// cut off, and a process may have ended, and reset connections, for that.
func (q *inquest) broken() (l loss, proven bool) {
	for _, l := range q.losses {
		if l.silent && slices.ContainsFunc(q.said, func(t judge.Testimony) bool {
			return t.From == q.land.of(l.from) && slices.Contains(t.Lost, q.land.of(l.peer))
		}) {
			return l, true
		}
	}
	if i := slices.IndexFunc(q.losses, func(l loss) bool { return l.silent }); i >= 0 {
		return q.losses[i], false
	}
	return q.losses[0], true
}

// found is the Failure that follows from an inquest.
func (q *inquest) found() *Failure {
	hub := &q.said[0]
	f := &Failure{Rank: -1, Reason: q.reason}
	if q.late != nil {
		late := *q.late.Late
		late.Last = Called{}
		f.Late, f.Reason = &late, history.Ranks(q.late.Culprits)+" answered nothing"
	}
	if len(hub.Lost) == 0 {
		if q.late != nil {
			return q.stopped()
		}
		l, proven := q.broken()
		f.Rank = l.from
		switch pair := []int{min(l.from, l.peer), max(l.from, l.peer)}; {
		case l.peer < 0:
			f.Candidates = append(q.land.at(q.land.of(l.from)), q.land.at(q.land.Hub)...)
			slices.Sort(f.Candidates)
		case proven:
			f.Path, f.Culprits = true, pair
		default:
			f.Candidates = pair
		}
		return f
	}
	if ranks := slices.Sorted(maps.Keys(q.lost)); len(ranks) > 0 {
		f.Reason = fmt.Sprintf("the rendezvous hears nothing of %s: %s", history.Ranks(ranks), q.lost[ranks[0]])
	}
	l := judge.Losses(q.testimonies())
	if i := slices.IndexFunc(hub.Lost, func(p int) bool { return q.back[p] }); i >= 0 { // what was cut works again
		l = judge.Loss{Candidates: append(l.Culprits, hub.Lost[i], q.land.Hub)}
	}
	switch {
	case l.Path:
		f.Path = true
		for _, p := range l.Culprits {
			f.Culprits = append(f.Culprits, q.land.at(p)[:min(1, len(q.land.at(p)))]...)
		}
		slices.Sort(f.Culprits)
		if len(f.Culprits) < 2 { // the hub's process is no rank
			f.Candidates, f.Culprits, f.Path = f.Culprits, nil, false
		} else if f.Late != nil {
			f.Late.Reason = judge.Link
		}
	case len(l.Culprits) > 0:
		f.Culprits = q.land.at(l.Culprits[0])
		f.Rank, f.Died = f.Culprits[0], f.Late == nil
		f.Reason = cmp.Or(q.lost[f.Rank], q.land.Silence) + ", and answers no other host: it is down or cut off"
	default:
		for _, p := range l.Candidates {
			f.Candidates = append(f.Candidates, q.land.at(p)...)
		}
		slices.Sort(f.Candidates)
		f.Candidates = slices.Compact(f.Candidates)
	}
	f.Culprits = f.Culprits[:min(len(f.Culprits), MaxListed)]
	f.Candidates = f.Candidates[:min(len(f.Candidates), MaxListed)]
	return f
}
