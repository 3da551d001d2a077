package capi

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo"
)

// Split divides a communicator by color. A rank with ringo.NoColor is in no part and gets the
// handle 0. All ranks call it.
func (l *Library) Split(group, handle uintptr, color, key int, given *Config) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	parent, ring, err := l.source(handle)
	if err != nil {
		return 0, err
	}
	return l.derive(group, parent, given, color == ringo.NoColor,
		func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
			parent.mu.Lock()
			parent.splits++ // here and not earlier, since one rank may throw its group away
			part := fmt.Sprintf("split %d, part %d", parent.splits, color)
			parent.mu.Unlock()
			if color != ringo.NoColor {
				c.meetAgain(parent.again(part))
			}
			return l.over(ctx, parent, ring, func(r *ringo.Comm) (*ringo.Comm, error) {
				return r.SplitWith(ctx, color, key, cfg)
			})
		})
}

// source is a communicator from which others can be made: one that takes calls, or was revoked.
func (l *Library) source(handle uintptr) (*comm, *ringo.Comm, error) {
	c, r, err := l.known(handle)
	if err == nil && c.usable.Load() == nil {
		if why := c.whyUnusable(); why != errRevoked {
			return nil, nil, why
		}
	}
	return c, r, err
}

// derive makes a communicator of parent, with parent's configuration where given is nil. The ranks agree over parent's
// ring, where the order of calls is the same on all ranks; so parent's blocking decides whether the call blocks.
func (l *Library) derive(group uintptr, parent *comm, given *Config, none bool,
	open func(context.Context, *comm, ringo.Config) (*ringo.Comm, error)) (uintptr, error) {
	cfg, blocking := parent.config, parent.blocking
	if given != nil {
		var err error
		if cfg, blocking, err = l.completed(given); err != nil {
			return 0, err
		}
		cfg = on(parent.device, cfg)
	}
	if none {
		return 0, l.job(group, job{parent, nil, func() (*ringo.Comm, error) { return open(parent.opening, nil, cfg) }})
	}
	lease := l.lease(&cfg, "")
	c := newComm(parent.device, blocking, cfg)
	c.lease = lease
	c.handle = l.comms.Add(c)
	return l.opened(c, l.job(group, job{parent, c, func() (*ringo.Comm, error) { return open(c.opening, c, cfg) }}))
}
