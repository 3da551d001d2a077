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
	if _, ok := g.calls[c]; !ok {
		g.comms = append(g.comms, c)
	}
	g.calls[c] = append(g.calls[c], call)
}

// Run carries out the calls and returns when all have ended, with all their
// errors joined. A call with wrong arguments is found before any is carried out.
// The group is empty afterwards and may be used again.
func (g *Group) Run() error {
	defer func() { g.comms, g.calls = nil, map[*Comm][]*Call{} }()
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
	errs := make([]error, len(g.comms))
	var wg sync.WaitGroup
	for i, c := range g.comms {
		calls := g.calls[c]
		wg.Go(func() { errs[i] = c.together(calls) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// together carries out checked calls of one communicator in order, but runs of
// sends and receives side by side.
func (c *Comm) together(calls []*Call) error {
	c.queue.drain()
	c.run.Lock()
	defer c.run.Unlock()
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && (calls[n].Kind == KindSend || calls[n].Kind == KindRecv) {
			n++
		}
		var err error
		if n > 1 {
			err = c.exchange(calls[:n])
		} else {
			n = 1
			err = c.carryOut(calls[0])
		}
		if err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// exchange carries out sends and receives, those of one peer and direction in
// order and the others at the same time.
func (c *Comm) exchange(calls []*Call) error {
	if f := c.failed.Load(); f != nil {
		return c.errorOf(calls[0], 0, f)
	}
	c.guard.Begin(c.cfg.Timeout)
	type way struct {
		kind Kind
		peer int
	}
	jobs := map[way][]*engine.Job{}
	owner := map[*engine.Job]*Call{}
	// Sends come first, for a receive may have to wait for the peer's connection
	// and a send never has to.
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b *Call) int { return int(a.Kind) - int(b.Kind) })
	for _, call := range calls {
		j := &engine.Job{}
		if err := c.prepare(j, call); err != nil {
			return c.fail(call, err)
		}
		w := way{call.Kind, call.Peer}
		jobs[w] = append(jobs[w], j)
		owner[j] = call
	}
	var mu sync.Mutex
	var errs []error
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
