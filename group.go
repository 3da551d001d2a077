package ringo

import (
	"errors"
	"slices"
	"sync"
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
//
// The zero Group is empty and ready for use.
type Group struct {
	comms []*Comm
	calls map[*Comm][]*Call
}

// NewGroup is an empty group.
func NewGroup() *Group { return new(Group) }

// Add puts a call in the group; nothing happens before Run.
func (g *Group) Add(c *Comm, call *Call) {
	if g.calls == nil {
		g.calls = map[*Comm][]*Call{}
	}
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
			if err := call.Check(c.life.Rank, c.life.Size); err != nil {
				return c.life.Place(call, 0, err, nil)
			}
		}
	}
	if len(g.comms) == 1 {
		return g.comms[0].together(g.calls[g.comms[0]])
	}
	left := make([]*rest, len(g.comms))
	for i, c := range g.comms {
		left[i] = &rest{comm: c, calls: g.calls[c]}
	}
	for slices.ContainsFunc(left, (*rest).more) {
		queueInTurn(left)
		carryOutOnHost(left)
	}
	errs := make([]error, len(left))
	for i, r := range left {
		errs[i] = r.err
	}
	return errors.Join(errs...)
}

// A rest is what is left of one communicator's calls.
type rest struct {
	comm  *Comm
	calls []*Call
	err   error // ends them
}

func (r *rest) more() bool { return len(r.calls) > 0 && r.err == nil }

// next carries out the first n calls.
func (r *rest) next(n int) {
	calls := r.calls[:n]
	r.calls = r.calls[n:]
	r.err = r.comm.together(calls)
}

// queueInTurn queues the calls on GPU memory that come next: one of each communicator, then
// the next of each. A driver may load the kernel of a call only after the kernels before it,
// and these may wait for a rank whose call is not queued yet. This thread does it itself, for
// a stream may be its own.
func queueInTurn(left []*rest) {
	for queued := true; queued; {
		queued = false
		for _, r := range left {
			if r.more() && r.calls[0].OnDevice() {
				r.next(sideBySide(r.calls))
				queued = true
			}
		}
	}
}

// carryOutOnHost carries out the calls on host memory that come next, of all communicators
// at the same time, since they wait for other ranks.
func carryOutOnHost(left []*rest) {
	var wg sync.WaitGroup
	for _, r := range left {
		n := slices.IndexFunc(r.calls, (*Call).OnDevice)
		if n < 0 {
			n = len(r.calls)
		}
		if n > 0 && r.more() {
			wg.Go(func() { r.next(n) })
		}
	}
	wg.Wait()
}

// sideBySide is how many of the next calls progress side by side, at least one.
func sideBySide(calls []*Call) int {
	n := 0
	for n < len(calls) && calls[n].Kind.Pairwise() && calls[n].OnDevice() == calls[0].OnDevice() {
		n++
	}
	return max(1, n)
}

// together carries out checked calls of one communicator in order, but runs of
// sends and receives side by side.
func (c *Comm) together(calls []*Call) error {
	c.queue.drain()
	c.life.Turn.Lock()
	ended := false
	defer c.leaveTurn(calls[0], &ended)
	var err error
	for len(calls) > 0 && err == nil {
		n := sideBySide(calls)
		switch {
		case n == 1:
			err = c.half(calls[0])
		case !calls[0].OnDevice():
			err = c.host.Exchange(calls[:n])
		case c.noGPU != "":
			err = c.half(calls[0]) // which says so
		default:
			err = c.gpu.Exchange(calls[:n])
		}
		calls = calls[n:]
	}
	ended = true
	return err
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
