package gpucomm

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/life"
)

// watchPeriod is how often the watcher looks at the control block of the GPU.
const watchPeriod = 5 * time.Millisecond

// watch starts the watcher of the operations on the GPU. It hears of their faults, ends them
// when the communicator ends, and gives up on them when they take longer than
// Config.Timeout. What went wrong first it reports to the communicator's life, once.
func (g *Comm) watch() {
	g.Life.OnStop(func(cause error) {
		g.engine.Control().Abort()
		g.net.Stop(cause)
	})
	g.Life.Watch(func(gone <-chan struct{}) {
		defer close(g.judged)
		tick := time.NewTicker(watchPeriod)
		defer tick.Stop()
		var at uint64
		since := time.Now()
		control := g.engine.Control()
		for {
			select {
			case <-gone:
				return
			case <-tick.C:
			}
			started, finished := control.Progress()
			if started == finished || started != at {
				at, since = started, time.Now()
			}
			switch broken := g.net.Broken(); {
			case control.Fault() != nil:
				g.blame(control.Fault())
				return
			case broken != nil:
				g.blame(broken)
				return
			case time.Since(since) > g.Life.Timeout:
				g.blame(fmt.Errorf("not done after %v: %w", g.Life.Timeout, call.ErrTimeout))
				return
			}
		}
	})
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
	if g.engine.Control().Fault() != nil {
		late := time.NewTimer(verdictTime)
		defer late.Stop()
		select {
		case <-g.judged:
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
