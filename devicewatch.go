package ringo

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/mem"
)

// watchPeriod is how often a watcher looks at the control block of its GPU, and
// so how late kernels hear of the communicator's end.
const watchPeriod = 5 * time.Millisecond

// watchDevice looks after the operations on the GPU: it hears of their faults,
// ends them when the communicator ends, and gives up on them when they take
// longer than Config.Timeout.
func (c *Comm) watchDevice() {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	var at uint64
	since := time.Now()
	control, net := c.dev.engine.Control(), c.dev.net
	for {
		select {
		case <-c.gone:
			return
		case <-tick.C:
		}
		if err := c.guard.Aborted(); err != nil {
			control.Abort()
			net.stop(err)
		}
		started, finished := control.Progress()
		if started == finished || started != at {
			at, since = started, time.Now()
		}
		switch broken := net.broken.Load(); {
		case c.failed.Load() != nil:
		case control.Fault() != nil:
			c.failOnDevice(control.Fault())
		case broken != nil:
			c.failOnDevice(broken)
		case time.Since(since) > c.cfg.Timeout:
			c.failOnDevice(fmt.Errorf("not done after %v: %w", c.cfg.Timeout, ErrTimeout))
		}
	}
}

// verdict is why the communicator has failed. Kernels that were aborted end before
// the watcher has found out why; it waits for that.
func (c *Comm) verdict() error {
	if c.dev != nil && c.dev.engine != nil {
		for c.dev.engine.Control().Aborted() && c.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	return c.Err()
}

// abortTime is how long kernels may take to say where they were aborted.
const abortTime = 200 * time.Millisecond

// failOnDevice ends the communicator because of what happened to the operation
// that the GPU is at. Kernels that wait for a peer say for whom.
func (c *Comm) failOnDevice(cause error) {
	control := c.dev.engine.Control()
	control.Abort()
	for end := time.Now().Add(abortTime); control.Fault() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if started, finished := control.Progress(); started == finished {
			break
		}
	}
	call := &Call{Kind: KindBarrier, In: mem.Device(c.dev.gpu.Number(), 0, 0)}
	var s sign
	var step, where *engine.StepError
	if errors.As(control.Fault(), &where) {
		s = signOf(control.Stamp())
		call.Kind = s.kind
		if !errors.As(cause, &step) {
			cause = &engine.StepError{Peer: where.Peer, Phase: where.Phase, Err: cause}
		}
	}
	if errors.As(cause, &step) && errors.Is(step.Err, grid.ErrAborted) {
		if err := c.guard.Aborted(); err != nil { // that is why
			cause = &engine.StepError{Peer: step.Peer, Phase: step.Phase, Err: err}
		}
	}
	c.end(c.errorOf(call, s.seq, cause), cause)
}
