package capi

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// GrowID makes an ID for Grow. One rank of the communicator calls it and gives the ID to the new
// ranks.
func (l *Library) GrowID(handle uintptr) (bootstrap.ID, error) {
	if _, _, err := l.source(handle); err != nil {
		return bootstrap.ID{}, err
	}
	return l.freshID()
}

// Grow makes a communicator of size ranks from a smaller one. The smaller one's ranks keep their
// numbers and give its handle; one of them also gives the ID of GrowID. A new rank gives the
// handle 0, the ID, and its rank.
func (l *Library) Grow(group, handle uintptr, size int, id *bootstrap.ID, rank int, given *Config) (_ uintptr,
	err error) {
	defer func() { l.Fail(group, err) }()
	if handle == 0 {
		if id == nil {
			return 0, fmt.Errorf("%w: a new rank needs the unique ID of ncclCommGetUniqueId", ringo.ErrInvalid)
		}
		return l.InitRank(group, size, rank, []bootstrap.ID{*id}, given)
	}
	parent, ring, err := l.source(handle)
	if err != nil {
		return 0, err
	}
	if rank != -1 {
		return 0, fmt.Errorf("%w: rank %d of a communicator that grows keeps its number: give -1, not %d", ringo.ErrInvalid,
			ring.Rank(), rank)
	}
	if size <= ring.Size() {
		return 0, fmt.Errorf("%w: %d ranks cannot become %d", ringo.ErrInvalid, ring.Size(), size)
	}
	return l.derive(group, parent, given, false,
		func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
			var mine bootstrap.ID
			if id != nil {
				mine = *id
			}
			all := make([]byte, len(mine)*ring.Size())
			_, err := l.over(ctx, parent, ring, func(r *ringo.Comm) (*ringo.Comm, error) {
				return nil, ringo.AllGather(r, all, mine[:])
			})
			if err != nil {
				return nil, err
			}
			var meet bootstrap.ID
			for r := range ring.Size() {
				if theirs := bootstrap.ID(all[r*len(meet):]); theirs != (bootstrap.ID{}) {
					meet = theirs
				}
			}
			if meet == (bootstrap.ID{}) {
				return nil, fmt.Errorf("%w: no rank gave the unique ID of ncclCommGetUniqueId", ringo.ErrInvalid)
			}
			c.meetAgain(at(meet))
			cfg.ID, cfg.Rank, cfg.Size = &meet, ring.Rank(), size
			return l.join(ctx, cfg)
		})
}
