package gpucomm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A watch is what the watcher (watcher.go) knows of a communicator.
type watch struct {
	begun  sync.Once
	at     uint64          // operations that had started when the watcher last looked
	since  time.Time       // when one last started, or when nothing was under way
	moves  uint64          // see cuda.Moves
	moved  time.Time       // when moves last changed
	roll   roll            // for whom kernels wait
	judged context.Context // ends when a failure has been reported, or there is no watch any more
	end    func()          // ends judged
}

// prepareWatch has the operations on the GPU end when the communicator does, and tells its life what they do. The
// watcher hears of their faults, gives up on them after Config.Timeout, and reports what went wrong first to that life,
// once.
func (u *upkeep) prepareWatch() {
	var before atomic.Uint64 // 1 + operations that had ended when this rank was stopped
	u.Life.OnStop(func(cause error) {
		_, finished := u.engine.Control().Progress()
		before.Store(finished + 1)
		u.engine.Control().Abort()
		u.net.Stop(cause)
	})
	u.net.OnBroken(u.announce)
	u.Life.Awaits(u.watch.roll.awaited)
	u.Life.Ran(func() bool {
		_, finished := u.engine.Control().Progress()
		n := before.Load()
		return n > 0 && finished >= n
	})
	u.Life.Busy(func() bool {
		started, finished := u.engine.Control().Progress()
		return started != finished
	})
}

// announce tells the watcher that something is queued, or has broken.
func (u *upkeep) announce() {
	u.watch.begun.Do(func() {
		u.watch.since = time.Now()
		theWatcher.add(u)
	})
	theWatcher.rouse()
}

// unwatch ends the watch for good.
func (u *upkeep) unwatch() {
	u.watch.begun.Do(func() {}) // it need not begin any more
	theWatcher.remove(u)
	u.watch.end()
}

// look is what the watcher does for a communicator. It reports whether operations are under way, and whether there is
// no more to watch because a failure has been found.
func (u *upkeep) look(now time.Time) (works, done bool) {
	w, control := &u.watch, u.engine.Control()
	started, finished := control.Progress()
	works = started != finished || started != w.at
	if started == finished || started != w.at {
		w.at, w.since = started, now
		if !w.roll.asked.IsZero() {
			w.roll.end(control)
		}
	}
	var cause error
	switch broken := u.net.Broken(); {
	case control.Fault() != nil:
		cause = control.Fault()
	case broken != nil:
		cause = broken
	case now.Sub(u.still(now)) > u.Life.Timeout:
		cause = fmt.Errorf("not done after %v: %w", u.Life.Timeout, call.ErrTimeout)
	default:
		if now.Sub(w.since) > life.Slow {
			cause = u.call(now)
		}
	}
	if cause == nil {
		return works, false
	}
	u.Life.Go(func() {
		defer w.end()
		u.blame(cause)
	})
	return false, true
}

// still is since when nothing has moved: since an operation has started, or anything on emulated GPUs, which are slow.
func (u *upkeep) still(now time.Time) time.Time {
	w := &u.watch
	if now.Sub(w.since) < life.Slow {
		return w.since
	}
	if n, _ := cuda.Moves(u.Device.Driver()); n != w.moves {
		w.moves, w.moved = n, now
	}
	if w.moved.After(w.since) {
		return w.moved
	}
	return w.since
}

// abortTime is how long kernels may take to say where they were stopped, and emulatedAbortTime those of a program under
// ringo emulate, which may have a slow machine.
const (
	abortTime         = 500 * time.Millisecond
	emulatedAbortTime = 20 * time.Second
)

func (u *upkeep) abortTime() time.Duration {
	if _, emulated := cuda.Moves(u.Device.Driver()); emulated {
		return emulatedAbortTime
	}
	return abortTime
}

// verdictTime bounds the time in which the watcher finds out why a kernel has stopped: it
// waits for the kernel, and then for the other ranks' word.
func (u *upkeep) verdictTime() time.Duration { return u.abortTime() + life.RollCallWait + time.Second }

// Verdict is Err for a caller whose stream is done. Graphs that were launched after Close are an error too. It may be
// called at any time.
func (u *upkeep) Verdict() error {
	u.observed.look()
	if sealed, err := u.estate.trespass(); err != nil {
		return u.Life.ErrorIn(life.OpComm, err)
	} else if sealed {
		return u.Life.Err()
	}
	return u.Err()
}

// Err is why the communicator has failed, nil if it is well. A stream may be done before
// the watcher knows why its kernels have stopped; Err waits for the watcher then. It may be called at any time.
func (u *upkeep) Err() error {
	if u.engine.Control().Fault() != nil {
		late := time.NewTimer(u.verdictTime())
		defer late.Stop()
		select {
		case <-u.watch.judged.Done():
		case <-late.C:
		}
	}
	return u.Life.Err()
}

// blame ends the communicator because of what happened to the operation that the GPU is
// at. It stops the kernels; those that wait for a peer say for whom and in which call.
func (u *upkeep) blame(cause error) {
	control := u.engine.Control()
	control.Abort()
	for end := time.Now().Add(u.abortTime()); control.Fault() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if started, finished := control.Progress(); started == finished {
			break
		}
	}
	var step, where *engine.StepError
	if !errors.As(control.Fault(), &where) { // no kernel has said where it was
		if errors.Is(cause, call.ErrTimeout) {
			cause = fmt.Errorf("%w: blocks of its kernel have not begun: other kernels hold the GPU; RINGO_MAX_CTAS bounds a "+
				"communicator's", cause)
		}
		u.Life.Found(u.Life.ErrorOf(life.OpComm, cause), nil, u.Log)
		return
	}
	s := call.ReadSign(control.Stamp())
	if !errors.As(cause, &step) {
		step = &engine.StepError{Peer: where.Peer, Phase: where.Phase, Err: cause}
		cause = step
	}
	if errors.Is(step.Err, grid.ErrAborted) {
		if err := u.Life.Guard.Aborted(); err != nil { // the communicator ended first: that stopped the kernel
			step = &engine.StepError{Peer: step.Peer, Phase: step.Phase, Err: err}
			cause = step
		}
	}
	if s.Kind == call.Send && step.Phase == "recv" { // both ranks stamp a message as a Send
		s.Kind = call.Recv
	}
	u.Life.Found(u.Life.Locate(&call.Call{Kind: s.Kind}, s.Seq, cause, u), step, u.Log)
}
