package bootstrap

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// MaxCard is the most bytes of a card.
const MaxCard = rendezvous.MaxCard

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
