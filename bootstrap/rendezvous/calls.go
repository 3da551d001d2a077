package rendezvous

import (
	"cmp"
	"slices"
	"time"
)

// RollTime is the least time between two roll calls. A rank whose position came
// within this time is not asked again.
const RollTime = time.Second

// A callLog compares the positions of the ranks of a group.
type callLog struct {
	first  map[uint64]*entry        // by Number
	ends   map[int]uint64           // by rank that has left: the last Number that it had begun
	last   []uint64                 // by rank: the highest Number that was compared
	top    uint64                   // the highest Number in first
	heard  []time.Time              // by rank: when its position came
	asked  []time.Time              // by rank: when the oldest unanswered question was asked, zero if none
	open   int                      // unanswered questions
	roll   time.Time                // the last roll call
	waited uint64                   // the highest Number in which a rank has waited long
	inside map[int]Position         // by rank: its last Position in which it waited long in a collective
	wanted map[int]map[int]Messages // by peer, then by rank: the message for which the rank has waited long
	gone   *Departure               // of the rank that left earliest in the sequence

	disagree *Disagreement // the first known one
}

// An entry is the lowest rank known to have begun a Number, its call, and the ranks that have begun
// the same call or another one, at most MaxListed of each.
type entry struct {
	rank      int
	call      [16]byte
	counts    []int
	same, odd []int32
}

// A Departure is a rank's goodbye, with the last Number that it had begun.
type Departure struct {
	Rank int
	Last uint64
}

// logDepth is how many Numbers are remembered. Ranks that are further apart
// than this are not compared.
const logDepth = 1024

func newCallLog(size int) *callLog {
	return &callLog{
		first: map[uint64]*entry{}, ends: map[int]uint64{}, last: make([]uint64, size), heard: make([]time.Time, size),
		asked:  make([]time.Time, size),
		inside: map[int]Position{}, wanted: map[int]map[int]Messages{},
	}
}

// note compares the position of a rank with the positions of the others.
func (l *callLog) note(rank int, p Position, now time.Time) {
	l.heard[rank] = now
	l.waited = max(l.waited, WaitsIn(p))
	for i, c := range p.Calls {
		if c.Number > l.last[rank] && c.Number+logDepth > l.top {
			l.last[rank] = c.Number
			var counts []int
			if i == len(p.Calls)-1 {
				counts = p.Counts
			}
			l.begun(rank, c, counts)
		}
	}
	if len(l.first) > 2*logDepth {
		for n := range l.first {
			if n+logDepth <= l.top {
				delete(l.first, n)
			}
		}
	}
	l.compare(rank, p)
}

// compare compares a message that a rank waits for with the collective that its peer is in.
func (l *callLog) compare(rank int, p Position) {
	if WaitsIn(p) == 0 {
		for _, m := range p.Messages {
			if l.wanted[m.Peer] == nil {
				l.wanted[m.Peer] = map[int]Messages{}
			}
			l.wanted[m.Peer][rank] = m
			l.starves(rank, m)
		}
	} else if p.Needs != Nobody {
		l.inside[rank] = p
		for q, m := range l.wanted[rank] {
			l.starves(q, m)
		}
	}
}

// starves notes a disagreement between a rank's Recv and the peer's collective if neither can end: the peer has not
// begun to send the message, and cannot end its collective without this rank, which has not begun it. That holds
// however old the two positions are: had the message come, the peer would have begun to send it before.
func (l *callLog) starves(rank int, m Messages) {
	p := l.inside[m.Peer]
	n := WaitsIn(p)
	sent := uint64(0)
	if i := slices.IndexFunc(p.Messages, func(m Messages) bool { return m.Peer == rank }); i >= 0 {
		sent = p.Messages[i].Count
	}
	switch {
	case sent >= m.Count:
		delete(l.wanted[m.Peer], rank)
	case l.last[rank] < n && p.Needs.of(rank) && l.first[n] != nil:
		l.begun(rank, Called{n, m.Call}, nil)
	}
}

func (l *callLog) begun(rank int, c Called, counts []int) {
	l.top = max(l.top, c.Number)
	e, known := l.first[c.Number]
	if known && e.call != c.Call {
		d := &Disagreement{Number: c.Number, RankA: e.rank, CallA: e.call, RankB: rank, CallB: c.Call,
			Counts: firstDiffer(e.counts, counts)}
		if rank < e.rank {
			d.RankA, d.CallA, d.RankB, d.CallB = d.RankB, d.CallB, d.RankA, d.CallA
			d.Counts = firstDiffer(counts, e.counts)
		}
		if d.before(l.disagree) {
			l.disagree = d
		}
	}
	if !known {
		e = &entry{rank: rank, call: c.Call, counts: counts}
		l.first[c.Number] = e
	}
	same := e.call == c.Call
	if list := e.list(same); len(*list) < MaxListed {
		*list = append(*list, int32(rank))
	}
	if rank < e.rank {
		if e.rank, e.call, e.counts = rank, c.Call, counts; !same {
			e.same, e.odd = e.odd, e.same
		}
	}
}

func (e *entry) list(same bool) *[]int32 {
	if same {
		return &e.same
	}
	return &e.odd
}

// tied reports whether equally many ranks are known to make each of the two calls.
func (l *callLog) tied(d *Disagreement) bool {
	e := l.first[d.Number]
	return e != nil && len(e.same) == len(e.odd)
}

// minority are the ranks whose call differs from the call of most; if there is no majority, RankA and RankB.
func (l *callLog) minority(d *Disagreement) []int {
	e := l.first[d.Number]
	if e == nil || l.tied(d) {
		return []int{d.RankA, d.RankB}
	}
	few := e.same
	if len(e.odd) < len(e.same) {
		few = e.odd
	}
	ranks := make([]int, len(few))
	for i, r := range few {
		ranks[i] = int(r)
	}
	slices.Sort(ranks)
	return ranks
}

// left notes that a rank has said goodbye at this position.
func (l *callLog) left(rank int, p Position) {
	d := &Departure{rank, p.last()}
	l.ends[rank] = d.Last
	if l.gone == nil || cmp.Or(cmp.Compare(d.Last, l.gone.Last), cmp.Compare(rank, l.gone.Rank)) < 0 {
		l.gone = d
	}
}

// end is the last Number that a rank had begun when it left, Unsaid if it did not tell.
func (l *callLog) end(rank int) uint64 {
	if n, ok := l.ends[rank]; ok {
		return n
	}
	return Unsaid
}

// verdict is the failure that the positions show, nil if none is known. A rank that
// left is named rather than a disagreement later in the sequence.
func (l *callLog) verdict() *Failure {
	if g := l.gone; g != nil && g.Last < l.waited && (l.disagree == nil || l.disagree.Number > g.Last+1) {
		return g.Failure()
	}
	if l.disagree != nil {
		return &Failure{Rank: -1, Culprits: l.minority(l.disagree), Disagree: l.disagree}
	}
	return nil
}

// Failure is the Failure of ranks that wait for the one that left.
func (d *Departure) Failure() *Failure {
	return &Failure{Rank: d.Rank, Culprits: []int{d.Rank}, Left: true, Number: d.Last}
}

// due reports whether a roll call may begin: the last one was RollTime ago.
func (l *callLog) due(now time.Time) bool { return now.Sub(l.roll) >= RollTime }

// missing are the ranks of a list whose positions should be asked for now.
func (l *callLog) missing(ranks []int, now time.Time) (ask []int) {
	l.roll = now
	for _, r := range ranks {
		if now.Sub(l.heard[r]) >= RollTime {
			ask = append(ask, r)
			if l.asked[r].IsZero() {
				l.asked[r] = now
				l.open++
			}
		}
	}
	return ask
}

// answered notes that a rank has answered.
func (l *callLog) answered(rank int) {
	if !l.asked[rank].IsZero() {
		l.asked[rank] = time.Time{}
		l.open--
	}
}

// silent are the ranks of a list that were asked a while ago and have not answered.
func (l *callLog) silent(ranks []int, now time.Time) (s []int) {
	for _, r := range ranks {
		if at := l.asked[r]; !at.IsZero() && now.Sub(at) >= RollTime {
			s = append(s, r)
		}
	}
	return s
}
