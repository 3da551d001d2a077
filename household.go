package ringo

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A household is the ranks of one communicator in this process that share GPU
// memory. A rank's memory may be in use by its peers' kernels after the rank
// has left, so it is given back when the last of the household leaves and all
// other households have left too.
type household struct {
	open int
	left []*Comm
}

var households struct {
	sync.Mutex
	of map[string]*household // by the communicator's key
}

// enter counts a rank in.
func (c *Comm) enter() {
	households.Lock()
	defer households.Unlock()
	if households.of == nil {
		households.of = map[string]*household{}
	}
	key := string(c.group.Key())
	h := households.of[key]
	if h == nil {
		h = &household{}
		households.of[key] = h
	}
	h.open++
}

// leave counts a rank out and returns those whose memory is to be given back
// now, which is all of the household or nobody.
func (c *Comm) leave() []*Comm {
	households.Lock()
	defer households.Unlock()
	key := string(c.group.Key())
	h := households.of[key]
	h.open--
	h.left = append(h.left, c)
	if h.open > 0 {
		return nil
	}
	delete(households.of, key)
	return h.left
}

// goodbye is how long the last of a household waits for other processes.
const goodbye = 10 * time.Second

// disband gives back what a household has, once no other process uses it.
func disband(members []*Comm) error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	farewell := func(c *Comm) error {
		if c.guard.Aborted() == nil {
			c.group.AllGather(ctx, nil) // an error means that there is nobody to wait for
		}
		return nil
	}
	var g errgroup.Group
	for _, c := range members {
		g.Go(func() error { return farewell(c) })
	}
	g.Wait()
	var errs []error
	for _, c := range members {
		if len(c.dev.windows) == 0 {
			continue
		}
		errs = append(errs, c.dev.closeWindows())
		g.Go(func() error { return farewell(c) }) // then the memory is the user's again
	}
	g.Wait()
	for _, c := range members {
		errs = append(errs, c.dev.release(), c.releaseHost())
	}
	return errors.Join(errs...)
}
