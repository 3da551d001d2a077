package capi

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo"
)

// A group is what one thread has called since its outermost ncclGroupStart.
type group struct {
	err   error   // the first error of a call; then nothing of the group is carried out
	comms []*comm // communicators with a call or job in the group
	jobs  []job
	sided []sided // one-sided messages and waits
	run   ringo.Group
	calls []*ringo.Call    // kept for the next group
	used  int              // of calls
	rings []*ringo.Comm    // of the calls that are used
	count []*atomic.Uint64 // of calls that RAS counts

	held atomic.Int32 // calls, jobs and messages, for threads that look whether the group was ended
}

// A job is a call of a communicator that may wait for other ranks and is no collective: opening, splitting, closing.
type job struct {
	comm  *comm // the communicator in whose order the job runs, and which decides whether it blocks
	opens *comm // the communicator that do opens, maybe comm; nil if none
	do    func() (*ringo.Comm, error)
}

// carryOut does a job. A panic becomes the job's error: a library must not end the program.
func (j job) carryOut() (err error) {
	var r *ringo.Comm
	defer func() { j.settle(r, err) }()
	defer caught(&err)
	r, err = j.do()
	return err
}

// settle gives the communicator that a job opens its ring, or the error. Every job is settled once, also one that
// is thrown away: a communicator that nobody settles is in progress for ever.
func (j job) settle(r *ringo.Comm, err error) {
	if j.opens == nil {
		return
	}
	j.opens.take(r, err)
	if j.opens != j.comm && !j.comm.blocking {
		j.opens.finish(err)
	}
}

// throwAway settles the jobs of a group that is not carried out.
func (g *group) throwAway(why error) {
	for _, j := range g.jobs {
		j.settle(nil, why)
	}
}

var groups = sync.Pool{New: func() any { return new(group) }}

// GroupStart opens a group for a thread that has none. The caller counts the groups within.
func (l *Library) GroupStart() uintptr { return l.groups.Add(groups.Get().(*group)) }

// GroupEnd carries out the thread's group; handle is 0 if the thread has none, which is an error. left is the
// handle of the thread's group from now on.
func (l *Library) GroupEnd(handle uintptr) (left uintptr, err error) {
	defer caught(&err)
	g, err := l.leave(handle)
	if err != nil {
		return handle, err
	}
	if err := g.err; err != nil {
		g.throwAway(err)
		g.recycle()
		return 0, err
	}
	if !g.waits() {
		err := g.carryOut()
		l.failedIn(g, err)
		g.recycle()
		return 0, err
	}
	for i, c := range g.comms {
		if err := c.begin(); err != nil { // another thread ends the communicator
			for _, begun := range g.comms[:i] {
				begun.finish(nil)
			}
			g.throwAway(err)
			g.recycle()
			return 0, err
		}
	}
	go func() {
		err := g.carryOut()
		l.failedIn(g, err)
		for _, c := range g.comms {
			c.finish(err)
		}
		l.Note(err)
		g.recycle()
	}()
	return 0, errInProgress
}

// failedIn logs the failures of communicators behind a group's error.
func (l *Library) failedIn(g *group, err error) {
	if err == nil {
		return
	}
	for _, c := range g.comms {
		if r := c.opened(); r != nil {
			l.failed(c, r.Failure())
		}
	}
}

// Unended is an error, once, if calls of a communicator that is to be destroyed wait in the thread's group for its end.
func (l *Library) Unended(handle, comm uintptr) error {
	g, err := l.groups.Get(handle)
	if err != nil {
		return nil
	}
	if c, err := l.comms.Get(comm); err != nil || !slices.Contains(g.comms, c) {
		return nil
	}
	err = g.unended()
	l.complain(err)
	return err
}

// complain logs an error also where the environment asks for no log.
func (l *Library) complain(err error) {
	if err != nil {
		l.last.Store(&complaint{err.Error()})
		l.logger().Error(err.Error(), "subsys", "CALL")
	}
}

// unended is the error of a group that was never ended, nil if nothing is in it or the program was told.
func (g *group) unended() error {
	n := g.held.Swap(0)
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%w: ncclGroupStart was never ended: %d calls were not carried out: each wants its ncclGroupEnd",
		errUsage, n)
}

// leave ends a group's handle.
func (l *Library) leave(handle uintptr) (*group, error) {
	if handle == 0 {
		return nil, fmt.Errorf("%w: ncclGroupEnd without ncclGroupStart", errUsage)
	}
	return l.groups.Take(handle)
}

// with notes that a communicator has something in the group.
func (g *group) with(c *comm) {
	if n := len(g.comms); n > 0 && g.comms[n-1] == c || slices.Contains(g.comms, c) {
		return
	}
	g.comms = append(g.comms, c)
}

// fail keeps the first error of a group's calls.
func (g *group) fail(err error) error {
	if g.err == nil {
		g.err = err
	}
	return err
}

// next is memory for the next call that is added.
func (g *group) next() *ringo.Call {
	if g.used == len(g.calls) {
		g.calls = append(g.calls, new(ringo.Call))
	}
	return g.calls[g.used]
}

// add puts the call in next's memory into the group.
func (g *group) add(c *comm, r *ringo.Comm) {
	kept := g.next()
	g.used++
	g.held.Add(1)
	g.with(c)
	g.rings = append(g.rings, r)
	if n := c.counter(kept.Kind); n != nil {
		g.count = append(g.count, n)
	}
	g.run.Add(r, kept)
}

// waits reports whether the group has to be carried out in the background: one of its communicators
// does not block and would wait for other ranks. Calls that are only queued on a GPU are queued by
// the caller's thread, since the stream may be a per-thread one.
func (g *group) waits() bool {
	for _, c := range g.comms {
		if !c.blocking && (len(g.jobs) > 0 || c.device == nil) {
			return true
		}
	}
	return false
}

// carryOut does the jobs, those of different communicators side by side, and then the calls.
func (g *group) carryOut() (err error) {
	defer caught(&err)
	var wg sync.WaitGroup
	errs := make([]error, len(g.comms))
	for i, c := range g.comms {
		if !slices.ContainsFunc(g.jobs, func(j job) bool { return j.comm == c }) {
			continue
		}
		wg.Go(func() {
			for _, j := range g.jobs {
				switch {
				case j.comm != c:
				case errs[i] != nil: // an earlier job of the communicator has failed
					j.settle(nil, errs[i])
				default:
					errs[i] = j.carryOut()
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, n := range g.count {
		n.Add(1)
	}
	if g.used > 0 {
		if err := g.run.Run(); err != nil {
			return err
		}
	}
	for _, waits := range []bool{false, true} { // first all messages: another rank of this thread may wait for one
		for _, s := range g.sided {
			if s.waits != waits {
				continue
			}
			if err := s.do(); err != nil {
				return err
			}
		}
	}
	return nil
}

// recycle keeps the memory of a group for the next.
func (g *group) recycle() {
	g.held.Store(0)
	if g.err != nil { // calls were added and not run
		g.run = ringo.Group{}
	}
	clear(g.comms)
	clear(g.jobs)
	clear(g.sided)
	clear(g.rings)
	for _, c := range g.calls[:g.used] {
		*c = ringo.Call{}
	}
	clear(g.count)
	g.comms, g.jobs, g.sided, g.rings, g.count, g.used, g.err = g.comms[:0], g.jobs[:0], g.sided[:0], g.rings[:0],
		g.count[:0], 0, nil
	groups.Put(g)
}

// job has j done: at the end of the thread's group if it has one, else now, or in the background
// where the communicator does not block.
func (l *Library) job(handle uintptr, j job) error {
	var g *group
	if handle != 0 {
		var err error
		if g, err = l.groups.Get(handle); err != nil {
			return err
		}
	}
	if j.opens != nil && j.opens != j.comm && !j.comm.blocking {
		if err := j.opens.begin(); err != nil { // the process is ending
			return err
		}
	}
	if g == nil {
		err := j.comm.do(j.carryOut)
		if err == errEnding {
			j.settle(nil, err)
		}
		return err
	}
	g.with(j.comm)
	g.jobs = append(g.jobs, j)
	g.held.Add(1)
	return nil
}

// Fail notes an error of a call in the thread's group. GroupEnd then reports the first such error and carries out
// nothing.
func (l *Library) Fail(handle uintptr, err error) {
	if handle == 0 || err == nil || err == errInProgress {
		return
	}
	if g, missing := l.groups.Get(handle); missing == nil {
		_ = g.fail(err)
	}
}
