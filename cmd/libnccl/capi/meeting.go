package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// meets is the ID under which the ranks of a new communicator meet. The ID of NCCL_COMM_ID is the same for all
// communicators, so each communicator gets one derived from it, by a count: each process counts its communicators of
// the same size and rank. The counts agree since all ranks make communicators in the same order.
func (l *Library) meets(id bootstrap.ID, size, rank int) bootstrap.ID {
	addr, secret := l.env.meeting()
	if addr == "" {
		return id
	}
	if fixed, err := bootstrap.IDFor(addr, secret); err != nil || id != fixed {
		return id
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met[[2]int{size, rank}]++
	return id.Derive(fmt.Sprintf("%d ranks, time %d", size, l.met[[2]int{size, rank}]))
}

// A meeting finds the ID from which those are derived under which a communicator's ranks meet again.
type meeting func() (bootstrap.ID, error)

// at is a meeting whose ID is known.
func at(id bootstrap.ID) meeting { return func() (bootstrap.ID, error) { return id, nil } }

// inside is a meeting of ranks that are all in this process. The ID is made when it is first needed.
func (l *Library) inside() meeting {
	return sync.OnceValues(func() (id bootstrap.ID, err error) {
		cfg, err := l.config()
		if err != nil {
			return id, err
		}
		if id, err = cfg.NewID(""); err == nil {
			bootstrap.Stop(id) // whoever meets serves an ID that is derived from this one
		}
		return id, err
	})
}

// again is a meeting of the ranks of a communicator for a purpose.
func (c *comm) again(purpose string) meeting {
	c.mu.Lock()
	meet := c.meeting
	c.mu.Unlock()
	return func() (bootstrap.ID, error) {
		id, err := meet()
		return id.Derive(purpose), err
	}
}

// meetAgain sets where the ranks of a communicator will meet after a failure.
func (c *comm) meetAgain(m meeting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meeting = m
}

// over calls f with a ring of all ranks of a communicator, over which they agree: its own, or after ncclCommRevoke one
// for this purpose alone, for which all ranks meet again.
func (l *Library) over(ctx context.Context, c *comm, ring *ringo.Comm,
	f func(*ringo.Comm) (*ringo.Comm, error)) (*ringo.Comm, error) {
	if c.whyUnusable() != errRevoked {
		if made, err := f(ring); err == nil || !strings.Contains(err.Error(), errRevoke.Error()) { // by another rank
			return made, err
		}
	}
	c.mu.Lock()
	c.reopened++
	purpose := fmt.Sprintf("revoked, time %d", c.reopened)
	c.mu.Unlock()
	id, err := c.again(purpose)()
	if err != nil {
		return nil, err
	}
	cfg := c.config
	cfg.ID, cfg.Rank, cfg.Size = &id, ring.Rank(), ring.Size()
	all, err := l.joinAgain(ctx, cfg, 0)
	if err != nil {
		return nil, err
	}
	made, err := f(all)
	return made, errors.Join(err, all.Close())
}

// afterFailure is a meeting of all ranks that exclude the same ranks, a new one each time.
func (c *comm) afterFailure(exclude []int) meeting {
	who := fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(exclude))))
	c.mu.Lock()
	if c.shrinks == nil {
		c.shrinks = map[string]int{}
	}
	c.shrinks[who]++
	purpose := fmt.Sprintf("without %s, time %d", who, c.shrinks[who])
	c.mu.Unlock()
	return c.again(purpose)
}
