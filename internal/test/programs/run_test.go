package programs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/commtest"
)

// A run is a program that is being carried out.
type run struct {
	p       *Program
	devices []*gpu.Device
	expect  []expectation // by step
	timeout time.Duration
	ranks   []*rank
	gates   []gate // by step

	mu     sync.Mutex
	opened []*ringo.Comm
	err    error         // the first
	failed chan struct{} // closed when err is set
}

// An expectation is the model's forecast of a step.
type expectation struct {
	state  state   // of the step's communicator, before it
	calls  []state // the same for the calls of a group
	taken  bool    // the step's stream is being captured, before it
	who    []int   // the devices that take part, nil for all
	graph  int     // that captures the step's stream
	memory [][Buffers]cells
}

// A gate is where all ranks meet at a step, in a program with a goroutine for each rank.
type gate struct {
	once  sync.Once
	mu    sync.Mutex
	here  int
	open  chan struct{}
	comms []*ringo.Comm
	err   error
}

// Run carries out a program on devices, rank r on the r-th, and returns how many operations of communicators it had.
// The error is the first fault: a wrong result, an error that was not expected, or a program that has not ended by the
// deadline. After an error the process is good for nothing else: calls of the program may still wait.
func Run(devices []*gpu.Device, p *Program, deadline time.Duration) (calls int, err error) {
	if len(devices) < p.Ranks {
		return 0, fmt.Errorf("programs: %d devices for %d ranks", len(devices), p.Ranks)
	}
	x := &run{p: p, devices: devices[:p.Ranks], timeout: deadline / 2, failed: make(chan struct{})}
	if calls, err = x.foresee(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.all()
	}()
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case <-ended:
	case <-x.failed:
	case <-timer.C:
		x.fail(fmt.Errorf("not done after %v: %s\n%s", deadline, x.where(), stacks(true)))
	}
	x.mu.Lock()
	err = x.err
	x.mu.Unlock()
	if err != nil {
		go x.abort()
		select {
		case <-ended:
		case <-time.After(time.Second):
			err = fmt.Errorf("%w (and does not end: %s)", err, x.where())
		}
	}
	return calls, err
}

// setenv sets the environment variables that the program names.
func (p *Program) setenv() {
	for name, n := range map[string]int{"RINGO_WORK_FIFO_BYTES": p.Ring, "RINGO_WORK_ARGS_BYTES": p.Args} {
		os.Unsetenv(name)
		if n > 0 {
			os.Setenv(name, strconv.Itoa(n))
		}
	}
}

// foresee has the model make the expectations of all steps.
func (x *run) foresee() (calls int, err error) {
	m := newModel(x.p)
	x.expect, x.gates = make([]expectation, len(x.p.Steps)), make([]gate, len(x.p.Steps))
	stateOf := func(s *Step) state {
		if c := m.comms[s.Comm]; c != nil {
			return c.state
		}
		return alive
	}
	for i := range x.p.Steps {
		s, e := &x.p.Steps[i], &x.expect[i]
		e.state = stateOf(s)
		for k := range s.Calls {
			e.calls = append(e.calls, stateOf(&s.Calls[k]))
		}
		g := m.taken[s.on()]
		if s.Do == Begin {
			e.who = s.Ranks
		}
		if g != nil {
			e.taken, e.who, e.graph = true, g.ranks, g.number
		}
		if err := m.step(s); err != nil {
			return 0, fmt.Errorf("step %d, %s: %w", i, s, err)
		}
		if s.Do == Check {
			for r := range m.comms[s.Comm].members {
				var all [Buffers]cells
				for b := range all {
					all[b] = m.at(s.Comm, r, b).get(0, x.p.Bytes)
				}
				e.memory = append(e.memory, all)
			}
		}
		x.gates[i].open = make(chan struct{})
	}
	if len(m.captures()) > 0 {
		return 0, fmt.Errorf("a capture does not end")
	}
	return m.calls, nil
}

// all has the ranks do their steps, from one goroutine or from one each.
func (x *run) all() {
	defer func() { // where something panics
		if p := recover(); p != nil {
			x.fail(fmt.Errorf("panic: %v\n%s", p, stacks(false)))
		}
	}()
	for r, d := range x.devices {
		k := &rank{run: x, number: r, store: store{d: d}, driver: d.Driver()}
		if err := k.begin(); err != nil {
			x.fail(err)
			return
		}
		x.ranks = append(x.ranks, k)
	}
	if x.p.Each {
		var wg sync.WaitGroup
		for _, k := range x.ranks {
			wg.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				for i := range x.p.Steps {
					for range max(1, x.p.Steps[i].Times) {
						if x.fail(k.step(i, nil)) {
							return
						}
					}
				}
			})
		}
		wg.Wait()
	} else {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	steps:
		for i := range x.p.Steps {
			for range max(1, x.p.Steps[i].Times) {
				if x.stepOfAll(i) {
					break steps
				}
			}
		}
	}
	if !x.hasFailed() {
		x.fail(x.end())
	}
}

// stepOfAll has one goroutine do a step of all ranks, unless they wait for each other in it.
func (x *run) stepOfAll(i int) (failed bool) {
	switch x.p.Steps[i].Do {
	case Open, Split, Register, Unregister, Close:
		var wg sync.WaitGroup
		for _, k := range x.ranks {
			wg.Go(func() { x.fail(k.step(i, nil)) })
		}
		wg.Wait()
		return x.hasFailed()
	case Group: // one for all, as a thread that drives several GPUs has to do it
		g := ringo.NewGroup()
		for _, k := range x.ranks {
			if x.fail(k.step(i, g)) {
				return true
			}
		}
		return x.fail(x.p.at(i, g.Run()))
	}
	for _, k := range x.ranks {
		if x.fail(k.step(i, nil)) {
			return true
		}
	}
	return x.hasFailed()
}

// at says at which step an error came.
func (p *Program) at(i int, err error) error {
	if err != nil {
		err = fmt.Errorf("step %d, %s: %w", i, &p.Steps[i], err)
	}
	return err
}

// meet has all ranks wait for each other at a step. It returns false if the run has failed.
func (x *run) meet(i int) bool {
	if !x.p.Each {
		return true
	}
	g := &x.gates[i]
	g.mu.Lock()
	if g.here++; g.here == x.p.Ranks {
		close(g.open)
	}
	g.mu.Unlock()
	select {
	case <-g.open:
		return true
	case <-x.failed:
		return false
	}
}

// fail notes the first error. It reports whether the run has failed.
func (x *run) fail(err error) bool {
	if err == nil {
		return x.hasFailed()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
		close(x.failed)
	}
	return true
}

func (x *run) hasFailed() bool {
	select {
	case <-x.failed:
		return true
	default:
		return false
	}
}

// abort ends what waits.
func (x *run) abort() {
	x.mu.Lock()
	comms := x.opened
	x.mu.Unlock()
	for _, c := range comms {
		c.Abort(errors.New("the program has failed"))
	}
}

// where says at which step each rank is.
func (x *run) where() string {
	var list []string
	for _, k := range x.ranks {
		if i := int(k.at.Load()); i < len(x.p.Steps) {
			list = append(list, fmt.Sprintf("rank %d is at step %d, %s", k.number, i, &x.p.Steps[i]))
		} else {
			list = append(list, fmt.Sprintf("rank %d is at the end", k.number))
		}
	}
	return strings.Join(list, "; ")
}

// end closes what is open, and gives everything back. Some graphs are destroyed after the
// communicators that they use are closed.
func (x *run) end() error {
	var errs []error
	var wg sync.WaitGroup
	for _, c := range x.opened {
		wg.Go(func() {
			if err := c.Close(); err != nil && c.Err() == nil {
				x.fail(fmt.Errorf("at the end: Close: %w", err))
			}
		})
	}
	wg.Wait()
	for _, k := range x.ranks {
		k.at.Store(int64(len(x.p.Steps)))
		errs = append(errs, k.end())
	}
	return errors.Join(errs...)
}

// stacks are those of all goroutines, or of this one.
func stacks(all bool) string {
	b := make([]byte, 64<<10)
	return string(b[:runtime.Stack(b, all)])
}

// openAll makes a communicator of all ranks; the first rank that comes does it.
func (x *run) openAll(i int, s *Step) ([]*ringo.Comm, error) {
	g := &x.gates[i]
	g.once.Do(func() {
		cfg := ringo.Config{Devices: x.devices, Algo: s.Algo, SlotBytes: s.Slot, Timeout: x.timeout, JoinTimeout: x.timeout}
		if s.Ordered {
			cfg.Deterministic = "rank order"
		}
		switch s.Path {
		case "host":
			cfg = commtest.Under(cfg, "RINGO_P2P_DISABLE=1")
		case "bridge":
			cfg = commtest.Under(cfg, "RINGO_P2P_DISABLE=1", "RINGO_SHM_DISABLE=1")
		}
		g.comms, g.err = ringo.OpenLocal(len(x.devices), cfg)
		x.keep(g.comms...)
	})
	return g.comms, g.err
}

// keep notes communicators that are to be closed.
func (x *run) keep(comms ...*ringo.Comm) {
	x.mu.Lock()
	x.opened = append(x.opened, comms...)
	x.mu.Unlock()
}

// allow is nil if an error of a call is right for a communicator in a state.
func allow(err error, s state, wasAborted bool) error {
	over := func(of ...error) bool {
		for _, e := range of {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case s == alive:
		return err
	case s == closed && over(ringo.ErrClosed):
		return nil
	case (s == aborted || wasAborted) &&
		(err == nil && s == aborted || over(ringo.ErrAborted, ringo.ErrPeer, ringo.ErrLeft, ringo.ErrMismatch)):
		// ErrMismatch: a graph launched on the rank that aborted differs from the call of one that has not heard of it yet
		return nil
	}
	return fmt.Errorf("want the error of a communicator that is %s, got %v", [...]string{"alive", "aborted", "closed"}[s],
		err)
}
