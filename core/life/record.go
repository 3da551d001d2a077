// The record of a rank: its last calls and its state, for the history that a failure writes.

package life

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// ID is IDOf the communicator's group.
func (l *Life) ID() string { return IDOf(l.group) }

// IDOf identifies a group's communicator in what is written of it, the same on all ranks.
func IDOf(group bootstrap.Group) string {
	sum := sha256.Sum256(append([]byte("ringo history "), group.Key()...)) // the key itself is secret
	return hex.EncodeToString(sum[:4])
}

// Record is this rank's last calls, where this rank is, and why the communicator has failed. Record may be called at
// any time, and does not wait.
func (l *Life) Record() history.Record {
	r := history.Record{
		Comm: l.ID(), Rank: l.Rank, Size: l.Size, Host: l.Host, Pid: os.Getpid(), Time: time.Now(),
		State: judge.State{Rank: l.Rank, Heard: true, Peer: -1}, Waited: l.Guard.Waited(),
	}
	if v := l.verdict.Load(); v != nil && v.Err != call.ErrClosed {
		r.Cause, r.Culprits, r.Candidates = v.Err.Error(), v.Culprits, v.Candidates
		r.Time, _ = l.FailedAt() // also if it is written again later
		if peer, ok := errors.AsType[*PeerError](v.Err); ok && peer.Failure.Late != nil {
			r.Late = peer.Failure.Late.Reason.String()
		}
	}
	if r.Still = l.Guard.Still(); r.Waited >= Slow {
		r.Silent = l.group.Silent()
	}
	number, pairwise := l.Turn.inside()
	r.Calls, r.Total = l.Turn.history()
	l.Turn.numbers.Lock()
	r.State.Last = l.Turn.seq
	last := l.Turn.messages.Messages()
	l.Turn.numbers.Unlock()
	r.State.Unsure = l.onGPU()
	l.mu.Lock()
	stop := l.stop
	r.Path = len(r.Culprits) == 2 && l.machine.word.OfPath()
	l.mu.Unlock()
	switch {
	case stop != nil:
		r.State.At, r.State.Peer, r.State.Sending, r.State.Round, r.State.Step = stop.At, stop.Peer, stop.Sending, stop.Round,
			stop.Step
		r.Waited, r.Still = stop.Waited, stop.Still
	case pairwise && len(last) > 0:
		e := last[len(last)-1]
		r.State.Peer, r.State.Sending = int(e.Peer), !e.Recv
	default:
		r.State.At = number
	}
	return r
}

// FailedAt returns when this rank learned that the communicator has failed, and whether it has.
func (l *Life) FailedAt() (at time.Time, failed bool) {
	if t := l.failed.Load(); t != nil {
		return *t, true
	}
	return time.Time{}, false
}

// history is the last calls in words, oldest first, and how many there were since the beginning.
func (t *Turn) history() (calls []history.Call, total uint64) {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	messages := t.messages.Messages()
	tell := func(after uint64) { // the messages between a collective and the next one
		for len(messages) > 0 && messages[0].After <= after {
			m := messages[0]
			messages = messages[1:]
			verb, way := "Send", "to"
			if m.Recv {
				verb, way = "Recv", "from"
			}
			s := call.ReadSign(m.Stamp)
			calls = append(calls,
				history.Call{What: fmt.Sprintf("%s(count %d, %v) %s rank %d", verb, s.Count, s.Type, way, m.Peer)})
		}
	}
	first := max(t.seq, depth) - depth + 1
	for n := first; n <= t.seq && n > 0; n++ {
		tell(n - 1)
		c := history.Call{Number: n, What: call.ReadSign(t.recent[n%depth]).String()}
		if n%depth == 0 {
			c.Time = time.Unix(0, t.clock)
		}
		calls = append(calls, c)
	}
	tell(t.seq)
	return calls[max(len(calls), depth)-depth:], t.seq + t.messages.Len()
}
