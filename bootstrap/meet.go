package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// MaxCard is the most bytes of a card.
const MaxCard = rendezvous.MaxCard

// A Roster lists the ranks that have come to a group of Meet, and the others.
type Roster = rendezvous.Roster

// Meet is Join for ranks that go on without ranks that do not come. The group begins when all are here, when the first
// deadline of a waiting rank passes, or when the processes of all that are not here are known to have ended. Its ranks
// are numbered anew; the Roster has their old numbers. card, of MaxCard bytes at most, is this rank's message to the
// others in the Roster.
//
// A rank that comes after the others have begun gets a *JoinError that wraps ErrExcluded, until all of them have closed
// the group. A rank that is stopped (SIGSTOP) while it waits is in the group. All ranks of an ID must call Meet, or all
// Join.
func Meet(ctx context.Context, id ID, rank, size int, card []byte, o JoinOptions) (Group, *Roster, error) {
	if len(card) > MaxCard {
		return nil, nil, &JoinError{Reason: fmt.Sprintf("a card of %d bytes, at most %d", len(card), MaxCard)}
	}
	j := &joiner{id: id, rank: rank, size: size, opt: o, partial: true, card: card}
	g, err := j.join(ctx)
	return g, j.roster, err
}

// Meet is Spec.Join with package function Meet in place of Join.
func (s Spec) Meet(ctx context.Context, card []byte, lo ListenOptions, jo JoinOptions) (Group, *Roster, error) {
	if s.Size == 1 && s.Addr == "" {
		return Local(1)[0], &Roster{Came: []int{0}, Cards: [][]byte{card}, Away: map[int]string{}}, nil
	}
	id, err := s.served(ctx, lo)
	if err != nil {
		return nil, nil, err
	}
	return Meet(ctx, id, s.Rank, s.Size, card, jo)
}

// entered takes the roster. It returns false if this rank is not on it.
func (j *joiner) entered(r *rendezvous.Roster) bool {
	rank := slices.Index(r.Came, j.rank)
	if !j.partial || rank < 0 {
		return false
	}
	j.roster = r
	j.rank, j.size = rank, len(r.Came)
	return true
}

// allHere reports whether all ranks are here that can come.
func (l *lobby) allHere(ended map[int]string) bool {
	for r := range l.size {
		if _, gone := ended[r]; !gone && l.seats[r] == nil {
			return false
		}
	}
	return len(l.seats) > 0
}

// settle numbers the ranks of a partial lobby anew, and returns their roster; nil if the lobby is not partial.
func (l *lobby) settle(ended map[int]string) *rendezvous.Roster {
	if !l.partial {
		return nil
	}
	r := &rendezvous.Roster{Came: slices.Sorted(maps.Keys(l.seats)), Away: map[int]string{}}
	for rank := range l.size {
		if l.seats[rank] != nil {
			continue
		}
		r.Away[rank] = l.away[rank]
		if why, gone := ended[rank]; gone {
			r.Away[rank] = "its process has ended: " + why
		}
	}
	seats := map[int]*seat{}
	for i, rank := range r.Came {
		s := l.seats[rank]
		r.Cards = append(r.Cards, s.Card)
		s.Rank, s.Size, seats[i] = i, len(r.Came), s
	}
	l.came, l.size, l.seats = r.Came, len(r.Came), seats
	return r
}

// late refuses a rank that comes after a partial group has begun. Under mu.
func (h *hub) late(s *seat) *rendezvous.Refusal {
	if i, came := slices.BinarySearch(h.lobby.came, s.Rank); came {
		if here, gone := h.coordinator.without(i); gone {
			return busy(here)
		}
	}
	h.warn.Warn("rendezvous: late comer refused", "rank", s.Rank, "from", s)
	return &rendezvous.Refusal{Cause: rendezvous.TooLate, Rank: s.Rank,
		Reason: fmt.Sprintf("rank %d, %v, comes too late: the others began without it %s ago", s.Rank, s,
			rendezvous.Spell(time.Since(h.began)))}
}

// vacate takes a rank out of a partial lobby. Under mu.
func (h *hub) vacate(s *seat, why string) {
	delete(h.lobby.seats, s.Rank)
	h.lobby.away[s.Rank] = why
	for h.lobby.first = range h.lobby.seats { // any rank that is left
	}
	if len(h.lobby.seats) == 0 && !h.stopped {
		h.lobby = lobby{}
		h.timer.Reset(h.opt.timeout())
	}
}
