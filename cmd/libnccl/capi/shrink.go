package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// shrinkAbort is NCCL_SHRINK_ABORT.
const shrinkAbort = 1

// Shrink makes a communicator of the ranks that are not in exclude, in their order. These ranks call
// it, and the excluded ranks do not. The flag shrinkAbort ends operations under way first.
//
// If the communicator is well, the ranks agree over it where to meet. After a failure they meet at the
// address where they first met, which the first rank that stays must serve: it has to run on the host
// that made the unique ID. Ranks of InitAll meet in their process. Ranks that died or left must be in exclude.
func (l *Library) Shrink(group, handle uintptr, exclude []int, given *Config, flags int) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	parent, ring, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	stay, rank, err := staying(ring, exclude)
	if err != nil {
		return 0, err
	}
	if len(stay) == ring.Size() {
		return 0, fmt.Errorf("%w: ncclCommShrink that excludes nobody", ringo.ErrInvalid)
	}
	if flags&shrinkAbort != 0 { // NCCL ignores other bits
		parent.abort(ring, errShrink)
	}
	meet, join := meeting(func() (bootstrap.ID, error) { return l.tell(ring, stay, rank) }), l.join
	if why := ring.Failure(); why != nil {
		for _, r := range gone(why) {
			if slices.Contains(stay, r) { // all would wait for this rank
				return 0, fmt.Errorf("ncclCommShrink: rank %d is to stay, and will not come: exclude it: %w", r, why)
			}
		}
		meet = parent.afterFailure(exclude)
		join = func(ctx context.Context, cfg ringo.Config) (*ringo.Comm, error) {
			return l.joinAgain(ctx, cfg, stay[0])
		}
	} else if parent.usable.Load() == nil {
		return 0, parent.whyUnusable()
	}
	return l.derive(group, parent, given, false,
		func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
			id, err := meet()
			if err != nil {
				return nil, err
			}
			c.meetAgain(at(id))
			cfg.ID, cfg.Rank, cfg.Size = &id, rank, len(stay)
			return join(ctx, cfg)
		})
}

// joinAgain is join after a failure; the first rank serves, which is rank first of the communicator that failed.
func (l *Library) joinAgain(ctx context.Context, cfg ringo.Config, first int) (r *ringo.Comm, err error) {
	addr := cfg.ID.Addr()
	if cfg.Rank == 0 && cfg.Size > 1 {
		err = l.serve(cfg)
	}
	if err == nil {
		r, err = l.join(ctx, cfg)
	}
	if err != nil {
		err = fmt.Errorf("after a failure: %w; the ranks that stay meet at %s, where all met first, and rank %d has to "+
			"serve there: where it is not on the host that made the unique ID, make a communicator with a new "+
			"ncclGetUniqueId", err, addr, first)
	}
	return r, err
}

// staying are the ranks that are not excluded, and this rank's index among them.
func staying(ring *ringo.Comm, exclude []int) (stay []int, rank int, err error) {
	out := make([]bool, ring.Size())
	for _, r := range exclude {
		if r < 0 || r >= len(out) {
			return nil, 0, fmt.Errorf("%w: rank %d is to be excluded from %d", ringo.ErrInvalid, r, len(out))
		}
		out[r] = true
	}
	if out[ring.Rank()] {
		return nil, 0, fmt.Errorf("%w: rank %d is excluded: only ranks that stay call ncclCommShrink", ringo.ErrInvalid,
			ring.Rank())
	}
	for r := range out {
		if out[r] {
			continue
		}
		if r == ring.Rank() {
			rank = len(stay)
		}
		stay = append(stay, r)
	}
	return stay, rank, nil
}

// gone are the ranks that, according to a failure, have died or left. Ranks that have aborted may join again.
func gone(failure error) []int {
	e, ok := errors.AsType[*ringo.Error](failure)
	died, failed := errors.AsType[*bootstrap.Failure](failure)
	if !ok || !errors.Is(failure, ringo.ErrLeft) && !(failed && died.Died) {
		return nil
	}
	return e.Culprits
}

// tell has the first of the ranks that stay make an ID and send it to the others, after each has answered: so a rank
// that ends before fails the exchange over the parent, and the others do not wait for that rank to join.
func (l *Library) tell(ring *ringo.Comm, stay []int, rank int) (id bootstrap.ID, err error) {
	if len(stay) == 1 {
		return l.freshID()
	}
	g, comes := ringo.NewGroup(), make([]byte, len(stay))
	if rank > 0 {
		g.Add(ring, ringo.SendOf(comes[:1], stay[0]))
		g.Add(ring, ringo.RecvOf(id[:], stay[0]))
		return id, g.Run()
	}
	for i, r := range stay[1:] {
		g.Add(ring, ringo.RecvOf(comes[i:i+1], r))
	}
	if err = g.Run(); err != nil {
		return id, err
	}
	if id, err = l.freshID(); err != nil {
		return id, err
	}
	g = ringo.NewGroup()
	for _, r := range stay[1:] {
		g.Add(ring, ringo.SendOf(id[:], r))
	}
	return id, g.Run()
}
