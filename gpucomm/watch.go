package gpucomm

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/life"
	"github.com/ringo-go/ringo/mem"
)

// watchPeriod is how often the watcher looks at the control block of the GPU.
const watchPeriod = 5 * time.Millisecond

// watch looks after the operations on the GPU: it hears of their faults, ends them when the
// communicator ends, and gives up on them when they take longer than Config.Timeout.
func (g *Comm) watch() {
	g.Life.OnStop(func(cause error) {
		g.engine.Control().Abort()
		g.net.Stop(cause)
	})
	g.Life.Watch(func(gone <-chan struct{}) {
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
			case g.blamed.Load():
			case control.Fault() != nil:
				g.blame(control.Fault())
			case broken != nil:
				g.blame(broken)
			case time.Since(since) > g.Life.Timeout:
				g.blame(fmt.Errorf("not done after %v: %w", g.Life.Timeout, call.ErrTimeout))
			}
		}
	})
}

// abortTime is how long kernels may take to say where they were aborted.
const abortTime = 200 * time.Millisecond

// Verdict is why the communicator has failed. Kernels that were stopped end before the
// watcher has found out at which call they were; Verdict waits for that. It may be called
// at any time.
func (g *Comm) Verdict() error {
	for end := time.Now().Add(2 * life.RootCauseWait); g.engine.Control().Fault() != nil && !g.blamed.Load() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return g.Life.Err()
}

// blame ends the communicator because of what happened to the operation that the GPU is
// at. Kernels that wait for a peer say for whom.
func (g *Comm) blame(cause error) {
	defer g.blamed.Store(true)
	control := g.engine.Control()
	control.Abort()
	for end := time.Now().Add(abortTime); control.Fault() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if started, finished := control.Progress(); started == finished {
			break
		}
	}
	c := &call.Call{Kind: call.Barrier, In: mem.Device(g.Device.Number(), 0, 0)}
	var s call.Sign
	var step, where *engine.StepError
	if errors.As(control.Fault(), &where) {
		s = call.ReadSign(control.Stamp())
		c.Kind = s.Kind
		if !errors.As(cause, &step) {
			cause = &engine.StepError{Peer: where.Peer, Phase: where.Phase, Err: cause}
		}
	}
	if errors.As(cause, &step) && errors.Is(step.Err, grid.ErrAborted) {
		if err := g.Life.Guard.Aborted(); err != nil { // that is why
			cause = &engine.StepError{Peer: step.Peer, Phase: step.Phase, Err: err}
		}
	}
	g.Life.Fail(c, s.Seq, cause, g)
}
