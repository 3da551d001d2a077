package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A LeftError is an AllGather that cannot complete: a rank has said goodbye.
type LeftError struct{ Rank int }

func (e *LeftError) Error() string { return fmt.Sprintf("rank %d has left the group", e.Rank) }

// A WithdrawnError is an AllGather that one rank gave up before all had come. It has
// failed on every rank, and the next AllGather of each rank meets the next of all others.
type WithdrawnError struct {
	Rank    int    // that gave up; -1 if the group has failed
	Missing []int  // ranks that had not come until then, at most 1024
	Reason  string // of the rank that gave up
	Err     error  // on the rank that gave up: its context's error, or ErrClosed; nil on others
}

func (e *WithdrawnError) Error() string {
	who := fmt.Sprintf("rank %d gave up", e.Rank)
	if e.Rank < 0 {
		who = "given up"
	}
	if len(e.Missing) > 0 {
		who += fmt.Sprintf(" when rank %s had not come", ranges(e.Missing))
	}
	return fmt.Sprintf("%s: %s", who, e.Reason)
}

func (e *WithdrawnError) Unwrap() error { return e.Err }

// A gather is an AllGather of a group to which some ranks have not come yet.
type gather struct {
	parts     [][]byte // by rank
	come      int
	withdrawn bool // the AllGather has failed; ranks that come later are told
}

// gather notes that a rank comes to AllGather seq, and returns the gather.
func (r *coordinator) gather(rank int, seq uint64) *gather {
	r.next[rank]++
	g := r.gathers[seq]
	if g == nil {
		g = &gather{parts: make([][]byte, r.size)}
		r.gathers[seq] = g
	}
	if g.come++; g.come == r.size {
		delete(r.gathers, seq)
	}
	return g
}

func (r *coordinator) addPart(rank int, m *part) bool {
	if m.Seq != r.next[rank] {
		return false
	}
	g := r.gather(rank, m.Seq)
	switch {
	case g.withdrawn:
	case r.failure != nil:
		r.giveUp(g, m.Seq, r.failure.Rank, r.failure.Error())
	default:
		g.parts[rank] = m.Data
		if g.come == r.size {
			r.deliver(&gathered{Seq: m.Seq, Data: g.parts})
		}
	}
	return true
}

// deliver sends a result to all ranks; a large one only to the heads and to ranks without a head.
func (r *coordinator) deliver(g *gathered) {
	bytes := 0
	for _, p := range g.Data {
		bytes += len(p)
	}
	direct := r.others(-1)
	if bytes >= headedBytes {
		var there []int
		direct = slices.DeleteFunc(direct, func(q int) bool {
			h := r.heads[q]
			if h < 0 || r.gone[h] {
				return false
			}
			there = append(there, q)
			return true
		})
		if len(there) > 0 {
			r.kept.keep(g)
			r.tell(there, &held{g.Seq})
		}
	}
	r.tell(direct, g)
}

// resend sends a result to a rank that could not get it from its head.
func (r *coordinator) resend(rank int, m *resend) bool {
	g := r.kept[m.Seq]
	if g != nil {
		r.tell([]int{rank}, g)
	}
	return g != nil
}

// withdraw ends an AllGather that a rank gives up, unless the AllGather has ended: then
// the rank's answer is on its way. A rank may give up an AllGather instead of coming to it.
func (r *coordinator) withdraw(rank int, m *withdraw) bool {
	if m.Seq > r.next[rank] {
		return false
	}
	g := r.gathers[m.Seq]
	if m.Seq == r.next[rank] {
		g = r.gather(rank, m.Seq)
	}
	if g != nil && !g.withdrawn {
		r.giveUp(g, m.Seq, rank, m.Reason)
	}
	return true
}

// withdrawAll gives up the AllGathers that a leaving rank waits for.
func (r *coordinator) withdrawAll(rank int, reason string) {
	for seq, g := range r.gathers {
		if seq < r.next[rank] && !g.withdrawn {
			r.giveUp(g, seq, rank, reason)
		}
	}
}

// giveUp fails an AllGather on all ranks.
func (r *coordinator) giveUp(g *gather, seq uint64, rank int, reason string) {
	g.withdrawn, g.parts = true, nil
	w := &withdrawn{Seq: seq, Rank: rank, Reason: reason}
	for q, next := range r.next {
		if next <= seq && len(w.Missing) < maxListed {
			w.Missing = append(w.Missing, q)
		}
	}
	r.tell(r.others(-1), w)
}

// AllGather waits for the coordinator's message: only the coordinator decides whether an AllGather
// completes or fails, and it decides the same for all ranks.
func (m *member) AllGather(ctx context.Context, data []byte) ([][]byte, error) {
	cause := context.Cause(ctx)
	if limit := min(maxBlob, maxGather/m.size); len(data) > limit {
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
	m.order.Lock()
	defer m.order.Unlock()
	seq, done = m.next, make(chan result, 1)
	m.mu.Lock()
	err = m.refuse(seq)
	if err == nil {
		m.waits[seq] = done
		if w := m.withdrawn[seq]; w != nil {
			m.settle(seq, result{err: w})
			delete(m.withdrawn, seq)
		}
	}
	m.mu.Unlock()
	if err != nil {
		return seq, nil, err
	}
	m.next++
	if cause != nil {
		m.up(&withdraw{Seq: seq, Reason: cause.Error()})
	} else {
		m.up(&part{Seq: seq, Data: slices.Clone(data)})
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
			m.say(&withdraw{Seq: seq, Reason: cause.Error()})
		case <-m.closed: // Leave withdraws
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
		delete(m.waits, seq)
		m.mu.Unlock()
		return nil, fmt.Errorf("%w (and the rendezvous did not answer within %s: on other ranks it may have completed)",
			cause, spell(m.patience))
	}
}
