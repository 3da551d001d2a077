// Package life is the life and death of a communicator: open, doubtful, failed, closed. The two halves of a
// communicator, on the host and on the GPU, ask a Life whether an operation may begin, and tell the Life what went
// wrong. The package is part of a communicator, and nothing here is promised to other modules.
//
// A Machine decides, as a pure function of events: machine.go, with transcripts in testdata. A Life gives the Machine
// its events and carries out the actions: it ends this rank's waits, tells the group, says where errors happened. A
// Turn is the right to carry out an operation, and numbers the collectives.
//
// The trap: an error that wraps call.ErrInvalid or call.ErrUnsupported is of one call
// alone and must be found before any rank hears of it; every other one ends the
// communicator on all ranks.
package life

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/sched"
)

// A Life is one rank's communicator, alive or dead. Its methods may be called at any
// time, from any goroutine.
type Life struct {
	Rank, Size int
	Host       string        // readable, for errors
	Name       string        // likewise, of the communicator; "" if it has none
	Timeout    time.Duration // of one operation

	Guard fifo.Guard // ends every wait of every connection
	Turn  Turn

	group   bootstrap.Group
	verdict atomic.Pointer[call.Error] // Verdict of the machine
	failed  atomic.Pointer[time.Time]  // when the first verdict came that tells of a failure
	met     atomic.Bool                // Met of the machine
	told    atomic.Bool                // see Told
	watch   sync.WaitGroup
	stopped chan struct{} // closed when waits are ended

	mu      sync.Mutex
	machine Machine            // guarded by mu
	settled chan struct{}      // guarded by mu; closed when a doubt ends, nil without one
	cause   error              // guarded by mu; why waits end, nil while they go on
	onStop  []func(error)      // guarded by mu
	stop    *bootstrap.Stopped // guarded by mu; where this rank was stopped, nil until the group has been told

	halves
	endings
}

// Of is the life of a *ringo.Comm, for packages of this module beside the two halves. Package ringo sets it.
var Of func(comm any) *Life

// New is the life of a communicator whose ranks have met.
func New(group bootstrap.Group, host, name string, timeout time.Duration) *Life {
	l := &Life{Rank: group.Rank(), Size: group.Size(), Host: host, Name: name, Timeout: timeout, group: group,
		stopped: make(chan struct{})}
	l.machine.Wrap, l.machine.Left = l.ErrorIn, group.Left
	l.machine.Hosts = slices.DeleteFunc(group.Hub(), func(r int) bool { return r == l.Rank })
	l.Guard.OnSlow(Slow, l.slow)
	group.Locate(l.locate)
	group.OnHalt(func() { l.unlessClosed(l.halt) })
	group.OnFailure(func(f *bootstrap.Failure) { l.unlessClosed(func() { l.step(GroupSaid{f}) }) })
	return l
}

// Slow is how long an operation waits before this rank asks where the others are.
const Slow = time.Second

// slow asks where the others are, and again later if the wait lasts: who does not answer until then is in the history.
func (l *Life) slow() {
	l.Inquire()
	time.AfterFunc(2*Slow, func() {
		if l.Guard.Waited() >= 3*Slow {
			l.unlessClosed(func() { l.Inquire() })
		}
	})
}

// Go runs f on a goroutine that Close waits for. It must not be called after Close.
func (l *Life) Go(f func()) { l.watch.Go(f) }

// unlessClosed calls f and has Close wait for it; after Close it does nothing.
func (l *Life) unlessClosed(f func()) {
	l.mu.Lock()
	closed := l.machine.State() == Closed
	if !closed {
		l.watch.Add(1) // Close takes this lock before it waits
	}
	l.mu.Unlock()
	if !closed {
		defer l.watch.Done()
		f()
	}
}

// OnStop has f called, once, when the waits of this rank are to end; at once if they have ended. Close waits for f.
func (l *Life) OnStop(f func(cause error)) {
	l.mu.Lock()
	cause := l.cause
	if cause == nil {
		l.onStop = append(l.onStop, f)
	}
	l.mu.Unlock()
	if cause != nil {
		f(cause)
	}
}

// Stopped is closed when the waits of this rank are to end; Guard.Aborted says why.
func (l *Life) Stopped() <-chan struct{} { return l.stopped }

// step gives the machine an event and carries out the actions. It returns a channel that is closed when the doubt has
// ended, nil if there is no doubt.
func (l *Life) step(e Event) (doubt <-chan struct{}) {
	l.mu.Lock()
	a := l.machine.Step(e)
	if v := l.machine.Verdict(); v != l.verdict.Load() {
		if now := time.Now(); v != nil && v.Err != call.ErrClosed {
			l.failed.CompareAndSwap(nil, &now)
		}
		l.verdict.Store(v)
	}
	l.met.Store(l.machine.Met())
	if l.settled == nil && l.machine.State() == Doubtful {
		l.settled = make(chan struct{})
	}
	if a.Await > 0 {
		time.AfterFunc(a.Await, func() { l.step(PatienceEnded{}) })
	}
	if a.Seek { // nobody waits for it: the group ends it when this rank leaves
		go func() {
			l.group.Seek()
			if f := l.group.Failure(); f != nil { // which OnFailure may tell a moment later
				l.step(GroupSaid{f})
			}
			l.step(PatienceEnded{})
		}()
	}
	if l.settled != nil && l.machine.State() != Doubtful {
		defer close(l.settled)
		l.settled = nil
	}
	doubt = l.settled
	if l.machine.State() == Failed && l.endings.begin() {
		l.watch.Go(l.endings.run) // Close takes this lock before it waits
	}
	if a.Stop != nil {
		l.cause = a.Stop
		l.watch.Add(1) // Close takes this lock before it waits
	}
	stop := l.onStop
	l.mu.Unlock()
	if a.Stop != nil { // once in a life
		defer l.watch.Done()
		l.Guard.Abort(a.Stop)
		close(l.stopped)
		for _, f := range stop {
			f(a.Stop)
		}
	}
	if _, quits := e.(AbortCalled); quits && a.Tell != nil {
		l.group.Fail(a.Tell.Error()) // without culprits: a rank that has called Abort may not go on with the others
	} else if a.Tell != nil && a.Lost {
		l.group.FailWith(a.Tell.Error(), a.Tell.Peer, bootstrap.IsSilence(a.Tell))
	} else if a.Tell != nil {
		l.group.Fail(a.Tell.Error(), a.Tell.Culprits...)
	}
	return doubt
}

// Begin starts the time of an operation, or returns a *call.Error that says why there can be none. It is cheap while
// the communicator is well.
func (l *Life) Begin(c *call.Call, path Path) error {
	if v := l.verdict.Load(); v != nil {
		return l.refusal(c, v, path)
	}
	l.Guard.Begin(l.TimeoutOf(c))
	return nil
}

// TimeoutOf is how long the waits of a call may take.
func (l *Life) TimeoutOf(c *call.Call) time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return l.Timeout
}

// refusal is why an operation does not begin.
func (l *Life) refusal(c *call.Call, v *call.Error, path Path) *call.Error {
	why := v.Err
	if why != call.ErrClosed && v.Op != OpComm {
		// else the verdict is the group's word, which no operation of this rank has met yet
		why = fmt.Errorf("the communicator has failed before: %w", v)
	}
	l.Learn()
	e := l.Locate(c, 0, why, path)
	e.Culprits, e.Candidates = v.Culprits, v.Candidates
	return e
}

// Fail says that an operation could not be carried out, and ends the communicator: this rank's waits, and by way of the
// group those of all others. Only a cause that wraps ErrInvalid or ErrUnsupported leaves the communicator usable. The
// error that Fail returns says where the operation failed. If another rank may be the cause, Fail waits for the group's
// word: at most RootCauseWait, RollCallWait or TrialWait, by the Doubt.
func (l *Life) Fail(c *call.Call, seq uint32, cause error, path Path) *call.Error {
	var at *engine.StepError
	if !errors.As(cause, &at) {
		at = &engine.StepError{Peer: -1}
		if c.Kind.Pairwise() {
			at.Peer = sched.Rank(c.Peer)
		}
	}
	return l.end(l.Locate(c, seq, cause, path), at)
}

// FailIn is Fail for something that is not a Call.
func (l *Life) FailIn(op string, cause error) *call.Error {
	defer l.told.Store(true)
	return l.end(l.ErrorOf(op, cause), &engine.StepError{Peer: -1})
}

// Found is Fail for a failure that no call returns: what watches a GPU finds it. at is nil where no step is known. log
// gets the error, unless the program knows that the communicator has failed.
func (l *Life) Found(e *call.Error, at *engine.StepError, log *slog.Logger) {
	if at == nil {
		at = &engine.StepError{Peer: -1}
	}
	if e = l.end(e, at); l.Untold() != nil {
		log.Error(e.Error(), "subsys", "CALL", "comm", l.ID())
	}
}

func (l *Life) end(e *call.Error, at *engine.StepError) *call.Error {
	if errors.Is(e.Err, call.ErrInvalid) || errors.Is(e.Err, call.ErrUnsupported) {
		e.Seq = 0 // the call has no number: no other rank has heard of it
		return e
	}
	d := doubtOf(e)
	if d == Differs && l.onGPU() {
		d = Between
	}
	if d == Late && at.Peer < 0 && e.Seq == 0 {
		// the group cannot say more of operations without number and peer
		d = Certain
	}
	doubt := l.step(OperationFailed{e, d})
	switch d {
	case Broken:
		l.Inquire(e.Peer) // a peer that has left said so before its connections ended
	case Apart, Differs:
		l.Inquire()
	case Late:
		l.say(l.stoppedIn(e, at))
	}
	if doubt != nil && d != Certain {
		<-doubt
	}
	l.endings.wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.explained(e, d)
}

// Abort ends all operations, here and on all other ranks. It returns when the reason is on its way to the others, which
// takes half a second at most, and the functions of OnEnd have returned, for which it waits noteTime at most.
func (l *Life) Abort(reason error) {
	if reason == nil {
		reason = call.ErrAborted
	} else {
		reason = fmt.Errorf("%w: %w", call.ErrAborted, reason)
	}
	l.told.Store(true)
	l.step(AbortCalled{l.ErrorIn("Abort", reason)})
	l.endings.wait()
}

// Failure is why the communicator is of no more use, nil while it is well. It does not wait.
func (l *Life) Failure() error {
	if v := l.verdict.Load(); v != nil {
		return v
	}
	return nil
}

// Told has Untold know that the program is given an error, which Told returns.
func (l *Life) Told(err error) error {
	if err != nil && l.verdict.Load() != nil {
		l.told.Store(true)
	}
	return err
}

// Untold is the failure that this rank has met and the program was never given. After Close it stays what it was.
func (l *Life) Untold() error {
	if v := l.verdict.Load(); v != nil && v.Err != call.ErrClosed && l.met.Load() && !l.told.Load() {
		return v
	}
	return nil
}

// Met is Failure if this rank has met it, by an operation that has failed or was refused.
func (l *Life) Met() error {
	if v := l.verdict.Load(); v != nil && l.met.Load() {
		return v
	}
	return nil
}

// Refuse is Failure for a call that would begin an operation: from then on this rank has met the failure, see Err. It
// waits for the functions of OnEnd.
func (l *Life) Refuse() error { return l.Told(l.Learn()) }

// Learn is Refuse for a failure that the program is not given yet.
func (l *Life) Learn() error {
	v := l.Failure()
	if v != nil {
		if !l.met.Load() {
			l.step(OperationRefused{})
		}
		l.endings.wait()
	}
	return v
}

// Settle waits until it is known why this rank was stopped, if it was.
func (l *Life) Settle() {
	l.mu.Lock()
	doubt := l.settled
	l.mu.Unlock()
	if doubt != nil {
		<-doubt
	}
}

// Err is Failure as soon as an operation of this rank has met it: a rank that waits for nothing is well, whoever else
// fails. It does not wait.
func (l *Life) Err() error {
	v := l.Failure()
	if v == nil || l.met.Load() {
		return v
	}
	if _, ran := l.gpu(); ran == nil || !ran() {
		return nil
	}
	l.step(OperationRefused{})
	return v
}

// Close ends the life when nothing is under way any more, and waits for what it has
// started.
func (l *Life) Close() {
	l.step(CloseCalled{l.ErrorIn("Close", call.ErrClosed)})
	l.watch.Wait()
}

// Inquire asks where the other ranks are. The goroutine that carries out an operation calls
// it, or one that watches a GPU. It also asks whether some peers have left.
func (l *Life) Inquire(peers ...int) { l.ask(l.here(), peers) }

// Left are those of some ranks that have left, as far as this rank knows. It asks the group too, so that a later call
// knows more. It does not wait, and needs no operation under way.
func (l *Life) Left(ranks ...int) []int {
	l.ask(l.Turn.position(false), slices.Clone(ranks))
	return slices.DeleteFunc(ranks, func(r int) bool { return !l.group.Left(r) })
}

// ask tells the group a position, and asks whether some peers have left.
func (l *Life) ask(p bootstrap.Position, peers []int) {
	p.Awaits = slices.DeleteFunc(peers, func(r int) bool { return r < 0 })
	p.Awaits = append(p.Awaits, l.awaited()...)
	l.group.Inquire(p)
}

// here is the position of this rank, which has waited long.
func (l *Life) here() bootstrap.Position {
	if l.onGPU() { // graphs carry out messages that the turn does not see
		return l.Turn.position(true)
	}
	return l.Turn.counted(l.Rank)
}

// locate is the position of this rank for another one that has waited long.
func (l *Life) locate() (bootstrap.Position, bool) { return l.Turn.position(false), true }
