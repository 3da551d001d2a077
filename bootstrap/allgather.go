package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// refuse is why AllGather seq cannot complete, nil if it may, as far as is known. Under mu.
func (m *member) refuse(seq uint64) error {
	switch stops := m.gathers.stops; {
	case m.uplink.closed():
		return ErrClosed
	case m.failure != nil:
		return m.failure
	case stops != nil && seq >= stops.Seq:
		return &LeftError{stops.Rank}
	}
	return nil
}

// fetch gets the result of AllGather seq from the head, or else from the hub.
func (m *member) fetch(seq uint64) {
	g, err := fetch(m.over, m.key, m.gathers.head, seq)
	if err != nil {
		m.uplink.say(&rendezvous.Resend{Held: rendezvous.Held{Seq: seq}})
		return
	}
	m.hear(g)
}

// AllGather waits for the coordinator's message: only the coordinator decides whether an AllGather
// completes or fails, and it decides the same for all ranks.
func (m *member) AllGather(ctx context.Context, data []byte) ([][]byte, error) {
	cause := context.Cause(ctx)
	if limit := min(rendezvous.MaxBlob, rendezvous.MaxGather/m.size); len(data) > limit {
		cause = fmt.Errorf("%d bytes from each of %d ranks: the limit is %d", len(data), m.size, limit)
	}
	seq, done, err := m.come(data, cause)
	var parts [][]byte
	if err == nil {
		parts, err = m.outcome(ctx, seq, done, cause)
	}
	if err != nil {
		return nil, fmt.Errorf("all-gather: %w", err)
	}
	return slices.Clone(parts), nil // ranks of one process share the slice
}

// come sends the coordinator this rank's part, or, if cause is not nil, that the rank gives up.
func (m *member) come(data []byte, cause error) (seq uint64, done chan result, err error) {
	m.uplink.order.Lock()
	defer m.uplink.order.Unlock()
	seq = m.gathers.next
	m.mu.Lock()
	if err = m.refuse(seq); err == nil {
		done = m.gathers.begin(seq)
	}
	m.mu.Unlock()
	if err != nil {
		return seq, nil, err
	}
	m.gathers.next++
	if cause != nil {
		m.uplink.up(&rendezvous.Withdraw{Seq: seq, Reason: cause.Error()})
	} else {
		m.uplink.up(&rendezvous.Part{Seq: seq, Data: slices.Clone(data)})
	}
	return seq, done, nil
}

// outcome waits for the result of an AllGather. When ctx ends it withdraws, and waits for the coordinator's answer.
func (m *member) outcome(ctx context.Context, seq uint64, done <-chan result, cause error) ([][]byte, error) {
	if cause == nil {
		select {
		case got := <-done:
			return got.data, got.err
		case <-ctx.Done():
			cause = context.Cause(ctx)
			m.uplink.say(&rendezvous.Withdraw{Seq: seq, Reason: cause.Error()})
		case <-m.uplink.open.Done(): // Leave withdraws
			cause = ErrClosed
		}
	}
	select {
	case got := <-done:
		if w, ok := got.err.(*WithdrawnError); ok {
			w.Err = cause
		}
		return got.data, got.err
	case <-time.After(m.patience):
		m.mu.Lock()
		delete(m.gathers.waits, seq)
		m.mu.Unlock()
		return nil, fmt.Errorf("%w (and the rendezvous did not answer within %s: on other ranks it may have completed)",
			cause, rendezvous.Spell(m.patience))
	}
}
