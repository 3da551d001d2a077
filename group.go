package ringo

import (
	"cmp"
	"context"
	"errors"
	"math"
	tracer "runtime/trace"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/built"
)

// A Group is calls that happen together. Sends and receives of a group progress
// side by side, so that neighbours may exchange without an order, each within its own
// timeout; a message to oneself needs both of its ends in one. Calls on
// several communicators of one process may be made by one goroutine. Small all-reduces on
// GPU memory that follow each other with one type and operator share kernels, on whichever
// streams they are: all ranks must have the same ones in a group. Neither messages nor these
// have an order within the group: memory that one of them writes no other of them may use, or
// what is left there is undefined, as with NCCL. Other calls of one communicator keep their order.
// The context of Comm.With does not bound a group's calls; Call.Timeout does.
//
//	g := ringo.NewGroup()
//	g.Add(c, ringo.SendOf(out, right))
//	g.Add(c, ringo.RecvOf(in, left))
//	err := g.Run()
//
// The zero Group is empty and ready for use.
type Group struct {
	parts []*rest // that have calls
	of    map[*Comm]*rest
	at    int // index in parts of the last call's communicator
	added int

	left []*rest // room for Run
}

// NewGroup is an empty group.
func NewGroup() *Group { return new(Group) }

// Add puts a call in the group; nothing happens before Run.
func (g *Group) Add(c *Comm, call *Call) {
	if c != nil {
		c = c.unbound // both of With are one communicator
	}
	r := g.part(c)
	r.added = append(r.added, call)
	r.at = append(r.at, g.added)
	g.added++
}

// part is a communicator's part of the group. Most calls are the same communicator's as the one before, or
// the communicators take turns.
func (g *Group) part(c *Comm) *rest {
	for range min(2, len(g.parts)) {
		if r := g.parts[g.at]; r.comm == c {
			return r
		}
		g.at = (g.at + 1) % len(g.parts)
	}
	if g.of == nil {
		g.of = map[*Comm]*rest{}
	}
	r := g.of[c]
	if r == nil {
		r = &rest{comm: c}
		g.of[c] = r
	}
	if len(r.added) == 0 {
		g.parts = append(g.parts, r)
	}
	g.at = slices.Index(g.parts, r)
	return r
}

// Run carries out the calls and returns when all have ended, with all their
// errors joined. A call with wrong arguments is found before any is carried out.
// The group is empty afterwards and may be used again.
func (g *Group) Run() error {
	defer g.empty()
	for _, r := range g.parts {
		if err := r.comm.checkAll(r.added); err != nil {
			return err
		}
	}
	if len(g.parts) == 1 {
		_, err := together(g.parts[0].comm, g.parts[0].added, true)
		return g.parts[0].comm.life.Told(err)
	}
	return g.inTurn()
}

// inTurn carries out the calls of several communicators.
func (g *Group) inTurn() error {
	for _, r := range g.parts {
		r.calls, r.order = r.added, r.at
		r.prepare()
	}
	g.left = append(g.left[:0], g.parts...)
	for slices.ContainsFunc(g.left, (*rest).more) {
		queueInTurn(g.left)
		if slices.ContainsFunc(g.left, (*rest).onHost) {
			carryOutOnHost(g.left)
		}
	}
	var errs []error
	for _, r := range g.parts {
		if r.err != nil {
			errs = append(errs, r.comm.life.Told(r.err))
		}
	}
	return errors.Join(errs...)
}

// checkAll finds what is wrong with the calls of a group.
func (c *Comm) checkAll(calls []*Call) error {
	if err := c.absent("Group"); err != nil {
		return err
	}
	for _, x := range calls {
		if err := x.Check(c.life.Rank, c.life.Size); err != nil {
			return c.life.Locate(x, 0, err, nil)
		}
	}
	for len(calls) > 0 {
		n := max(1, messages(calls))
		if err := call.CheckSelf(calls[:n], c.life.Rank); err != nil {
			return c.life.Locate(calls[0], 0, err, nil)
		}
		calls = calls[n:]
	}
	return nil
}

// A rest is one communicator's calls, and what is left of them.
type rest struct {
	comm  *Comm
	added []*Call
	at    []int // the position of each among the group's

	calls []*Call
	order []int
	err   error // of a call: the later ones are not carried out
}

func (r *rest) more() bool { return len(r.calls) > 0 && r.err == nil }

// prepare loads the kernels of the calls.
func (r *rest) prepare() {
	if c := r.comm; c.onGPU() {
		if r.err = c.life.Turn.Lock(context.Background()); r.err == nil {
			defer c.life.Turn.Unlock()
			r.err = c.gpu.PrepareAll(r.calls)
		}
	}
}

// next carries out the first of calls, with those that go side by side with it, or all.
func (r *rest) next(calls []*Call, all bool) {
	n, err := together(r.comm, calls, all)
	r.calls, r.order, r.err = r.calls[n:], r.order[n:], err
}

// queueInTurn queues the calls on GPU memory that come next: a collective of each
// communicator, then the next of each, and before it the sends and receives, which not all
// ranks have. A driver may load the kernel of a call only after the kernels before it, and
// these may wait for a rank whose call is not queued yet. Calls of several communicators
// are queued in the order in which they were added, for they may be on one stream, and ranks
// whose orders differ wait for each other. This thread does it itself, for a stream may be its own;
// but where calls may wait for room in a GPU's ring of work, and so for other ranks' calls,
// those of each GPU are queued at the same time.
func queueInTurn(left []*rest) {
	for queued := true; queued; {
		queued = false
		for _, pairwise := range [...]bool{true, false} {
			slices.SortStableFunc(left, func(a, b *rest) int { return cmp.Compare(a.first(), b.first()) })
			queued = slices.ContainsFunc(left, func(r *rest) bool { return r.comes(pairwise) }) || queued
			if pairwise && slices.ContainsFunc(left, (*rest).mayWait) {
				queueByGPU(left)
				continue
			}
			for _, r := range left {
				if r.comes(pairwise) {
					r.next(r.calls, false)
				}
			}
		}
	}
}

// queueByGPU queues the sends and receives that come next, those of each GPU at the same time where some may
// wait, but by this thread where they are tied to it.
func queueByGPU(left []*rest) {
	on := map[*gpu.Device][]*rest{}
	for _, r := range left {
		if r.comes(true) {
			on[r.comm.cfg.Device] = append(on[r.comm.cfg.Device], r)
		}
	}
	var waiting sync.WaitGroup
	here := left[:0:0]
	for _, r := range left { // GPUs in the order of their first calls
		list := on[r.comm.cfg.Device]
		if len(list) == 0 || list[0] != r {
			continue
		}
		if slices.ContainsFunc(list, (*rest).mayWait) && !slices.ContainsFunc(list, (*rest).tied) {
			waiting.Go(func() { nextOf(list) })
		} else {
			here = append(here, list...)
		}
	}
	nextOf(here)
	waiting.Wait()
}

func nextOf(list []*rest) {
	for _, r := range list {
		r.next(r.calls, false)
	}
}

// comes reports whether the next call is on GPU memory, and a send or receive or else a collective.
func (r *rest) comes(pairwise bool) bool {
	return r.more() && r.calls[0].OnDevice() && r.calls[0].Kind.Pairwise() == pairwise
}

// onHost reports whether the next call is on host memory.
func (r *rest) onHost() bool { return r.more() && !r.calls[0].OnDevice() }

// first is the position of the next call.
func (r *rest) first() int {
	if len(r.order) == 0 {
		return math.MaxInt
	}
	return r.order[0]
}

// mayWait reports whether the next calls, sends and receives on GPU memory, may wait for room.
func (r *rest) mayWait() bool {
	return r.comes(true) && r.comm.onGPU() && r.comm.gpu.MayWait(messages(r.calls))
}

// tied reports whether the next calls have to be made by this thread: its own stream is
// among them, or a capture.
func (r *rest) tied() bool {
	for _, c := range r.calls {
		if !c.Kind.Pairwise() || !c.OnDevice() {
			break
		}
		if c.Stream == gpu.PerThread {
			return true
		}
	}
	return !built.GPU || r.comm.gpu == nil || r.comm.gpu.Capturing(r.calls[0].Stream)
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
			wg.Go(func() { r.next(r.calls[:n], true) })
		}
	}
	wg.Wait()
}

// sideBySide is how many of a communicator's next calls progress side by side, at least one: sends and
// receives, and small reductions on GPU memory. The turn is held.
func sideBySide(c *Comm, calls []*Call) int {
	n := messages(calls)
	if n == 0 && c.onGPU() {
		return c.gpu.Alike(calls)
	}
	return max(1, n)
}

// messages is how many of the first calls are sends and receives, all on host memory or all on a GPU's.
func messages(calls []*Call) (n int) {
	for n < len(calls) && calls[n].Kind.Pairwise() && calls[n].OnDevice() == calls[0].OnDevice() {
		n++
	}
	return n
}

// together carries out checked calls of one communicator in order, but side by side where
// they may be: all of them, or only those that come first. It returns how many.
func together(c *Comm, calls []*Call, all bool) (done int, err error) {
	if tracer.IsEnabled() {
		defer tracer.StartRegion(context.Background(), "Group").End()
	}
	if err := c.lockAll(calls); err != nil {
		return 0, err
	}
	err = errPanicked
	defer func() { c.leave(calls[0], err) }()
	done, err = carryAll(c, calls, all)
	return done, err
}

// carryAll is together while the turn is held.
func carryAll(c *Comm, calls []*Call, all bool) (done int, err error) {
	for next := calls; len(next) > 0 && err == nil && (all || done == 0); next = calls[done:] {
		n := sideBySide(c, next)
		switch {
		case n == 1 || c.stillborn:
			err = c.half(next[0])
		case !next[0].OnDevice():
			err = c.host.Exchange(next[:n])
		case !c.onGPU():
			err = c.half(next[0]) // which says so
		case next[0].Kind.Pairwise():
			err = c.gpu.Exchange(next[:n])
		default:
			err = c.gpu.Batch(next[:n])
		}
		done += n
	}
	return done, err
}

// lockAll takes the turn of calls that are one's group, within the shortest Timeout of them.
func (c *Comm) lockAll(calls []*Call) error {
	if !c.queue.busy() && c.life.Turn.TryLock() {
		return nil
	}
	first := calls[0]
	for _, x := range calls {
		if x.Timeout > 0 && (first.Timeout == 0 || x.Timeout < first.Timeout) {
			first = x
		}
	}
	l := newLimit(context.Background(), c.life, first)
	defer l.release()
	bounded := *first
	return c.take(l, &bounded, true)
}

// empty keeps the memory of the group for the next time.
func (g *Group) empty() {
	if len(g.of) > len(g.parts) { // of communicators that are not used any more
		clear(g.of)
	}
	for _, r := range g.parts {
		*r = rest{comm: r.comm, added: r.added[:0], at: r.at[:0]}
	}
	clear(g.parts)
	clear(g.left)
	g.parts, g.left, g.at, g.added = g.parts[:0], g.left[:0], 0, 0
}
