package hostcomm

import (
	"errors"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Exchange carries out checked sends and receives on host memory as if at the same time.
// Sends go first, for a receive may have to wait for the peer and a send that fits in a
// queue never has to.
func (h *Comm) Exchange(calls []*call.Call) error {
	if err := h.life.Begin(calls[0], h); err != nil {
		return err
	}
	defer h.life.Guard.End()
	h.order = append(h.order[:0], calls...)
	slices.SortStableFunc(h.order, func(a, b *call.Call) int { return int(a.Kind) - int(b.Kind) })
	fits, err := h.fits(h.order)
	if err != nil {
		return err
	}
	if !fits {
		return h.exchangeLarge(h.order)
	}
	for _, c := range h.order {
		if err := h.Do(c); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether the queues have room for all that is sent: then no send waits for a
// receive of the same exchange. What earlier sends have left in a queue counts.
func (h *Comm) fits(calls []*call.Call) (bool, error) {
	for i, c := range calls {
		if c.Kind != call.Send {
			break
		}
		slots, slot := 0, h.limits.SlotBytes*h.links.Width(sched.Rank(c.Peer))
		for _, other := range calls[:i+1] {
			if other.Kind == call.Send && other.Peer == c.Peer {
				slots += max(1, (other.Bytes()+slot-1)/slot)
			}
		}
		conn, err := h.links.Send(sched.Rank(c.Peer))
		if err != nil {
			return false, h.life.Fail(c, 0, &engine.StepError{Peer: sched.Rank(c.Peer), Phase: "connect", Err: err}, h)
		}
		queue, ok := conn.(transport.FreeSlots)
		if !ok || slots > queue.Free() {
			return false, nil
		}
	}
	return true, nil
}

// exchangeLarge carries out calls on a goroutine for each peer and direction, in
// order among themselves.
func (h *Comm) exchangeLarge(calls []*call.Call) error {
	type way struct {
		kind call.Kind
		peer int
	}
	type message struct {
		call    *call.Call
		request *request.Request
		job     *engine.Job
	}
	ways := map[way][]message{}
	var order []way
	for _, c := range calls {
		r, j, ans := new(request.Request), new(engine.Job), h.Answer(c)
		if err := h.numberer.Carry(r, c, ans, false, h, func() error { return h.prepare(j, c, r) }); err != nil {
			return err
		}
		j.Lend = true // receives have goroutines of their own
		w := way{c.Kind, c.Peer}
		if ways[w] == nil {
			order = append(order, w)
		}
		ways[w] = append(ways[w], message{c, r, j})
	}
	errs := make([]error, 0, len(calls))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for watch, w := range order {
		list, watch := ways[w], h.watchOf(watch)
		wg.Go(func() {
			e := engine.New(h.limits)
			for _, m := range list {
				watch.Arrive()
				m.job.Observed = watch.Begin(m.call, m.request)
				err := e.Run(m.job)
				if err != nil {
					err = h.life.Fail(m.call, 0, err, h)
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
				watch.End(err)
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// watchOf is the Watch of a goroutine of a large exchange, nil if nobody observes.
func (h *Comm) watchOf(i int) *request.Watch {
	if i == len(h.beside) {
		h.beside = append(h.beside, h.numberer.Watch(i+1, false))
	}
	return h.beside[i]
}
