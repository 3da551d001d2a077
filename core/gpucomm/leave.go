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
)

// neighbours are the ranks of one communicator that are in this process. When the last of
// them leaves, the memory of all of them is given back as soon as the ranks of other
// processes have left too: until then kernels of peers may use it.
type neighbours struct {
	open int // ranks that have not left
	left []leaver
}

// A leaver is a rank that has left. releaseHost gives back its host half.
type leaver struct {
	*Comm
	releaseHost func() error
}

// processes are the communicators of this process.
var processes struct {
	sync.Mutex
	of      map[string]*neighbours // communicators with open ranks here, by key
	leaving []<-chan struct{}      // each closed when a communicator has been given back
	entered chan struct{}          // closed when a rank opens a communicator; nil if nobody waits for that
}

// enter counts a rank among its neighbours.
func (g *Comm) enter() {
	processes.Lock()
	defer processes.Unlock()
	if processes.of == nil {
		processes.of = map[string]*neighbours{}
	}
	key := string(g.Group.Key())
	n := processes.of[key]
	if n == nil {
		n = &neighbours{}
		processes.of[key] = n
	}
	n.open++
	if processes.entered != nil {
		close(processes.entered)
		processes.entered = nil
	}
}

// Drain waits until what was queued has ended. The caller holds the Turn.
func (g *Comm) Drain() error {
	if g.closed {
		return nil
	}
	return g.finish()
}

// Finish waits until what was queued has ended, and lets nothing more begin: from now on
// operations in graphs end as soon as they are launched. Nobody watches the GPU after that.
func (g *Comm) Finish() error {
	g.closed = true
	err := g.finish()
	g.Verdict() // what was queued may have ended because a peer never came; then Life hears of it
	g.unwatch()
	err = errors.Join(err, g.engine.End(), g.finish()) // again: a graph may have been launched
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
	processes.Lock()
	key := string(g.Group.Key())
	n := processes.of[key]
	n.open--
	n.left = append(n.left, leaver{g, releaseHost})
	if n.open > 0 {
		processes.Unlock()
		return nil
	}
	delete(processes.of, key)
	done, apart := make(chan struct{}), make(chan struct{})
	processes.leaving = append(slices.DeleteFunc(processes.leaving, isClosed), done)
	waits, alone := slices.Clone(processes.leaving), len(processes.of) == 0 // cloned: others delete from leaving
	if alone && processes.entered == nil {
		processes.entered = make(chan struct{})
	}
	entered := processes.entered
	processes.Unlock()
	windows := hasWindows(n.left)
	var err error
	go func() {
		defer close(done)
		if err = disband(n.left, apart); err != nil {
			g.Log.Warn("not all is given back", "subsys", "GPU", "err", err)
		}
	}()
	g.Device.Later(func() { <-done })
	if windows {
		<-apart
	}
	if !alone {
		return nil
	}
	var enough <-chan time.Time
	if hasFailed(n.left) {
		enough = time.After(time.Second)
	}
	for _, done := range waits {
		select {
		case <-done:
		case <-entered:
			return nil
		case <-enough:
			return nil
		}
	}
	return err
}

func hasFailed(all []leaver) bool {
	return slices.ContainsFunc(all, func(l leaver) bool { return l.Life.Guard.Aborted() != nil })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func hasWindows(all []leaver) bool {
	return slices.ContainsFunc(all, func(l leaver) bool { return len(l.windows.open)+len(l.windows.retired) > 0 })
}

// farewellTime is how long ranks wait for those of other processes.
const farewellTime = 10 * time.Second

// disband gives back the memory of this process's ranks. First all ranks of all processes
// leave, since until then their kernels may use that memory. Open windows are closed next, and all
// ranks say so: then no rank has another's memory open, and the channel apart is closed. After a
// failure ranks do both at once, since what they have queued has ended.
func disband(all []leaver, apart chan<- struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	windows := hasWindows(all)
	var errs []error
	closeWindows := func() {
		for _, g := range all {
			errs = append(errs, g.closeWindows())
		}
	}
	var parted []error
	if hasFailed(all) {
		closeWindows()
		parted = partAll(ctx, all, bootstrap.Apart)
	} else if parted = partAll(ctx, all, bootstrap.Left); windows {
		closeWindows()
		partAll(ctx, all, bootstrap.Apart) // an error means that there is nobody to wait for
	}
	close(apart)
	for i, g := range all {
		if !errors.Is(parted[i], bootstrap.ErrExit) {
			// when a process ends, the driver frees what peers may still write to, once nobody has it open
			errs = append(errs, g.release(parted[i] == nil))
		}
		errs = append(errs, g.releaseHost())
	}
	return errors.Join(errs...)
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
			return errors.Join(g.copyStream.close(d), g.net.Close(parted))
		}))
	}
	if g.estate != nil { // the last, for it holds the context
		errs = append(errs, g.estate.leave())
	}
	return errors.Join(errs...)
}
