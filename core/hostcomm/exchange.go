package hostcomm

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Exchange carries out checked sends and receives on host memory as if at the same time, each within its own timeout,
// counted from the call of Exchange. Where all messages fit into their queues, they go one after the other, which costs
// no goroutine: sends first, for a receive may have to wait for the peer and a send that fits never has to.
func (h *Comm) Exchange(calls []*call.Call) error {
	h.order = append(h.order[:0], calls...)
	slices.SortStableFunc(h.order, func(a, b *call.Call) int { return int(a.Kind) - int(b.Kind) })
	first := slices.MinFunc(calls,
		func(a, b *call.Call) int { return cmp.Compare(h.life.TimeoutOf(a), h.life.TimeoutOf(b)) })
	if err := h.life.Begin(first, h); err != nil {
		return err
	}
	defer h.life.Guard.End()
	same := !slices.ContainsFunc(calls, func(c *call.Call) bool { return h.life.TimeoutOf(c) != h.life.TimeoutOf(first) })
	fits, err := h.Fits(h.order)
	if err != nil {
		return err
	}
	if !same || !fits {
		return h.exchangeLarge(h.order)
	}
	for _, c := range h.order {
		if err := h.one(c); err != nil {
			return err
		}
	}
	return nil
}

// Fits reports whether calls, the sends first, may go one after the other. Each send must find room in its queue beside
// what earlier sends have left there: then no send waits for a receive, of this rank or of a peer. Messages from
// several peers must fit into their queues too: then no peer waits until this rank has received from another. Messages
// from a single peer may be of any length. Fits connects this rank to the peers of its sends.
func (h *Comm) Fits(calls []*call.Call) (bool, error) {
	received := calls[max(0, slices.IndexFunc(calls, func(c *call.Call) bool { return c.Kind == call.Recv })):]
	ofOne := !slices.ContainsFunc(received, func(c *call.Call) bool { return c.Peer != received[0].Peer })
	for i, c := range calls {
		if c.Kind == call.Recv && ofOne {
			break
		}
		slots, room := 0, h.limits.Slots
		for _, other := range calls[:i+1] {
			if other.Kind == c.Kind && other.Peer == c.Peer {
				slots += h.slots(other)
			}
		}
		if c.Kind == call.Send {
			conn, err := h.links.Send(sched.Rank(c.Peer))
			if err != nil {
				return false, h.life.Fail(c, 0, &engine.StepError{Peer: sched.Rank(c.Peer), Phase: "connect", Err: err}, h)
			}
			room = 0
			if queue, ok := conn.(transport.FreeSlots); ok {
				room = queue.Free()
			}
		}
		if slots > room {
			return false, nil
		}
	}
	return true, nil
}

// slots is how many slots of its queue a message takes.
func (h *Comm) slots(c *call.Call) int {
	return engine.Slots(h.limits, h.links.Width(sched.Rank(c.Peer)), c.Bytes())
}

// A message is a call of a large exchange.
type message struct {
	call    *call.Call
	request *request.Request
	job     *engine.Job
	timeout time.Duration
}

// A way is the messages to one peer, or from it, in order.
type way struct {
	kind call.Kind
	peer int
	list []message // that are not done
	err  error     // of the first message in list
}

// exchangeLarge carries out calls on a goroutine for each way.
func (h *Comm) exchangeLarge(calls []*call.Call) error {
	var ways []*way
	left := under{life: h.life}
	for _, c := range calls {
		m := message{c, new(request.Request), new(engine.Job), h.life.TimeoutOf(c)}
		ans := h.Answer(c)
		err := h.numberer.Begin(m.request, c, ans, false)
		if err == nil {
			err = h.prepare(m.job, c, m.request)
		}
		if err = h.numberer.End(m.request, c, err, h); err != nil {
			return err
		}
		// A message that fits into the queue is not lent: the receiver may take it only after a message that this
		// rank sends after the group.
		m.job.Lend = c.Kind == call.Send && h.slots(c) > h.limits.Slots
		left.timeouts = append(left.timeouts, m.timeout)
		i := slices.IndexFunc(ways, func(w *way) bool { return w.kind == c.Kind && w.peer == c.Peer })
		if i < 0 {
			i, ways = len(ways), append(ways, &way{kind: c.Kind, peer: c.Peer})
		}
		ways[i].list = append(ways[i].list, m)
	}
	var wg sync.WaitGroup
	for i, w := range ways {
		watch := h.watchOf(i)
		wg.Go(func() { h.life.Turn.Aides.Run(func() { h.goAlong(w, watch, &left) }) })
	}
	wg.Wait()
	var errs []error
	// The deadline ends the waits of all ways: the call with the shortest timeout is named first.
	slices.SortStableFunc(ways, func(a, b *way) int { return cmp.Compare(a.next(), b.next()) })
	for _, w := range ways {
		if errors.Is(w.err, os.ErrDeadlineExceeded) {
			w.err = h.life.Fail(w.list[0].call, 0, w.err, h)
		}
		if w.err != nil {
			errs = append(errs, w.err)
		}
	}
	return errors.Join(errs...)
}

// goAlong carries out the messages of a way, until one fails. If the deadline has ended one, the caller calls Fail.
func (h *Comm) goAlong(w *way, watch *request.Watch, left *under) {
	e := engine.New(h.limits)
	for ; len(w.list) > 0; w.list = w.list[1:] {
		m := w.list[0]
		watch.Arrive()
		m.job.Observed = watch.Begin(m.call, m.request)
		w.err = e.Run(m.job)
		if w.err != nil && !errors.Is(w.err, os.ErrDeadlineExceeded) {
			w.err = h.life.Fail(m.call, 0, w.err, h)
		}
		watch.End(w.err)
		if w.err != nil {
			return
		}
		left.end(m.timeout)
	}
}

// next is the timeout of the first message that is not done.
func (w *way) next() time.Duration {
	if len(w.list) == 0 {
		return 0
	}
	return w.list[0].timeout
}

// under is the timeouts of an exchange's calls that are under way: the shortest is the Guard's.
type under struct {
	life     *life.Life
	mu       sync.Mutex
	timeouts []time.Duration // guarded by mu
}

// end takes away the timeout of a call that has ended. The Guard then has the shortest of the rest.
func (u *under) end(timeout time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.timeouts, timeout)
	u.timeouts = slices.Delete(u.timeouts, i, i+1)
	if len(u.timeouts) > 0 && slices.Min(u.timeouts) > timeout {
		u.life.Guard.Extend(slices.Min(u.timeouts))
	}
}

// watchOf is the Watch of a goroutine of a large exchange, nil if nobody observes.
func (h *Comm) watchOf(i int) *request.Watch {
	if i == len(h.beside) {
		h.beside = append(h.beside, h.numberer.Watch(i+1, false))
	}
	return h.beside[i]
}
