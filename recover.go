package ringo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
)

// Shrink makes a communicator of the ranks that are left after a failure, in their order; see
// docs/recovery.md. Each of them calls it, also one that has failed itself and goes on. It waits for all
// that have not died or closed the communicator, and that were not found silent (Error.Culprits), and
// 2 s, in which its process runs, for one that has called Abort; after half of Config.JoinTimeout it goes
// on without those that have not come, which get ErrExcluded later. So do at once the ranks at one end of
// a path over which nothing moves, or that has failed before.
// A communicator that is well is aborted first.
//
// The new communicator has the Config of the old one, which is still to be closed, and a life
// of its own. What operations had done when they failed differs from rank to rank: the ranks have
// to agree on where to go on. Where the process that serves the meeting point has died, the lowest ranks
// do in its place, if its host lives to say so and more than half of the others come. Cost: a few ms on one host.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	if err := c.absent("Shrink"); err != nil {
		return nil, err
	}
	if err := c.life.Turn.Inside(); err != nil {
		return nil, c.life.ErrorIn("Shrink", err)
	}
	if c.life.Failure() == nil {
		c.life.FailIn("Shrink", fmt.Errorf("%w: Shrink was called", ErrAborted)) // no Abort, whose rank may not come
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.JoinTimeout)
	defer cancel()
	for {
		next, err := regroup(ctx, c)
		if err == nil {
			return next.madeOf(c, "Shrink"), nil
		}
		if ctx.Err() != nil || !lostOne(err) {
			return nil, c.life.ErrorOf("Shrink", err)
		}
	}
}

// lostOne reports whether a new group could not meet because one more rank has died, or has stopped, on the way.
func lostOne(err error) bool {
	if f, ok := errors.AsType[*bootstrap.Failure](err); ok {
		return f.Died
	}
	if w, ok := errors.AsType[*bootstrap.WithdrawnError](err); ok {
		return len(w.Missing) > 0
	}
	j, ok := errors.AsType[*bootstrap.JoinError](err)
	return ok && len(j.Missing) > 0
}

// regroup opens a communicator with the ranks that come.
func regroup(ctx context.Context, c *Comm) (*Comm, error) {
	wait := c.cfg.JoinTimeout / 2
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/2)
	}
	left, err := c.group.Regroup(ctx, max(wait, 0))
	if err != nil {
		return nil, err
	}
	cfg := c.cfg
	cfg.made = c.line()
	cfg.made.after = c.life.ID()
	for i, r := range left.Members {
		if r == c.Rank() {
			cfg.Rank, cfg.Size, cfg.ID = i, len(left.Members), nil
		}
	}
	meets, cancel := halfOf(ctx) // a rank that stops now must not take the time of those that meet again without it
	defer cancel()
	group := left.Group
	if group == nil {
		cfg.ID = &left.ID
		group, err = bootstrap.Join(meets, left.ID, cfg.Rank, cfg.Size, cfg.join())
		if err != nil {
			return nil, err
		}
	}
	return open(meets, cfg, group)
}

// halfOf is a context with half of the time that ctx has.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/2)
	}
	return context.WithCancel(ctx)
}

// Grow makes a communicator of size ranks of this smaller one, whose ranks keep their numbers. All of them call it
// together, one with an ID of NewID and the others with nil or the same. Each new rank, from c.Size() to size-1, has
// the ID from the program and calls Open with it. It waits for all, at most Config.JoinTimeout. The new communicator
// has the Config of this one, which stays usable. If Grow fails, new ranks that wait at the ID hear at once who is to
// blame.
func (c *Comm) Grow(ctx context.Context, id *bootstrap.ID, size int) (*Comm, error) {
	if err := c.absent("Grow"); err != nil {
		return nil, err
	}
	var meet bootstrap.ID
	err := c.agree(ctx, func(ctx context.Context) (err error) {
		meet, err = growAt(ctx, c, id, size)
		return err
	})
	if err != nil {
		e := c.life.ErrorOf("Grow", err)
		if id != nil { // the new ranks wait there
			cfg := c.cfg
			cfg.ID, cfg.Size = id, size
			stayAway(cfg, slices.Concat(e.Culprits, []int{c.Rank()})[0], err)
		}
		return nil, e
	}
	cfg := c.cfg
	cfg.ID, cfg.Size = &meet, size
	members := make([]int, size) // keep their numbers
	for r := range members {
		members[r] = r
	}
	return c.openChild(ctx, "Grow", cfg, members)
}

// growAt agrees with all ranks on where the larger communicator meets. The turn is held.
func growAt(ctx context.Context, c *Comm, id *bootstrap.ID, size int) (meet bootstrap.ID, err error) {
	if err := c.life.Refuse(); err != nil {
		return meet, err
	}
	mine := splitNote{Key: size, Rank: c.Rank(), ID: id}
	if size <= c.Size() {
		mine.Bad = fmt.Sprintf("%d ranks cannot become %d", c.Size(), size)
	}
	notes, err := meetSplit(ctx, c, call.Grow, mine)
	if err != nil {
		return meet, err
	}
	for _, n := range notes {
		switch {
		case n.Bad != "":
			return meet, fmt.Errorf("%w: rank %d: %s", ErrInvalid, n.Rank, n.Bad)
		case n.Key != notes[0].Key:
			return meet, fmt.Errorf("%w: rank 0 wants %d ranks, rank %d %d", ErrInvalid, notes[0].Key, n.Rank, n.Key)
		case n.ID != nil && meet != (bootstrap.ID{}) && *n.ID != meet:
			return meet, fmt.Errorf("%w: rank %d gives another ID than a rank before it", ErrInvalid, n.Rank)
		case n.ID != nil:
			meet = *n.ID
		}
	}
	if meet == (bootstrap.ID{}) {
		err = fmt.Errorf("%w: no rank gives an ID: one has to, of NewID", ErrInvalid)
	}
	return meet, err
}
