package bootstrap

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Position is a rank's progress in its sequence of collectives. An old Position stays
// true: the calls were begun.
type Position struct {
	Calls   []Called // the last collectives that the rank has begun, oldest first; 64 of them are kept
	Counts  []int    // of the last of Calls, if all ranks have to give it the same list
	Waiting bool     // the rank is in the last of Calls and has waited long
	Stop    Stopped  // for Late: where the rank's operation was stopped
	Awaits  []int    // for Inquire: the ranks whose connection it waits for
	Needs   Need     // for Inquire: the ranks without whose part it cannot end its collective

	// Messages are for Inquire. If this rank waits in a collective they are how many messages it has begun to send to each
	// peer, else how many it has begun to receive from peers, counted from the beginning of the group.
	Messages []Messages
}

// A Need is the ranks without whose part a rank cannot end a collective: Nobody, Everyone, or one rank (NeedOf).
type Need int32

// The Needs beside those of NeedOf.
const (
	Nobody Need = iota
	Everyone
	ofRank
)

// NeedOf is the Need of one rank's part.
func NeedOf(rank int) Need { return ofRank + Need(rank) }

func (n Need) of(rank int) bool { return n == Everyone || n == NeedOf(rank) }

// Messages count the Sends to a peer, or the Recvs from a peer, that a rank has begun. Call is the last Recv.
type Messages struct {
	Peer  int
	Count uint64
	Call  [16]byte
}

// The most Messages and Counts of a Position.
const (
	maxMessages = 1024
	maxCounts   = 1024
)

// Called is a collective that a rank has begun. All ranks must begin equal calls
// under one Number. Number 0 is for calls that are not compared.
type Called struct {
	Number uint64
	Call   [16]byte // opaque to this package
}

// maxCalls is the most calls of a Position that are sent.
const maxCalls = 64

// recent is p with only its last maxCalls calls, and without lists that are too long.
func (p Position) recent() Position {
	p.Calls = p.Calls[max(0, len(p.Calls)-maxCalls):]
	if len(p.Messages) > maxMessages {
		p.Needs, p.Messages = Nobody, nil // messages left out would count as 0
	}
	if len(p.Counts) > maxCounts {
		p.Counts = nil
	}
	return p
}

// last is the highest number that the rank has begun, 0 if none.
func (p Position) last() (n uint64) {
	for _, c := range p.Calls {
		n = max(n, c.Number)
	}
	return n
}

// waitsIn is the number of the collective in which the rank has waited long, 0 if the rank does not wait.
func (p Position) waitsIn() uint64 {
	if !p.Waiting || len(p.Calls) == 0 {
		return 0
	}
	return p.Calls[len(p.Calls)-1].Number
}

// A Disagreement says that two ranks have begun different calls under one Number.
type Disagreement struct {
	Number       uint64
	RankA, RankB int // RankA < RankB
	CallA, CallB [16]byte
	Counts       *Differ // nil if the calls do not differ in their Counts, or too little is known
}

// A Differ is the first entry in which the Counts of two ranks differ.
type Differ struct{ Entry, A, B int }

// firstDiffer is the Differ of two lists, nil if one is not known.
func firstDiffer(a, b []int) *Differ {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return &Differ{i, a[i], b[i]}
		}
	}
	return nil
}

func (d *Disagreement) String() string {
	return fmt.Sprintf("ranks %d and %d make different calls as collective #%d", d.RankA, d.RankB, d.Number)
}

// before orders disagreements: the first in the sequence is the cause of later
// ones. Under one Number the disagreement of the lowest ranks comes first.
func (d *Disagreement) before(e *Disagreement) bool {
	return e == nil || cmp.Or(cmp.Compare(d.Number, e.Number), cmp.Compare(d.RankA, e.RankA),
		cmp.Compare(d.RankB, e.RankB)) < 0
}

// rollTime is the least time between two roll calls. A rank whose position came
// within this time is not asked again.
const rollTime = time.Second

// A ledger compares the positions of the ranks of a group.
type ledger struct {
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
	gone   *departure               // of the rank that left earliest in the sequence

	disagree *Disagreement // the first known one
}

// An entry is the lowest rank known to have begun a Number, its call, and the ranks that have begun
// the same call or another one, at most maxListed of each.
type entry struct {
	rank      int
	call      [16]byte
	counts    []int
	same, odd []int32
}

type departure struct {
	rank int
	last uint64
}

// ledgerDepth is how many Numbers are remembered. Ranks that are further apart
// than this are not compared.
const ledgerDepth = 1024

func newLedger(size int) *ledger {
	return &ledger{
		first: map[uint64]*entry{}, ends: map[int]uint64{}, last: make([]uint64, size), heard: make([]time.Time, size),
		asked:  make([]time.Time, size),
		inside: map[int]Position{}, wanted: map[int]map[int]Messages{},
	}
}

// note compares the position of a rank with the positions of the others.
func (l *ledger) note(rank int, p Position, now time.Time) {
	l.heard[rank] = now
	l.waited = max(l.waited, p.waitsIn())
	for i, c := range p.Calls {
		if c.Number > l.last[rank] && c.Number+ledgerDepth > l.top {
			l.last[rank] = c.Number
			var counts []int
			if i == len(p.Calls)-1 {
				counts = p.Counts
			}
			l.begun(rank, c, counts)
		}
	}
	if len(l.first) > 2*ledgerDepth {
		for n := range l.first {
			if n+ledgerDepth <= l.top {
				delete(l.first, n)
			}
		}
	}
	l.compare(rank, p)
}

// compare compares a message that a rank waits for with the collective that its peer is in.
func (l *ledger) compare(rank int, p Position) {
	if p.waitsIn() == 0 {
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
func (l *ledger) starves(rank int, m Messages) {
	p := l.inside[m.Peer]
	n := p.waitsIn()
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

func (l *ledger) begun(rank int, c Called, counts []int) {
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
	if list := e.list(same); len(*list) < maxListed {
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
func (l *ledger) tied(d *Disagreement) bool {
	e := l.first[d.Number]
	return e != nil && len(e.same) == len(e.odd)
}

// minority are the ranks whose call differs from the call of most; if there is no majority, RankA and RankB.
func (l *ledger) minority(d *Disagreement) []int {
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
func (l *ledger) left(rank int, p Position) {
	d := &departure{rank, p.last()}
	l.ends[rank] = d.last
	if l.gone == nil || cmp.Or(cmp.Compare(d.last, l.gone.last), cmp.Compare(rank, l.gone.rank)) < 0 {
		l.gone = d
	}
}

// end is the last Number that a rank had begun when it left, unsaid if it did not tell.
func (l *ledger) end(rank int) uint64 {
	if n, ok := l.ends[rank]; ok {
		return n
	}
	return unsaid
}

// verdict is the failure that the positions show, nil if none is known. A rank that
// left is named rather than a disagreement later in the sequence.
func (l *ledger) verdict() *Failure {
	if g := l.gone; g != nil && g.last < l.waited && (l.disagree == nil || l.disagree.Number > g.last+1) {
		return g.failure()
	}
	if l.disagree != nil {
		return &Failure{Rank: -1, Culprits: l.minority(l.disagree), Disagree: l.disagree}
	}
	return nil
}

// failure is the Failure of ranks that wait for the one that left.
func (d *departure) failure() *Failure {
	return &Failure{Rank: d.rank, Culprits: []int{d.rank}, Left: true, Number: d.last}
}

// due reports whether a roll call may begin: the last one was rollTime ago.
func (l *ledger) due(now time.Time) bool { return now.Sub(l.roll) >= rollTime }

// missing are the ranks of a list whose positions should be asked for now.
func (l *ledger) missing(ranks []int, now time.Time) (ask []int) {
	l.roll = now
	for _, r := range ranks {
		if now.Sub(l.heard[r]) >= rollTime {
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
func (l *ledger) answered(rank int) {
	if !l.asked[rank].IsZero() {
		l.asked[rank] = time.Time{}
		l.open--
	}
}

// silent are the ranks of a list that were asked a while ago and have not answered.
func (l *ledger) silent(ranks []int, now time.Time) (s []int) {
	for _, r := range ranks {
		if at := l.asked[r]; !at.IsZero() && now.Sub(at) >= rollTime {
			s = append(s, r)
		}
	}
	return s
}
