package gpucomm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A watch is the watcher (watcher.go) of one communicator, and what it knows.
type watch struct {
	life     *life.Life
	driver   cuda.Driver
	net      *gpupaths.Net
	path     life.Path
	control  *grid.Control
	estate   *estate
	observed *observed
	log      *slog.Logger
	watcher  *watcher // of the process

	begun  sync.Once
	at     uint64          // operations that had started when the watcher last looked
	since  time.Time       // when one last started, or when nothing was under way
	moves  uint64          // see cuda.Moves
	moved  time.Time       // when moves last changed
	roll   roll            // for whom kernels wait
	judged context.Context // ends when a failure has been reported, or there is no watch any more
	end    func()          // ends judged
}

func newWatch(o *Options, net *gpupaths.Net, path life.Path, c *grid.Control, e *estate, observed *observed) *watch {
	w := &watch{life: o.Life, driver: e.driver, net: net, path: path, control: c, estate: e, observed: observed,
		log: o.Log, watcher: watchers.In(o.Process), roll: roll{life: o.Life, group: o.Group, control: c}}
	w.judged, w.end = context.WithCancel(context.Background())
	return w
}

// start has the operations on the GPU end when the communicator does, and tells its life what they do. The watcher
// hears of their faults, gives up on them after Config.Timeout, and reports what went wrong first to that life, once.
func (w *watch) start() {
	var before atomic.Uint64 // 1 + operations that had ended when this rank was stopped
	w.life.OnStop(func(cause error) {
		_, finished := w.control.Progress()
		before.Store(finished + 1)
		w.control.Abort()
		w.net.Stop(cause)
	})
	w.net.OnBroken(w.announce)
	w.life.Awaits(w.roll.awaited)
	w.life.Ran(func() bool {
		_, finished := w.control.Progress()
		n := before.Load()
		return n > 0 && finished >= n
	})
	w.life.Busy(func() bool {
		started, finished := w.control.Progress()
		return started != finished
	})
}

// announce tells the watcher that something is queued, or has broken.
func (w *watch) announce() {
	w.begun.Do(func() {
		w.since = time.Now()
		w.watcher.add(w)
	})
	w.watcher.rouse()
}

// stop ends the watch for good.
func (w *watch) stop() {
	w.begun.Do(func() {}) // it need not begin any more
	w.watcher.remove(w)
	w.end()
}

// look is what the watcher does for a communicator. It reports whether operations are under way, and whether there is
// no more to watch because a failure has been found.
func (w *watch) look(now time.Time) (works, done bool) {
	w.life.Turn.Aides.Run(func() { works, done = w.lookIn(now) })
	return works, done
}

// lookIn is look on a goroutine that must not wait for the turn.
func (w *watch) lookIn(now time.Time) (works, done bool) {
	started, finished := w.control.Progress()
	works = started != finished || started != w.at
	if started == finished || started != w.at {
		w.at, w.since = started, now
		if !w.roll.asked.IsZero() {
			w.roll.end()
		}
	}
	var cause error
	switch broken := w.net.Broken(); {
	case w.control.Fault() != nil:
		cause = w.control.Fault()
	case broken != nil:
		cause = broken
	case now.Sub(w.still(now)) > w.life.Timeout:
		cause = fmt.Errorf("not done after %v: %w", w.life.Timeout, call.ErrTimeout)
	default:
		if now.Sub(w.since) > life.Slow {
			cause = w.roll.call(now)
		}
	}
	if cause == nil {
		return works, false
	}
	w.life.Go(func() {
		defer w.end()
		w.blame(cause)
	})
	return false, true
}

// still is since when nothing has moved: since an operation has started, or anything on emulated GPUs, which are slow.
func (w *watch) still(now time.Time) time.Time {
	if now.Sub(w.since) < life.Slow {
		return w.since
	}
	if n, _ := cuda.Moves(w.driver); n != w.moves {
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

func (w *watch) abortTime() time.Duration {
	if _, emulated := cuda.Moves(w.driver); emulated {
		return emulatedAbortTime
	}
	return abortTime
}

// verdictTime bounds the time in which the watcher finds out why a kernel has stopped: it
// waits for the kernel, and then for the other ranks' word.
func (w *watch) verdictTime() time.Duration { return w.abortTime() + life.RollCallWait + time.Second }

// verdict is err, or that a graph was launched after Close, for a caller whose stream is done.
func (w *watch) verdict() error {
	w.observed.look()
	if sealed, err := w.estate.trespass(); err != nil {
		return w.life.ErrorIn(life.OpComm, err)
	} else if sealed {
		return w.life.Err()
	}
	return w.err()
}

// err is why the communicator has failed, nil if it is well. A stream may be done before the watcher knows why its
// kernels have stopped; err waits for the watcher then.
func (w *watch) err() error {
	if w.control.Fault() != nil {
		late := time.NewTimer(w.verdictTime())
		defer late.Stop()
		select {
		case <-w.judged.Done():
		case <-late.C:
		}
	}
	return w.life.Err()
}

// blame ends the communicator because of what happened to the operation that the GPU is
// at. It stops the kernels; those that wait for a peer say for whom and in which call.
func (w *watch) blame(cause error) {
	w.control.Abort()
	end := time.Now().Add(w.abortTime())
	for ; w.control.Fault() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if started, finished := w.control.Progress(); started == finished {
			break
		}
	}
	var step, where *engine.StepError
	if !errors.As(w.control.Fault(), &where) { // no kernel has said where it was
		if errors.Is(cause, call.ErrTimeout) {
			cause = fmt.Errorf("%w: blocks of its kernel have not begun: other kernels hold the GPU; RINGO_MAX_CTAS bounds a "+
				"communicator's", cause)
		}
		w.life.Found(w.life.ErrorOf(life.OpComm, cause), nil, w.log)
		return
	}
	s := call.ReadSign(w.control.Stamp())
	if !errors.As(cause, &step) {
		step = &engine.StepError{Peer: where.Peer, Phase: where.Phase, Err: cause}
		cause = step
	}
	if errors.Is(step.Err, grid.ErrAborted) {
		if err := w.life.Guard.Aborted(); err != nil { // the communicator ended first: that stopped the kernel
			step = &engine.StepError{Peer: step.Peer, Phase: step.Phase, Err: err}
			cause = step
		}
	}
	if s.Kind == call.Send && step.Phase == "recv" { // both ranks stamp a message as a Send
		s.Kind = call.Recv
	}
	w.life.Found(w.life.Locate(&call.Call{Kind: s.Kind}, s.Seq, cause, w.path), step, w.log)
}
