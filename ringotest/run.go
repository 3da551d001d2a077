package ringotest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
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

	mu      sync.Mutex
	failed  []int          // ranks, in the order in which they have failed
	blames  map[int][]int  // who made a rank fail, by the error of its communicator; ranks that have failed
	verdict []int          // who held up the others, if the time ran out
	at      map[int]string // where ranks were when they were blamed
}

func newTrial(t testing.TB, n int, f func(c *ringo.Comm), o options, w Setup) *trial {
	x := &trial{options: o, t: t, setup: w, play: f, size: n, meeting: meeting{away: n},
		blames: map[int][]int{}, at: map[int]string{}}
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
	defer x.unclosed()
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
	for _, left := range x.leftovers(mark) {
		x.t.Errorf("ringotest: left by %d ranks over %s: %s", x.size, x.setup, left)
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
	text, culprits := explain(behind, all)
	x.mu.Lock()
	x.verdict = culprits
	x.mu.Unlock()
	for r, at := range all {
		x.saw(r, at.Stack)
	}
	x.t.Errorf("ringotest: %d ranks over %s, seed %d: after %v %s not ended (Timeout gives more time): %s",
		x.size, x.setup, x.seed, history.Spell(x.timeout), have(behind), text)
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

// fail notes that a rank has failed and who made it, which it returns if that is new.
func (x *trial) fail(rank int, culprits []int) []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Contains(x.failed, rank) {
		return nil
	}
	if x.verdict != nil {
		culprits = x.verdict
	}
	x.failed = append(x.failed, rank)
	x.blames[rank] = culprits
	return culprits
}

// saw notes where a rank was when it was first asked, by its stack. One without frames has left its function.
func (x *trial) saw(rank int, stack string) {
	lines, at := strings.Split(stack, "\n"), ""
	if len(lines) > 1 {
		at = position(lines[len(lines)-1])
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at[rank] == "" {
		x.at[rank] = at
	}
}

// returned says that a rank's function has returned, and which function that is.
func (x *trial) returned() string {
	f := runtime.FuncForPC(reflect.ValueOf(x.play).Pointer())
	file, line := f.FileLine(f.Entry())
	return fmt.Sprintf("its function of %s:%d has returned", filepath.Base(file), line)
}

// summary names the rank at which to begin and the command that repeats it, and reports whether a rank has ended early.
func (x *trial) summary() (early bool) {
	x.t.Helper()
	x.mu.Lock()
	failed := x.failed
	why := x.why()
	x.mu.Unlock()
	if len(failed) == 0 {
		return false
	}
	for _, r := range x.ranks {
		early = early || isClosed(r.ended) && r.early // for a rank that is a process, ended is never closed here
	}
	x.t.Errorf("ringotest: %d ranks over %s: %s; %s", x.size, x.setup, why, x.again())
	return early
}

// why says which rank failed first by itself, and which ranks failed because of others. The caller holds mu.
func (x *trial) why() string {
	var own []int
	var texts []string
	because := map[string][]int{}
	for _, r := range x.failed {
		by := x.blames[r]
		if len(by) == 0 || slices.Contains(by, r) {
			own = append(own, r)
			continue
		}
		text := x.named(by)
		if because[text] == nil {
			texts = append(texts, text)
		}
		because[text] = append(because[text], r)
	}
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%s failed because of %s", history.Ranks(slices.Sorted(slices.Values(because[text]))), text)
	}
	if len(own) > 0 {
		first := fmt.Sprintf("rank %d failed first", own[0])
		if len(own) > 1 {
			first += fmt.Sprintf(", then %s, maybe because of it", history.Ranks(slices.Sorted(slices.Values(own[1:]))))
		}
		texts = slices.Insert(texts, 0, first)
	}
	return strings.Join(texts, "; ")
}

// named is culprits, and where they were.
func (x *trial) named(culprits []int) string {
	text := history.Ranks(culprits)
	var at []string
	for _, r := range culprits {
		if line, known := x.at[r]; line != "" {
			at = append(at, line)
		} else if known && !slices.Contains(x.failed, r) {
			at = append(at, x.returned())
		}
	}
	if len(at) > 0 {
		text += " (" + strings.Join(at, ", ") + ")"
	}
	return text
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
