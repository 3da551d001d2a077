package capi

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
)

// A comm is the communicator of a handle: a ringo.Comm, and the state that NCCL's interface
// needs beyond it. If it does not block, calls that wait for other ranks run in the background.
type comm struct {
	handle   uintptr
	device   *gpu.Device // nil on host memory
	blocking bool
	config   ringo.Config // of its opening, for communicators that are derived from it
	watched

	usable  atomic.Pointer[ringo.Comm] // nil before it is open, while it is busy, and after Finalize
	opening context.Context
	cancel  context.CancelFunc // ends opening
	quiet   chan struct{}      // closed when the communicator is closing and no job is left
	gone    chan struct{}      // closed when all has been given back
	lost    error              // the error of giving back, readable once gone is closed
	said    atomic.Bool        // the failure was logged
	told    atomic.Bool        // the program was given the failure of what it does in the background

	mu       sync.Mutex
	ring     *ringo.Comm    // guarded by mu; nil until it is open
	state    state          // guarded by mu
	started  *ringo.Pending // guarded by mu; the last call in the background
	meeting  meeting        // guarded by mu; where the ranks meet again after a failure
	splits   int            // guarded by mu
	reopened int            // guarded by mu; how often all ranks met again after ncclCommRevoke
	shrinks  map[string]int // guarded by mu; number of Shrinks after a failure, by excluded ranks
	ops      []*operator    // guarded by mu; of RedOpCreatePreMulSum, nil where one was destroyed
	post     *post          // guarded by mu; of one-sided messages on host memory, nil before the first window
	windows  []*window      // guarded by mu; in the order in which all ranks registered them, nil where one was closed
	records  records        // the windows' records, for kernels
}

func newComm(d *gpu.Device, blocking bool, cfg ringo.Config) *comm {
	c := &comm{device: d, blocking: blocking, config: cfg, quiet: make(chan struct{}), gone: make(chan struct{})}
	c.opening, c.cancel = context.WithCancel(context.Background())
	return c
}

// change applies an event to the state, and then lets calls in or keeps them out. It returns the event's error.
func (c *comm) change(event func(s *state) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state.quiet()
	err := event(&c.state)
	if c.state.takes() == nil {
		c.usable.Store(c.ring)
	} else {
		c.usable.Store(nil)
	}
	if c.state.quiet() && !before {
		close(c.quiet)
	}
	return err
}

// begin makes a communicator busy with a job in the background.
func (c *comm) begin() error { return c.change((*state).begin) }

// finish ends the job that begin has announced.
func (c *comm) finish(err error) {
	_ = c.change(func(s *state) error { s.finish(err); return nil })
}

// do carries out a job that may wait for other ranks: now, or in the background for a
// communicator that does not block.
func (c *comm) do(job func() error) error {
	if c.blocking {
		return job()
	}
	if err := c.begin(); err != nil {
		return err
	}
	go func() { c.finish(job()) }()
	return errInProgress
}

// take stores the ringo.Comm that was opened, or the error of opening it.
func (c *comm) take(r *ringo.Comm, err error) {
	_ = c.change(func(s *state) error {
		if s.fail(err); err == nil {
			c.ring, s.open = r, true
		}
		return nil
	})
	if err == nil {
		c.tells(r, c.is)
		c.tellsFailure(r)
		c.say(r, "Init")
		c.sayShared(r)
	}
}

// sayShared says of a communicator of which two ranks have one GPU that NCCL would refuse it: a program may do so by
// mistake. One rank does.
func (c *comm) sayShared(r *ringo.Comm) {
	shared := func(path string) bool { return strings.Contains(path, "ranks share a GPU") }
	if r.Rank() == 0 && slices.ContainsFunc(r.Paths(), shared) {
		const text = "two ranks on one GPU: NCCL refuses this with ncclInvalidUsage; give each rank a GPU of its own"
		c.config.Log.Warn(text, "subsys", "INIT")
		emulateNote(text)
	}
}

// say logs a step, in the words of NCCL's log, which people search for.
func (c *comm) say(r *ringo.Comm, what string) {
	if r != nil && c.config.Log.Enabled(context.Background(), slog.LevelInfo) {
		device := 0
		if c.device != nil {
			device = c.device.Number()
		}
		c.config.Log.Info(fmt.Sprintf("comm %#x rank %d nranks %d cudaDev %d - %s COMPLETE", c.handle, r.Rank(), r.Size(),
			device, what), "subsys", "INIT")
	}
}

// opened returns the ringo.Comm that take has stored, nil before.
func (c *comm) opened() *ringo.Comm {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ring
}

// whyUnusable returns the reason why the field usable is nil.
func (c *comm) whyUnusable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := c.state.takes(); why != nil {
		c.told.Store(c.told.Load() || why == c.state.failed)
		return why
	}
	return errNotReady // usable was nil a moment ago
}

// ready is a communicator that takes calls.
func (l *Library) ready(handle uintptr) (*comm, *ringo.Comm, error) {
	c, err := l.comms.Get(handle)
	if err != nil {
		return nil, nil, err
	}
	r := c.usable.Load()
	if r == nil {
		return nil, nil, c.whyUnusable()
	}
	return c, r, nil
}

// known is a communicator that has been opened and not yet destroyed.
func (l *Library) known(handle uintptr) (*comm, *ringo.Comm, error) {
	c, err := l.comms.Get(handle)
	if err != nil {
		return nil, nil, err
	}
	r := c.opened()
	if r == nil {
		return nil, nil, c.whyUnusable()
	}
	return c, r, nil
}

// Count is the number of ranks.
func (l *Library) Count(handle uintptr) (int, error) {
	_, r, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	return r.Size(), nil
}

// UserRank is the caller's rank.
func (l *Library) UserRank(handle uintptr) (int, error) {
	_, r, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	return r.Rank(), nil
}

// Device is the number of the rank's GPU, 0 on host memory.
func (l *Library) Device(handle uintptr) (int, error) {
	c, err := l.comms.Get(handle)
	if err != nil || c.device == nil {
		return 0, err
	}
	return c.device.Number(), nil
}

// AsyncError returns a communicator's state: Success, InProgress, or the number of its failure, and the failure.
func (l *Library) AsyncError(handle uintptr) (r Result, why, err error) {
	c, err := l.comms.Get(handle)
	if err != nil {
		return ResultOf(err), nil, err
	}
	if l.exiting.Load() { // a watchdog must not take the end of the process for a failure
		return Success, nil, nil
	}
	r, why = c.asyncError()
	l.failed(c, why)
	l.Note(why)
	return r, why, nil
}

// background is why what the communicator does in the background has failed, unless the program knows.
func (c *comm) background() error {
	if c.blocking || c.told.Load() {
		return nil
	}
	_, _, err := c.known()
	return err
}

// asyncError is a communicator's state as a Result, and the error behind a failure, for the program.
func (c *comm) asyncError() (Result, error) {
	r, well, err := c.known()
	if well != nil {
		err = well.Err() // may wait, so not under the lock
		r = ResultOf(err)
	}
	c.told.Store(c.told.Load() || err != nil)
	return r, err
}

// known returns what the library itself knows of a communicator's state. If nothing is wrong, well is the ringo.Comm
// to ask.
func (c *comm) known() (r Result, well *ringo.Comm, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state.jobs > 0 || c.started != nil && !ended(c.started):
		return InProgress, nil, nil
	case c.state.revoked:
		return Success, nil, nil
	case c.state.failed != nil:
		return ResultOf(c.state.failed), nil, c.state.failed
	case c.started != nil && c.started.Wait() != nil:
		return ResultOf(c.started.Wait()), nil, c.started.Wait()
	case c.ring == nil: // in a group that has not ended
		return InProgress, nil, nil
	}
	return Success, c.ring, nil
}

// ended reports whether an operation has ended.
func ended(p *ringo.Pending) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}
