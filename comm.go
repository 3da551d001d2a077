package ringo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

// A Comm is one rank's membership in a communicator. Its operations happen in
// the order in which they are called; from several goroutines that order is
// theirs to arrange, for it must be the same on all ranks. Abort and the
// methods that only ask may be called at any time.
type Comm struct {
	cfg   Config
	rank  int
	size  int
	group bootstrap.Group
	guard fifo.Guard
	log   *slog.Logger

	profiles   []profile
	transports []transport.Transport
	links      *links
	topo       topology
	notes      []string // the choice of paths, in words

	run      sync.Mutex // held while an operation is carried out; guards the fields below
	seq      uint32
	engine   *engine.Engine
	job      engine.Job
	key      programKey // of the program used last
	program  *engine.Program
	programs map[programKey]*engine.Program
	spare    []byte  // copy of In for an all-to-all in place
	order    []*Call // of a group
	fold     *fold   // for reductions in order of rank, made for the first

	dev      *device // nil if the rank has no GPU
	noDevice string  // why GPU memory cannot be used
	given    *Plan   // rank 0's, that Config.Plan names

	queue  queue
	failed atomic.Pointer[Error] // why the communicator is of no more use
	closed atomic.Bool
	gone   chan struct{} // closed by Close
	watch  sync.WaitGroup
}

// Open makes this rank a member of the communicator that cfg names, together
// with all others: it returns when all have come, or with an error that says
// who is missing when JoinTimeout has passed or ctx has ended.
func Open(ctx context.Context, cfg Config) (*Comm, error) {
	cfg, err := cfg.fill(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if cfg.ID == nil {
		return nil, openError(cfg, fmt.Errorf("%w: no ID; make one with NewID and give it to all ranks, or use OpenEnv", ErrInvalid))
	}
	if cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size {
		return nil, openError(cfg, fmt.Errorf("%w: rank %d of %d", ErrInvalid, cfg.Rank, cfg.Size))
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	group, err := bootstrap.Join(ctx, *cfg.ID, cfg.Rank, cfg.Size, bootstrap.JoinOptions{Log: cfg.Log.With("subsys", "BOOTSTRAP")})
	if err != nil {
		return nil, openError(cfg, err)
	}
	return open(ctx, cfg, group)
}

// OpenLocal makes a communicator of n ranks in this process, for goroutines: the
// i-th Comm is rank i's.
func OpenLocal(n int, cfg Config) ([]*Comm, error) {
	cfg, err := cfg.fill(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if n < 1 {
		return nil, openError(cfg, fmt.Errorf("%w: %d ranks", ErrInvalid, n))
	}
	if len(cfg.Devices) > 0 && len(cfg.Devices) != n {
		return nil, openError(cfg, fmt.Errorf("%w: %d Devices for %d ranks", ErrInvalid, len(cfg.Devices), n))
	}
	ctx, cancel := context.WithTimeout(context.Background(), cfg.JoinTimeout)
	defer cancel()
	comms := make([]*Comm, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range bootstrap.Local(n) {
		wg.Go(func() {
			c := cfg
			c.Rank, c.Size = i, n
			if i < len(cfg.Devices) {
				c.Device = cfg.Devices[i]
			}
			comms[i], errs[i] = open(ctx, c, g)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range comms {
			if c != nil {
				c.Close()
			}
		}
		return nil, err
	}
	return comms, nil
}

// open builds a communicator on a group whose ranks have met.
func open(ctx context.Context, cfg Config, group bootstrap.Group) (*Comm, error) {
	c := &Comm{
		cfg: cfg, rank: group.Rank(), size: group.Size(), group: group,
		log:      cfg.Log.With("rank", group.Rank()),
		programs: map[programKey]*engine.Program{},
		gone:     make(chan struct{}),
	}
	if err := c.connect(ctx); err != nil {
		group.Fail(err.Error())
		c.release()
		return nil, openError(cfg, err)
	}
	c.watch.Go(c.watchGroup)
	if c.dev != nil && c.dev.engine != nil {
		c.watch.Go(c.watchDevice)
	}
	return c, nil
}

// Rank is this rank's number.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Close leaves the communicator. It waits for operations that were started and
// gives everything back. Other ranks may still receive what this one has sent.
// Calls after Close return ErrClosed. With a GPU, the last Close of a process
// waits for those of other processes, at most 10 s; what is captured in graphs
// must not be launched any more.
func (c *Comm) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.queue.close()
	c.run.Lock()
	defer c.run.Unlock()
	var err error
	if c.dev != nil {
		err = c.dev.finish(&c.guard)
		c.verdict() // it may fail even now: a peer may never come
	}
	c.failed.CompareAndSwap(nil, &Error{Op: "Close", Rank: c.rank, Host: c.cfg.hostname(), Peer: -1, Err: ErrClosed})
	close(c.gone)
	c.watch.Wait()
	return errors.Join(err, c.release())
}

func (c *Comm) release() error {
	if c.dev == nil {
		return c.releaseHost()
	}
	return disband(c.leave())
}

func (c *Comm) releaseHost() error {
	var errs []error
	for _, t := range c.transports {
		errs = append(errs, t.Close())
	}
	errs = append(errs, c.group.Close())
	return errors.Join(errs...)
}
