package ringo

import (
	"errors"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/engine"
)

// A Group is calls that happen together. Sends and receives of a group progress
// side by side, so that neighbours may exchange without an order; calls on
// several communicators of one process may be made by one goroutine. Calls of
// one communicator otherwise keep their order.
//
//	g := ringo.NewGroup()
//	g.Add(c, ringo.SendOf(out, right))
//	g.Add(c, ringo.RecvOf(in, left))
//	err := g.Run()
type Group struct {
	comms []*Comm
	calls map[*Comm][]*Call
}

// NewGroup is an empty group.
func NewGroup() *Group { return &Group{calls: map[*Comm][]*Call{}} }

// Add puts a call in the group; nothing happens before Run.
func (g *Group) Add(c *Comm, call *Call) {
	calls := g.calls[c]
	if len(calls) == 0 {
		g.comms = append(g.comms, c)
	}
	g.calls[c] = append(calls, call)
}

// Run carries out the calls and returns when all have ended, with all their
// errors joined. A call with wrong arguments is found before any is carried out.
// The group is empty afterwards and may be used again.
func (g *Group) Run() error {
	defer g.empty()
	for _, c := range g.comms {
		for _, call := range g.calls[c] {
			if err := call.check(c.rank, c.size); err != nil {
				return c.errorOf(call, 0, err)
			}
		}
	}
	if len(g.comms) == 1 {
		return g.comms[0].together(g.calls[g.comms[0]])
	}
	if !g.waits() {
		return g.inTurn()
	}
	errs := make([]error, len(g.comms))
	var wg sync.WaitGroup
	for i, c := range g.comms {
		calls := g.calls[c]
		wg.Go(func() { errs[i] = c.together(calls) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// waits reports whether some call waits for other ranks. On GPUs calls are only
// queued, which this thread does itself: it may have a stream of its own.
func (g *Group) waits() bool {
	for _, c := range g.comms {
		if slices.ContainsFunc(g.calls[c], func(call *Call) bool { return !call.onDevice() }) {
			return true
		}
	}
	return false
}

// inTurn queues a call of each communicator, then the next: a driver may load what
// a call is the first to need only when the calls before it have ended on its GPU,
// and they may wait for all ranks.
func (g *Group) inTurn() error {
	rest := make([][]*Call, len(g.comms))
	for i, c := range g.comms {
		rest[i] = g.calls[c]
	}
	errs := make([]error, len(g.comms))
	for more := true; more; {
		more = false
		for i, c := range g.comms {
			if len(rest[i]) == 0 || errs[i] != nil {
				continue
			}
			n := sideBySide(rest[i])
			errs[i] = c.together(rest[i][:n])
			rest[i] = rest[i][n:]
			more = true
		}
	}
	return errors.Join(errs...)
}

// sideBySide is how many of the next calls progress side by side, at least one.
func sideBySide(calls []*Call) int {
	n := 0
	for n < len(calls) && (calls[n].Kind == KindSend || calls[n].Kind == KindRecv) && calls[n].onDevice() == calls[0].onDevice() {
		n++
	}
	return max(1, n)
}

// empty keeps the memory of the group for the next time.
func (g *Group) empty() {
	for _, c := range g.comms {
		g.calls[c] = g.calls[c][:0]
	}
	if len(g.calls) > len(g.comms) { // of communicators that are not used any more
		clear(g.calls)
	}
	g.comms = g.comms[:0]
}

// together carries out checked calls of one communicator in order, but runs of
// sends and receives side by side.
func (c *Comm) together(calls []*Call) error {
	c.queue.drain()
	c.run.Lock()
	defer c.run.Unlock()
	for len(calls) > 0 {
		n := sideBySide(calls)
		var err error
		if n > 1 {
			err = c.exchange(calls[:n])
		} else {
			err = c.carryOut(calls[0])
		}
		if err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// exchange carries out sends and receives as if at the same time. Sends go
// first, for a receive may have to wait for the peer and a send that fits in a
// queue never has to.
func (c *Comm) exchange(calls []*Call) error {
	if calls[0].onDevice() {
		return c.exchangeOnDevice(calls)
	}
	c.order = append(c.order[:0], calls...)
	slices.SortStableFunc(c.order, func(a, b *Call) int { return int(a.Kind) - int(b.Kind) })
	if !c.fits(c.order) {
		return c.exchangeLarge(c.order)
	}
	for _, call := range c.order {
		if err := c.carryOut(call); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether everything sent to one peer is at most a piece, half a
// queue: then no send waits for a receive of the same group.
func (c *Comm) fits(calls []*Call) bool {
	piece := c.engine.Piece()
	for i, call := range calls {
		if call.Kind != KindSend {
			break
		}
		slots := 0
		for _, other := range calls[:i+1] {
			if other.Kind == KindSend && other.Peer == call.Peer {
				slots += max(1, (other.Count*other.Type.Size()+c.cfg.SlotBytes-1)/c.cfg.SlotBytes)
			}
		}
		if slots*c.cfg.SlotBytes > piece {
			return false
		}
	}
	return true
}

// exchangeLarge carries out calls on a goroutine for each peer and direction, in
// order among themselves.
func (c *Comm) exchangeLarge(calls []*Call) error {
	if err := c.begin(calls[0]); err != nil {
		return err
	}
	type way struct {
		kind Kind
		peer int
	}
	jobs := map[way][]*engine.Job{}
	owner := map[*engine.Job]*Call{}
	for _, call := range calls {
		j := &engine.Job{}
		if err := c.prepare(j, call); err != nil {
			return c.fail(call, err)
		}
		j.Lend = true // receives have goroutines of their own
		w := way{call.Kind, call.Peer}
		jobs[w] = append(jobs[w], j)
		owner[j] = call
	}
	errs := make([]error, 0, len(calls))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, list := range jobs {
		wg.Go(func() {
			e := engine.New(c.cfg.limits())
			for _, j := range list {
				if err := e.Run(j); err != nil {
					err = c.fail(owner[j], err)
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
