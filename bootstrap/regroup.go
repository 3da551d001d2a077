package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// Regroup waits until the coordinator tells which ranks go on.
func (m *member) Regroup(ctx context.Context, wait time.Duration) (Regrouping, error) {
	if m.uplink.closed() {
		return Regrouping{}, fmt.Errorf("regroup: %w", ErrClosed)
	}
	if ctx.Err() != nil { // the others would wait for this rank
		return Regrouping{}, fmt.Errorf("regroup: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	m.round++
	round, done := m.round, make(chan *rendezvous.Regrouped, 1)
	m.regroup = done
	m.mu.Unlock()
	m.uplink.say(&rendezvous.Regroup{Round: round, Wait: wait})
	late := time.NewTimer(wait + goodbyeTime)
	defer late.Stop()
	select {
	case got := <-done:
		return m.regrouping(got)
	case <-ctx.Done():
		m.uplink.say(&rendezvous.Regroup{})
		return Regrouping{}, fmt.Errorf("regroup: %w", context.Cause(ctx))
	case <-m.uplink.open.Done():
		return Regrouping{}, fmt.Errorf("regroup: %w", ErrClosed)
	case <-m.uplink.ended:
		return m.regroupAlone(ctx, wait)
	case <-late.C:
		m.uplink.say(&rendezvous.Regroup{})
	}
	return Regrouping{}, errNoRendezvous
}

var errNoRendezvous = errors.New("regroup: the rendezvous does not answer: has the host of the process that serves " +
	"it died, or is this one cut off? ranks of \"ringo run\" have one that outlives them; else open again, under the " +
	"same variables")

func (m *member) regrouping(got *rendezvous.Regrouped) (Regrouping, error) {
	r := Regrouping{Members: got.Members}
	rank := slices.Index(got.Members, m.rank)
	switch {
	case rank < 0 && got.Reason != "":
		return r, fmt.Errorf("regroup: %w: %s", ErrExcluded, got.Reason)
	case rank < 0:
		return r, fmt.Errorf("regroup: %w", ErrExcluded)
	case got.Reason != "":
		return r, fmt.Errorf("regroup: nowhere to meet: %s", got.Reason)
	case len(got.Members) == 1:
		r.Group = Local(1)[0]
	case got.Here != nil:
		r.Group = got.Here.([]Group)[rank]
	default:
		copy(r.ID[:], got.ID)
	}
	return r, nil
}
