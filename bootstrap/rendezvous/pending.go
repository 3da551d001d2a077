package rendezvous

import (
	"slices"
	"time"
)

// SettleTime is how long a rank's complaint waits before the others hear it. When
// a rank dies, its neighbours may see their data connections break, and complain,
// before the hub sees the death. Then all should hear of the death instead.
const SettleTime = 100 * time.Millisecond

// A pending failure is one that settles.
type pending struct {
	Failure
	from    int    // the rank that complains; -1 is the machine itself
	leaving bool   // from waits to leave
	losses  []loss // if it is of connections that broke: the first, and those of which others complain meanwhile
	polls   int    // see undecided
}

// A loss is that a rank's connection with a peer broke, or with the hub if that is -1: silently, if the peer's host
// answered nothing; else that host has said so.
type loss struct {
	from, peer int
	silent     bool
}

// complaint is the pending failure of a rank's Fail, and the rank that would explain it all by having left, -1 if none
// would.
func complaint(rank int, m *Fail) (p *pending, explains int) {
	p = &pending{Failure: Failure{Rank: rank, Culprits: m.Culprits, Reason: m.Reason}, from: rank}
	explains = rank
	switch {
	case m.Broken && len(m.Culprits) == 1:
		explains = -1
	case m.Broken:
		p.Path, explains = true, m.Culprits[0]+m.Culprits[1]-rank
	case len(m.Culprits) == 1:
		explains = m.Culprits[0]
	case len(m.Culprits) == 0:
		p.Culprits = []int{rank}
	}
	if m.Broken {
		p.losses = []loss{{rank, explains, m.Silent}}
	}
	return p, explains
}

// valid reports whether a rank may send such a Fail.
func (m *Fail) valid(rank, size int) bool {
	return !slices.ContainsFunc(m.Culprits, func(q int) bool { return q < 0 || q >= size }) &&
		(!m.Broken || slices.Contains(m.Culprits, rank) && (len(m.Culprits) == 1 || m.Culprits[0] != m.Culprits[1]))
}

// maxPolls is how often ranks that have not yet begun the disputed Number are asked for their positions.
const maxPolls = 4

// undecided are the ranks of a list that may yet show which of two calls most ranks make; none if that is known, or
// after maxPolls.
func (p *pending) undecided(calls *callLog, here []int) []int {
	d := p.Disagree
	if d == nil || p.polls == maxPolls || !calls.tied(d) {
		return nil
	}
	p.polls++
	return slices.DeleteFunc(here, func(q int) bool { return calls.last[q] >= d.Number })
}
