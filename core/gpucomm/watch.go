package gpucomm

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/life"
)

// A watch is what the watcher (watcher.go) knows of a communicator.
type watch struct {
	begun  sync.Once
	at     uint64        // the operation that started last, when the watcher looked
	since  time.Time     // then, or the last time that nothing was under way
	judged chan struct{} // closed when a failure has been reported, or there is no watch any more
	judge  sync.Once     // closes judged
}

// prepareWatch has the operations on the GPU end when the communicator does. The watcher
// hears of their faults, and gives up on them when they take longer than Config.Timeout. What
// went wrong first it reports to the communicator's life, once.
func (g *Comm) prepareWatch() {
	g.Life.OnStop(func(cause error) {
		g.engine.Control().Abort()
		g.net.Stop(cause)
	})
	g.net.OnBroken(g.announce)
	g.Life.Busy(func() bool {
		started, finished := g.engine.Control().Progress()
		return started != finished
	})
}

// announce tells the watcher that something is queued, or has broken.
func (g *Comm) announce() {
	g.watch.begun.Do(func() {
		g.watch.since = time.Now()
		theWatcher.add(g)
	})
	theWatcher.rouse()
}

// unwatch ends the watch for good.
func (g *Comm) unwatch() {
	g.watch.begun.Do(func() {}) // it need not begin any more
	theWatcher.remove(g)
	g.watch.end()
}

func (w *watch) end() { w.judge.Do(func() { close(w.judged) }) }

// look is the watcher's. It reports whether operations are under way, and whether there is
// no more to watch because a failure has been found.
func (g *Comm) look(now time.Time) (works, done bool) {
	w, control := &g.watch, g.engine.Control()
	started, finished := control.Progress()
	works = started != finished || started != w.at
	if started == finished || started != w.at {
		w.at, w.since = started, now
	}
	var cause error
	switch broken := g.net.Broken(); {
	case control.Fault() != nil:
		cause = control.Fault()
	case broken != nil:
		cause = broken
	case now.Sub(w.since) > g.Life.Timeout:
		cause = fmt.Errorf("not done after %v: %w", g.Life.Timeout, call.ErrTimeout)
	default:
		return works, false
	}
	g.Life.Go(func() {
		defer w.end()
		g.blame(cause)
	})
	return false, true
}

// abortTime is how long kernels may take to say where they were stopped.
const abortTime = 500 * time.Millisecond

// verdictTime bounds the time in which the watcher finds out why a kernel has stopped: it
// waits for the kernel, and then for the other ranks' word.
const verdictTime = abortTime + life.RollCallWait + time.Second

// Verdict is why the communicator has failed, nil if it is well. A stream may be done before
// the watcher knows why its kernels have stopped; Verdict waits for the watcher then. It may
// be called at any time.
func (g *Comm) Verdict() error {
	g.observed.look()
	if sealed, err := g.estate.trespass(); err != nil {
		return g.Life.ErrorIn(life.OpComm, err)
	} else if sealed {
		return g.Life.Err()
	}
	if g.engine.Control().Fault() != nil {
		late := time.NewTimer(verdictTime)
		defer late.Stop()
		select {
		case <-g.watch.judged:
		case <-late.C:
		}
	}
	return g.Life.Err()
}

// blame ends the communicator because of what happened to the operation that the GPU is
// at. It stops the kernels; those that wait for a peer say for whom and in which call.
func (g *Comm) blame(cause error) {
	control := g.engine.Control()
	control.Abort()
	for end := time.Now().Add(abortTime); control.Fault() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if started, finished := control.Progress(); started == finished {
			break
		}
	}
	var step, where *engine.StepError
	if !errors.As(control.Fault(), &where) { // no kernel has said where it was
		if errors.Is(cause, call.ErrTimeout) {
			cause = fmt.Errorf("%w: blocks of its kernel have not begun: other kernels hold the GPU; RINGO_MAX_CTAS bounds a communicator's", cause)
		}
		g.Life.FailIn(life.OpComm, cause)
		return
	}
	s := call.ReadSign(control.Stamp())
	if !errors.As(cause, &step) {
		cause = &engine.StepError{Peer: where.Peer, Phase: where.Phase, Err: cause}
	}
	if errors.As(cause, &step) && errors.Is(step.Err, grid.ErrAborted) {
		if err := g.Life.Guard.Aborted(); err != nil { // the communicator ended first: that stopped the kernel
			cause = &engine.StepError{Peer: step.Peer, Phase: step.Phase, Err: err}
		}
	}
	g.Life.Fail(&call.Call{Kind: s.Kind}, s.Seq, cause, g)
}
