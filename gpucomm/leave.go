package gpucomm

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// neighbours are the ranks of one communicator that are in this process. When the last of
// them leaves, it waits for the ranks of other processes and then gives back the memory of
// all neighbours: until then kernels of peers may use it.
type neighbours struct {
	open int // ranks that have not left
	left []leaver
}

// A leaver is a rank that has left. releaseHost gives back its host half.
type leaver struct {
	*Comm
	releaseHost func() error
}

var processes struct {
	sync.Mutex
	of map[string]*neighbours // by the communicator's key
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
}

// Finish waits until what was queued has ended, and lets nothing more begin: what graphs hold
// ends at once from now on, if they are launched. Nobody looks at the GPU then.
func (g *Comm) Finish() error {
	g.closed = true
	err := g.finish()
	g.Verdict() // what was queued may have ended because a peer never came; then Life hears of it
	g.unwatch()
	err = errors.Join(err, g.engine.End(), g.finish()) // of a graph that was launched meanwhile
	g.estate.seal(g.engine.Control())
	return err
}

// Leave gives everything back, and calls releaseHost for the host half. If other ranks of
// this process have not left, that happens when the last of them leaves. The last one waits
// for the other processes, at most 10 s. The caller need not hold the Turn.
func (g *Comm) Leave(releaseHost func() error) error {
	processes.Lock()
	key := string(g.Group.Key())
	n := processes.of[key]
	n.open--
	n.left = append(n.left, leaver{g, releaseHost})
	last := n.open == 0
	if last {
		delete(processes.of, key)
	}
	processes.Unlock()
	if !last {
		return nil
	}
	return disband(n.left)
}

// farewellTime is how long the last rank of a process waits for other processes.
const farewellTime = 10 * time.Second

// disband gives back what the ranks of this process have. First all ranks of all processes
// say farewell, for until then kernels may use it. Where windows are open they are closed,
// and the ranks say farewell once more: then no rank has another's memory open.
func disband(all []leaver) error {
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	farewell := func(g leaver) error {
		if g.Life.Guard.Aborted() == nil {
			g.Group.AllGather(ctx, nil) // an error means that there is nobody to wait for
		}
		return nil
	}
	var group errgroup.Group
	for _, g := range all {
		group.Go(func() error { return farewell(g) })
	}
	group.Wait()
	var errs []error
	for _, g := range all {
		if len(g.windows) == 0 {
			continue
		}
		errs = append(errs, g.closeWindows())
		group.Go(func() error { return farewell(g) }) // after it the windows' memory is the user's again
	}
	group.Wait()
	for _, g := range all {
		errs = append(errs, g.release(), g.releaseHost())
	}
	return errors.Join(errs...)
}

// release gives everything back, except for what graphs hold. What was queued has ended.
func (g *Comm) release() error {
	errs := []error{g.copyStream.close(g.Device)}
	if g.estate != nil {
		errs = append(errs, g.estate.leave())
	}
	if g.net != nil {
		errs = append(errs, g.net.Close())
	}
	return errors.Join(errs...)
}
