package ringotest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/trace/history"
)

// Run runs f on n ranks at once and returns when all have ended, with their communicator closed. It fails the test
// if a rank fails, if the ranks take too long (Timeout), or if they leave something behind (Leaks). If a rank did not
// come to its end, Run ends the test (t.FailNow).
//
// Cost: some ms for goroutines; 0.1 s more for emulated GPUs.
func Run(t testing.TB, n int, f func(c *ringo.Comm), opts ...Option) {
	t.Helper()
	o, err := optionsOf(t, opts)
	if err != nil {
		t.Fatalf("ringotest: %v", err)
	}
	if n < 1 {
		t.Fatalf("ringotest: %d ranks: want at least one", n)
	}
	if len(o.setups) == 1 {
		if !o.setups[0].here() {
			t.Skipf("ringotest: this system has no %s", o.setups[0])
		}
		newTrial(t, n, f, o, o.setups[0]).start()
		return
	}
	parent, ok := t.(interface {
		Run(string, func(*testing.T)) bool
	})
	if !ok {
		t.Fatalf("ringotest: %d ways need subtests: give Run a *testing.T, or one way", len(o.setups))
	}
	for _, w := range o.setups {
		if w.here() {
			parent.Run(string(w), func(t *testing.T) { newTrial(t, n, f, o, w).start() })
		}
	}
}

// A trial is one run of a function on all ranks, over one Setup.
type trial struct {
	options
	t     testing.TB
	setup Setup
	play  func(c *ringo.Comm)
	size  int

	ranks   []*Rank
	machine *gpu.Machine // of emulated GPUs, else nil

	meeting meeting // see Rank.Meet

	mu     sync.Mutex
	failed []int // ranks, in the order in which they have failed
}

func newTrial(t testing.TB, n int, f func(c *ringo.Comm), o options, w Setup) *trial {
	x := &trial{options: o, t: t, setup: w, play: f, size: n, meeting: meeting{away: n}}
	for r := range n {
		x.ranks = append(x.ranks, newRank(x, r))
	}
	return x
}

// start runs the trial, or the part of it that is this process's.
func (x *trial) start() {
	x.t.Helper()
	number := runsOf(x.t)
	switch s := seat(); {
	case s == nil && x.setup.apart():
		x.launch(number)
	case s == nil:
		x.run()
	case x.t.Name() == s.Test && number == s.Number:
		x.sit(s)
	}
}

// run runs a trial whose ranks are goroutines.
func (x *trial) run() {
	x.t.Helper()
	before := x.t.Failed()
	mark := newMark()
	defer mark.done()
	err := mark.within(x.open)
	if err != nil {
		x.t.Fatalf("ringotest: %d ranks over %s: %v", x.size, x.setup, err)
	}
	mark.within(func() error {
		for _, r := range x.ranks {
			go r.run()
		}
		return nil
	})
	ended := x.await()
	for _, r := range x.ranks { // not before: messages of a rank may still be on their way
		if r.wires != nil {
			r.wires.close()
		}
	}
	if x.machine != nil && ended {
		if err := x.machine.Close(); err != nil {
			x.t.Errorf("ringotest: emulated GPUs, seed %d: %v", x.seed, err)
		}
	}
	if early := x.summary(); early || !ended {
		x.t.FailNow()
	}
	if x.t.Skipped() {
		x.t.SkipNow()
	}
	if x.t.Failed() && !before && len(x.failed) == 0 { // it did not fail by way of a Rank
		x.t.Logf("ringotest: %d ranks over %s; %s", x.size, x.setup, x.again())
	}
	if x.leaks && !x.t.Failed() {
		for _, left := range mark.left() {
			x.t.Errorf("ringotest: left by %d ranks over %s: %s", x.size, x.setup, left)
		}
	}
}

// open makes the communicators.
func (x *trial) open() error {
	cfg := x.setup.config(x.cfg)
	cfg.Device, cfg.Devices, cfg.ID = nil, nil, nil
	if x.setup == GPU {
		var err error
		if x.machine, err = gpu.Open(gpu.Options{Emulate: x.size, Seed: x.seed}); err != nil {
			return err
		}
		for r := range x.size {
			d, err := x.machine.Device(r)
			if err != nil {
				return err
			}
			cfg.Devices = append(cfg.Devices, d)
		}
	}
	comms, err := x.comms(cfg)
	if err != nil {
		if x.machine != nil {
			err = errors.Join(err, x.machine.Close())
		}
		return err
	}
	for r, c := range comms {
		x.ranks[r].adopt(c)
	}
	return nil
}

// comms opens the communicators; with faults each rank opens its own, through its relays.
func (x *trial) comms(cfg ringo.Config) ([]*ringo.Comm, error) {
	if !x.faults {
		return ringo.OpenLocal(x.size, cfg)
	}
	id, err := cfg.NewID("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	comms, errs := make([]*ringo.Comm, x.size), make([]error, x.size)
	devices := cfg.Devices
	cfg.ID, cfg.Size, cfg.Devices = &id, x.size, nil
	var all sync.WaitGroup
	for i, r := range x.ranks {
		all.Go(func() {
			mine := cfg
			mine.Rank = i
			if devices != nil {
				mine.Device = devices[i]
			}
			if errs[i] = r.wire(&mine); errs[i] == nil {
				comms[i], errs[i] = ringo.Open(context.Background(), mine)
			}
		})
	}
	all.Wait()
	if err = errors.Join(errs...); err != nil {
		for i, c := range comms {
			if c != nil {
				c.Close()
			}
			if w := x.ranks[i].wires; w != nil {
				w.close()
			}
		}
		bootstrap.Stop(id)
	}
	return comms, err
}

// wire has a rank's sockets go through relays.
func (r *Rank) wire(cfg *ringo.Config) (err error) {
	if r.wires, err = newWires(r.rank); err == nil {
		cfg.Sockets = &r.wires.sockets
	}
	return err
}

// patience is how long aborted ranks may take to end.
var patience = 5 * time.Second

// await waits for all ranks, and reports whether all have ended.
func (x *trial) await() bool {
	x.t.Helper()
	late := time.NewTimer(x.timeout)
	defer late.Stop()
	if x.ended(late.C) {
		return true
	}
	behind := x.behind()
	all := map[int]whereabouts{}
	for i, r := range x.ranks {
		all[i] = r.whereabouts()
	}
	x.complain(behind, all)
	for _, r := range behind {
		go x.ranks[r].comm.Abort(x.tooLate(behind))
	}
	if x.ended(time.After(patience)) {
		return true
	}
	x.t.Errorf("ringotest: %s not ended %v after an Abort either: what is waited for above is not Ringo's; the "+
		"goroutines are left behind", have(x.behind()), patience)
	return false
}

// complain reports ranks that have not ended in time.
func (x *trial) complain(behind []int, all map[int]whereabouts) {
	x.t.Helper()
	x.t.Errorf("ringotest: %d ranks over %s, seed %d: after %v %s not ended (Timeout gives more time): %s",
		x.size, x.setup, x.seed, history.Spell(x.timeout), have(behind), explain(behind, all))
}

// tooLate is the error with which late ranks are aborted.
func (x *trial) tooLate(behind []int) error {
	return fmt.Errorf("ringotest: after %v %s not ended", history.Spell(x.timeout), have(behind))
}

// ended waits for all ranks until late.
func (x *trial) ended(late <-chan time.Time) bool {
	for _, r := range x.ranks {
		select {
		case <-r.ended:
		case <-late:
			return len(x.behind()) == 0
		}
	}
	return true
}

// behind are the ranks that have not ended.
func (x *trial) behind() (list []int) {
	for i, r := range x.ranks {
		select {
		case <-r.ended:
		default:
			list = append(list, i)
		}
	}
	return list
}

func have(ranks []int) string {
	if len(ranks) == 1 {
		return history.Ranks(ranks) + " has"
	}
	return history.Ranks(ranks) + " have"
}

// fail notes that a rank has failed.
func (x *trial) fail(rank int) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Contains(x.failed, rank) {
		x.failed = append(x.failed, rank)
	}
	return x.failed[0] == rank
}

// summary names the rank that failed first and the command that repeats it, and reports whether a rank has ended early.
func (x *trial) summary() (early bool) {
	x.t.Helper()
	x.mu.Lock()
	failed := x.failed
	x.mu.Unlock()
	if len(failed) == 0 {
		return false
	}
	for _, r := range x.ranks {
		early = early || isClosed(r.ended) && r.early // for a rank that is a process, ended is never closed here
	}
	then := ""
	if len(failed) > 1 {
		then = fmt.Sprintf(", then %s, maybe for it", history.Ranks(slices.Sorted(slices.Values(failed[1:]))))
	}
	x.t.Errorf("ringotest: rank %d of %d over %s failed first%s; look at it first; %s",
		failed[0], x.size, x.setup, then, x.again())
	return early
}

// again is how to repeat the run.
func (x *trial) again() string {
	return fmt.Sprintf("repeat with: %s=%d go test -run '%s'", seedVariable, x.seed, pattern(x.t.Name()))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
