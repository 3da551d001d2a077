package bootstrap

import (
	"fmt"
	"sync/atomic"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// A joinSet is the ranks that wait until all are here. It knows no network.
type joinSet struct {
	size  int
	first int           // the rank that came first and set size
	slots map[int]*slot // by rank

	partial bool           // the group may begin without ranks that do not come, as the first rank has said
	came    []int          // with partial, once it has begun: by new rank, the number that Meet was called with
	away    map[int]string // with partial: by rank that was here, why it is not any more
}

type slot struct {
	rendezvous.Claim
	from string // address of the connection
	link *link

	sealed bool // its connection goes over TLS

	direct   func(message) // of a rank in the hub's process, in place of the link; under the lock of the coordinator
	moved    *member       // the member of that rank, nil before it has moved; under mu of the hub
	released atomic.Bool
}

func (s *slot) String() string {
	return fmt.Sprintf("process %d on %s (%s)", s.Pid, s.Host, s.from)
}

// add gives s its slot, or returns why s cannot have one.
func (l *joinSet) add(s *slot) *rendezvous.Refusal {
	if l.slots == nil {
		l.size, l.first, l.slots = s.Size, s.Rank, map[int]*slot{}
		l.partial, l.away = s.Partial, map[int]string{}
	}
	if s.Size != l.size {
		return conflict("rank %d, %v, says there are %d ranks, but rank %d, %v, says %d: start all with one RINGO_SIZE",
			s.Rank, s, s.Size, l.first, l.slots[l.first], l.size)
	}
	if first := l.slots[l.first]; first != nil && first.sealed != s.sealed {
		with, without := s, first
		if first.sealed {
			with, without = first, s
		}
		return conflict("rank %d, %v, asks for TLS and rank %d, %v, does not: set RINGO_TLS, and RINGO_TLS_CERT, _KEY and "+
			"_CA if it is by certificates, for all ranks or for none",
			with.Rank, with, without.Rank, without)
	}
	if s.Partial != l.partial {
		return conflict("of ranks %d, %v, and %d one goes on without ranks that do not come and one does not: start the "+
			"same program on all", s.Rank, s, l.first)
	}
	switch other := l.slots[s.Rank]; {
	case other == nil:
	case other.Pid == s.Pid && other.Host == s.Host:
		return conflict("process %d on %s joins as rank %d again (%s, then %s): it must Close the first group before, or "+
			"have another ID",
			s.Pid, s.Host, s.Rank, other.from, s.from)
	default:
		return conflict("two processes claim rank %d: %v and %v: give each its own RINGO_RANK, "+
			"or if they are two jobs, each job its own address", s.Rank, other, s)
	}
	l.slots[s.Rank] = s
	return nil
}

func conflict(format string, args ...any) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Conflict, Rank: -1, Reason: fmt.Sprintf(format, args...)}
}

func (l *joinSet) full() bool { return l.slots != nil && len(l.slots) == l.size }

// gaveUp is the refusal for all when a rank stops waiting.
func (l *joinSet) gaveUp(rank int, g *rendezvous.GiveUp, strangers string) *rendezvous.Refusal {
	if len(g.Dead) > 0 {
		return &rendezvous.Refusal{Cause: rendezvous.Dead, Rank: g.Dead[0],
			Reason: fmt.Sprintf("rank %d will not come: %s", g.Dead[0], g.Reason)}
	}
	if !g.Timeout {
		return &rendezvous.Refusal{Cause: rendezvous.Cancelled, Rank: rank,
			Reason: fmt.Sprintf("rank %d, %v, was cancelled while it waited for the others", rank, l.slots[rank])}
	}
	var here, missing []int
	for r := range l.size {
		if l.slots[r] == nil {
			missing = append(missing, r)
		} else {
			here = append(here, r)
		}
	}
	return &rendezvous.Refusal{Cause: rendezvous.Timeout, Rank: -1,
		Missing: missing[:min(len(missing), rendezvous.MaxListed)],
		Reason: fmt.Sprintf("%d of %d ranks did not come within %s: %s (joined: %s)%s; start them or raise "+
			"RINGO_JOIN_TIMEOUT",
			len(missing), l.size, rendezvous.Spell(g.Waited), rendezvous.Ranges(missing), rendezvous.Ranges(here), strangers)}
}

func (l *joinSet) died(rank int, why string) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Dead, Rank: rank,
		Reason: fmt.Sprintf("rank %d, %v, died while it waited for the others: %s", rank, l.slots[rank], why)}
}

// ended is the refusal for all when a rank cannot come any more.
func (l *joinSet) ended(rank int, why string) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Dead, Rank: rank,
		Reason: fmt.Sprintf("rank %d will not come, for its process has ended: %s", rank, why)}
}

// busy is the refusal of a rank that comes for the next group, before all others have left
// this one.
func busy(here []int) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Busy, Rank: -1,
		Reason: fmt.Sprintf("the group before has not ended, rank %s is in it", rendezvous.Ranges(here))}
}

// hosts are the ranks in the hub's process.
func (l *joinSet) hosts() (h []int) {
	for r := range l.size {
		if s := l.slots[r]; s != nil && s.Hosts {
			h = append(h, r)
		}
	}
	return h
}
