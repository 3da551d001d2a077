package request

import (
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/trace"
)

// A Watch tells an observer of the calls of one track, one after the other. If nobody observes, the Watch is nil, and
// Arrive, Begin and End do nothing.
type Watch struct {
	observer trace.Observer
	call     trace.Call
	begun    bool
}

// Watch makes a Watch, nil if the communicator has no observer. track is 0, or another number for calls that a group
// carries out beside others.
func (n *Numberer) Watch(track int, gpu bool) *Watch {
	if n.Observer == nil {
		return nil
	}
	l := n.Life
	w := &Watch{observer: n.Observer, call: trace.Call{Comm: l.ID(), Rank: l.Rank, Size: l.Size, Host: l.Host,
		Track: track, GPU: gpu}}
	if !gpu {
		w.call.Waits = make([]time.Duration, l.Size)
	}
	return w
}

// Arrive says that a call has come.
func (w *Watch) Arrive() {
	if w != nil {
		w.begun = false
		w.call.Reset()
	}
}

// Begin says that the call which has come has a number. It returns the trace.Call in which an engine notes its steps,
// nil if nobody observes.
func (w *Watch) Begin(c *call.Call, r *Request) *trace.Call {
	if w == nil {
		return nil
	}
	w.begun = true
	t := &w.call
	t.Number, t.Kind, t.Algo, t.Bytes, t.Peer = r.Seq(), c.Kind.String(), r.Key.Algo.String(), max(r.In, r.Out),
		int(r.Key.Peer)
	w.observer.Begin(t)
	return t
}

// End says that the call has ended. Without a Begin it does nothing.
func (w *Watch) End(err error) {
	if w == nil || !w.begun {
		return
	}
	w.call.Leave() // ends a step that has failed
	w.EndAt(trace.Now(), err)
}

// EndAt is End for a call that ended earlier, at a time of trace.Now. The Watch is not nil, and the call has begun.
func (w *Watch) EndAt(at int64, err error) {
	w.begun = false
	w.call.End, w.call.Err = at, err
	w.observer.End(&w.call)
}
