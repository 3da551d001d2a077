package gpucomm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/process"
)

// communicators are those of a process.
type communicators struct {
	sync.Mutex
	of      map[string]*parting // communicators with open ranks here, by key
	leaving []*parting          // that have begun to give back
	entered chan struct{}       // closed when a rank opens a communicator; nil if nobody waits for that
}

var ofProcess = process.Registry[communicators]{
	Fresh: func() *communicators { return &communicators{of: map[string]*parting{}} },
}

// A parting is the end of the ranks of one communicator that are in this process. When the last of them leaves, the
// memory of all of them is given back as soon as the ranks of other processes have left too: until then kernels of
// peers may use it.
type parting struct {
	open  int // ranks that have not left
	left  []leaver
	apart chan struct{} // closed when nobody has windows open
	done  chan struct{} // closed when everything is given back
	err   error         // valid then
}

// A leaver is a rank that has left. releaseHost gives back its host half.
type leaver struct {
	*Comm
	releaseHost func() error
}

// enter counts a rank among those of its communicator.
func (g *Comm) enter() {
	all := ofProcess.In(g.Process)
	all.Lock()
	defer all.Unlock()
	key := string(g.Group.Key())
	p := all.of[key]
	if p == nil {
		p = &parting{apart: make(chan struct{}), done: make(chan struct{})}
		all.of[key] = p
	}
	p.open++
	if all.entered != nil {
		close(all.entered)
		all.entered = nil
	}
}

// last counts a rank out, and returns the parting if no other rank is in. If no other communicator is open either, it
// returns the partings under way, and what is closed when one is opened.
func (l leaver) last() (p *parting, under []*parting, entered <-chan struct{}) {
	all := ofProcess.In(l.Process)
	all.Lock()
	defer all.Unlock()
	key := string(l.Group.Key())
	p = all.of[key]
	p.open--
	p.left = append(p.left, l)
	if p.open > 0 {
		return nil, nil, nil
	}
	delete(all.of, key)
	all.leaving = append(all.leaving, p)
	if len(all.of) > 0 {
		return p, nil, nil
	}
	if all.entered == nil {
		all.entered = make(chan struct{})
	}
	return p, slices.Clone(all.leaving), all.entered
}

// Drain waits until what was queued has ended. The caller holds the Turn.
func (g *Comm) Drain() error {
	if g.admission.closed {
		return nil
	}
	return g.order.finish()
}

// Finish waits until what was queued has ended, and lets nothing more begin: from now on
// operations in graphs end as soon as they are launched. Nobody watches the GPU after that.
func (g *Comm) Finish() error {
	g.admission.closed = true
	err := g.order.finish()
	g.watch.verdict() // what was queued may have ended because a peer never came; then Life hears of it
	g.watch.stop()
	err = errors.Join(err, g.engine.End(), g.order.finish()) // again: a graph may have been launched
	g.observed.lookFor(call.ErrClosed)
	g.estate.seal(g.engine.Control())
	return err
}

// Leave gives everything back, and calls releaseHost for the host half. If other ranks of this process have not left,
// Leave returns, and the last of them gives back for all, when the ranks of other processes have left too, or after
// farewellTime. The last one waits for that unless another communicator is open in this process: processes may close
// these in different orders, kernels of the other one may wait for this rank, and the driver frees no memory while they
// run. After a failure it waits for a second: others may go on in another group before they close this one. In any case
// it waits until nobody has windows open, whose memory is the user's then. The caller need not hold the Turn.
func (g *Comm) Leave(releaseHost func() error) error {
	p, under, entered := leaver{g, releaseHost}.last()
	if p == nil {
		return nil
	}
	windows := p.hasWindows()
	go p.giveBack(windows)
	g.Device.Later(func() { <-p.done })
	if windows {
		<-p.apart
	}
	var enough <-chan time.Time
	if p.hasFailed() {
		enough = time.After(time.Second)
	}
	for _, other := range under {
		select {
		case <-other.done:
		case <-entered:
			return nil
		case <-enough:
			return nil
		}
	}
	if len(under) == 0 {
		return nil
	}
	return p.err
}

func (p *parting) hasFailed() bool {
	return slices.ContainsFunc(p.left, func(l leaver) bool { return l.Life.Guard.Aborted() != nil })
}

func (p *parting) hasWindows() bool {
	return slices.ContainsFunc(p.left, func(l leaver) bool {
		return l.windows != nil && len(l.windows.open)+len(l.windows.retired) > 0
	})
}

// farewellTime is how long ranks wait for those of other all.
const farewellTime = 10 * time.Second

// giveBack gives back the memory of this process's ranks. First all ranks of all processes
// leave, since until then their kernels may use that memory. Open windows are closed next, and all
// ranks say so: then no rank has another's memory open, and apart is closed. After a
// failure ranks do both at once, since what they have queued has ended.
func (p *parting) giveBack(windows bool) {
	all := p.left
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	var errs []error
	closeWindows := func() {
		for _, g := range all {
			if g.windows != nil {
				errs = append(errs, g.windows.close())
			}
		}
	}
	var parted []error
	if p.hasFailed() {
		closeWindows()
		parted = partAll(ctx, all, bootstrap.Apart)
	} else if parted = partAll(ctx, all, bootstrap.Left); windows {
		closeWindows()
		partAll(ctx, all, bootstrap.Apart) // an error means that there is nobody to wait for
	}
	close(p.apart)
	for i, g := range all {
		if !errors.Is(parted[i], bootstrap.ErrExit) {
			// when a process ends, the driver frees what peers may still write to, once nobody has it open
			errs = append(errs, g.release(parted[i] == nil))
		}
		errs = append(errs, g.releaseHost())
	}
	if p.err = errors.Join(errs...); p.err != nil {
		all[0].Log.Warn("not all is given back", "subsys", "GPU", "err", p.err)
	}
	here := ofProcess.In(all[0].Process)
	here.Lock()
	defer here.Unlock()
	here.leaving = slices.DeleteFunc(here.leaving, func(o *parting) bool { return o == p })
	close(p.done)
}

// partAll brings the ranks of this process to a stage. Those without an error know that no kernel of another rank
// uses their memory any more.
func partAll(ctx context.Context, all []leaver, stage int) []error {
	here := len(all) == all[0].Life.Size // then all have ended what was queued, and there is nobody to wait for
	if here {
		now, end := context.WithCancel(ctx)
		end()
		ctx = now
	}
	parted := make([]error, len(all))
	var group sync.WaitGroup
	for i, g := range all {
		group.Go(func() {
			if err := g.Group.Part(ctx, stage); !here {
				parted[i] = err
			}
		})
	}
	group.Wait()
	return parted
}

// release gives everything back, except for what graphs hold. What was queued has ended.
func (g *Comm) release(parted bool) error {
	var errs []error
	if !parted {
		g.Log.Warn("peers may still write to this rank's queues: their memory is kept until the process ends",
			"subsys", "GPU")
	}
	if g.net != nil { // quietly, for another thread may capture a stream meanwhile
		d := g.Device.Driver()
		errs = append(errs, cuda.Quietly(d, g.net.Context(), func() error {
			var err error
			if g.windows != nil {
				err = g.windows.copies.close(d)
			}
			return errors.Join(err, g.net.Close(parted))
		}))
	}
	if g.estate != nil { // the last, for it holds the context
		errs = append(errs, g.estate.leave())
	}
	return errors.Join(errs...)
}
