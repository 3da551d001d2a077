package capi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
)

// UniqueID makes an ID for a new communicator, and serves it from this process unless rank 0's
// process will.
func (l *Library) UniqueID() (bootstrap.ID, error) {
	if addr, secret := l.env.meeting(); addr != "" {
		return bootstrap.IDFor(addr, secret)
	}
	return l.freshID()
}

// freshID makes an ID that this process serves.
func (l *Library) freshID() (bootstrap.ID, error) {
	cfg, err := l.config()
	if err != nil {
		return bootstrap.ID{}, err
	}
	return cfg.NewID("")
}

// meets is where the ranks of a new communicator meet that were given an ID. That of NCCL_COMM_ID is the same
// for all communicators, so each has one derived of it: all ranks count those of a size in which they are
// that rank. They make them in the same order.
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

// InitRank makes a communicator, with the caller's current GPU. All ranks give the same ids; the first
// is where they meet.
func (l *Library) InitRank(group uintptr, size, rank int, ids []bootstrap.ID, given *Config) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	if size < 1 || rank < 0 || rank >= size {
		return 0, fmt.Errorf("%w: rank %d of %d", ringo.ErrInvalid, rank, size)
	}
	if len(ids) == 0 {
		return 0, fmt.Errorf("%w: no unique ID", ringo.ErrInvalid)
	}
	if err := ids[0].Check(); err != nil {
		return 0, fmt.Errorf("%w: %w", ringo.ErrInvalid, err)
	}
	d, err := l.here()
	if err != nil {
		return 0, err
	}
	cfg, blocking, err := l.completed(given)
	if err != nil {
		return 0, err
	}
	id := l.meets(ids[0], size, rank)
	cfg = on(d, cfg)
	cfg.ID, cfg.Rank, cfg.Size = &id, rank, size
	c := newComm(d, blocking, cfg)
	c.meeting = &id
	c.handle = l.comms.add(c)
	return l.opened(c, l.job(group, job{c, c, func() (*ringo.Comm, error) { return l.join(c.opening, cfg) }}))
}

// opened is the handle of a communicator that is open, or will be; there is none after an error.
func (l *Library) opened(c *comm, err error) (uintptr, error) {
	if err != nil && err != errInProgress {
		_, _ = l.comms.take(c.handle)
		return 0, err
	}
	return c.handle, err
}

// on is a configuration for a GPU, with which log lines name it; nil is none.
func on(d *gpu.Device, cfg ringo.Config) ringo.Config {
	cfg.Device = d
	if d != nil {
		cfg.Log = cfg.Log.With(deviceKey, d.Number())
	}
	return cfg
}

// here is the calling thread's GPU, nil where buffers are host memory.
func (l *Library) here() (*gpu.Device, error) {
	if l.env.host() {
		return nil, nil
	}
	return l.current()
}

// completed is a configuration with what a program has given, and whether it blocks.
func (l *Library) completed(given *Config) (cfg ringo.Config, blocking bool, err error) {
	if cfg, err = l.config(); err != nil {
		return cfg, false, err
	}
	said := true
	if given != nil {
		said = given.Blocking
		if given.MaxCTAs > 0 && cfg.MaxBlocks == 0 {
			cfg.MaxBlocks = given.MaxCTAs
		}
		cfg.MinBlocks = cmp.Or(cfg.MinBlocks, given.MinCTAs)
		if cfg.MaxBlocks > 0 { // one of them may be the environment's, the other the program's
			cfg.MinBlocks = min(cfg.MinBlocks, cfg.MaxBlocks)
		}
		cfg.BlockPolicy = cmp.Or(cfg.BlockPolicy, given.Policy)
		if given.Net != "" && cfg.Net == "" {
			cfg.Net = given.Net
		}
	}
	return cfg, l.env.blocking(said, cfg.Log), nil
}

// join opens one rank's communicator.
func (l *Library) join(ctx context.Context, cfg ringo.Config) (*ringo.Comm, error) {
	id := *cfg.ID
	if cfg.Size == 1 { // nobody comes
		bootstrap.Stop(id)
		cfg.ID = nil
	} else if addr, _ := l.env.meeting(); addr == id.Addr() && cfg.Rank == 0 {
		if err := bootstrap.Serve(id, bootstrap.ListenOptions{Log: cfg.Log.With("subsys", "BOOTSTRAP")}); err != nil {
			return nil, err
		}
	}
	return ringo.Open(ctx, cfg)
}

// InitAll makes communicators of n ranks, all in this process; devices are their GPUs, the
// first n if nil.
func (l *Library) InitAll(n int, devices []int) ([]uintptr, error) {
	if n < 1 {
		return nil, fmt.Errorf("%w: %d devices", ringo.ErrInvalid, n)
	}
	cfg, _, err := l.completed(nil)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if l.env.host() {
			break
		}
		number := i
		if devices != nil {
			number = devices[i]
		}
		d, err := l.device(number)
		if err != nil {
			return nil, err
		}
		cfg.Devices = append(cfg.Devices, d)
	}
	rings, err := ringo.OpenLocal(n, cfg)
	if err != nil {
		return nil, err
	}
	handles := make([]uintptr, n)
	for i, r := range rings {
		mine := on(r.Device(), cfg)
		mine.Devices = nil
		c := newComm(r.Device(), true, mine)
		c.handle = l.comms.add(c)
		c.take(r, nil)
		handles[i] = c.handle
	}
	return handles, nil
}

// Split divides a communicator by color, which is ringo.NoColor for a rank that becomes a
// member of no part: its handle is 0. All ranks call it.
func (l *Library) Split(group, handle uintptr, color, key int, given *Config) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	parent, ring, err := l.ready(handle)
	if err != nil {
		return 0, err
	}
	parent.mu.Lock()
	parent.splits++
	part := fmt.Sprintf("split %d, part %d", parent.splits, color)
	parent.mu.Unlock()
	return l.derive(group, parent, given, color == ringo.NoColor, func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
		if color != ringo.NoColor {
			c.meetAgain(parent.again(part))
		}
		return ringo.SplitWith(ctx, ring, color, key, cfg)
	})
}

// again is where ranks of a communicator that know of a purpose meet; nil if they cannot.
func (c *comm) again(purpose string) *bootstrap.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meeting == nil {
		return nil
	}
	id := c.meeting.Derive(purpose)
	return &id
}

// meetAgain says where the ranks of a communicator will meet after a failure.
func (c *comm) meetAgain(id *bootstrap.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meeting = id
}

// derive makes a communicator of another: its configuration is the other's where given is nil. The other's
// ranks agree over its ring, so it says whether the call blocks, as the order of its calls is the same on all ranks.
func (l *Library) derive(group uintptr, parent *comm, given *Config, none bool, open func(context.Context, *comm, ringo.Config) (*ringo.Comm, error)) (uintptr, error) {
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
	c := newComm(parent.device, blocking, cfg)
	c.handle = l.comms.add(c)
	return l.opened(c, l.job(group, job{parent, c, func() (*ringo.Comm, error) { return open(c.opening, c, cfg) }}))
}

// shrinkAbort is NCCL_SHRINK_ABORT.
const shrinkAbort = 1

// Shrink makes a communicator of the ranks that are not in exclude, in their order. Those call
// it, and the excluded ranks do not. With the flag shrinkAbort what is under way is ended before.
//
// Where the communicator is well its ranks agree over it where they meet. After a failure they meet at the
// address where they first met, which the first of them has to be able to serve: it has to be on
// the host that made the unique ID. Communicators of InitAll cannot.
func (l *Library) Shrink(group, handle uintptr, exclude []int, given *Config, flags int) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	parent, ring, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	if flags&^shrinkAbort != 0 {
		return 0, fmt.Errorf("%w: ncclCommShrink has no flags %#x", ringo.ErrInvalid, flags)
	}
	stay, rank, err := staying(ring, exclude)
	if err != nil {
		return 0, err
	}
	if flags == shrinkAbort {
		ring.Abort(errors.New("ncclCommShrink"))
	}
	join := func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
		id, err := l.tell(ring, stay, rank)
		if err != nil {
			return nil, err
		}
		c.meetAgain(&id)
		cfg.ID, cfg.Rank, cfg.Size = &id, rank, len(stay)
		return l.join(ctx, cfg)
	}
	if ring.Err() != nil {
		id := parent.afterFailure(exclude)
		if id == nil {
			return 0, fmt.Errorf("%w: the ranks of this communicator have nowhere to meet after its failure: make a new one with ncclGetUniqueId", ringo.ErrUnsupported)
		}
		join = func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
			c.meetAgain(id)
			cfg.ID, cfg.Rank, cfg.Size = id, rank, len(stay)
			if rank == 0 && len(stay) > 1 {
				if err := bootstrap.Serve(*id, bootstrap.ListenOptions{Log: cfg.Log.With("subsys", "BOOTSTRAP")}); err != nil {
					return nil, err
				}
			}
			return l.join(ctx, cfg)
		}
	} else if parent.usable.Load() == nil {
		return 0, parent.whyUnusable()
	}
	return l.derive(group, parent, given, false, join)
}

// staying are the ranks that are not excluded, and which of them this one is.
func staying(ring *ringo.Comm, exclude []int) (stay []int, rank int, err error) {
	out := make([]bool, ring.Size())
	for _, r := range exclude {
		if r < 0 || r >= len(out) {
			return nil, 0, fmt.Errorf("%w: rank %d is to be excluded from %d", ringo.ErrInvalid, r, len(out))
		}
		out[r] = true
	}
	if out[ring.Rank()] {
		return nil, 0, fmt.Errorf("%w: rank %d is excluded: only ranks that stay call ncclCommShrink", errUsage, ring.Rank())
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

// tell has the first of the ranks that stay make an ID and send it to the others.
func (l *Library) tell(ring *ringo.Comm, stay []int, rank int) (id bootstrap.ID, err error) {
	if rank == 0 {
		if id, err = l.freshID(); err != nil {
			return id, err
		}
	}
	g := ringo.NewGroup()
	if rank > 0 {
		g.Add(ring, ringo.RecvOf(id[:], stay[0]))
	} else {
		for _, r := range stay[1:] {
			g.Add(ring, ringo.SendOf(id[:], r))
		}
	}
	if len(stay) > 1 {
		err = g.Run()
	}
	return id, err
}

// afterFailure is where all meet that exclude the same ranks, this time.
func (c *comm) afterFailure(exclude []int) *bootstrap.ID {
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

// GrowID makes an ID with which new ranks join a communicator by Grow. One rank calls it and
// gives it to them.
func (l *Library) GrowID(handle uintptr) (bootstrap.ID, error) {
	if _, _, err := l.ready(handle); err != nil {
		return bootstrap.ID{}, err
	}
	return l.freshID()
}

// Grow makes a communicator of size ranks of a smaller one. The ranks of that one keep their
// numbers and give its handle, and one of them the ID of GrowID; a new rank gives no
// communicator, the ID, and its rank.
func (l *Library) Grow(group, handle uintptr, size int, id *bootstrap.ID, rank int, given *Config) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	if handle == 0 {
		if id == nil {
			return 0, fmt.Errorf("%w: a new rank needs the unique ID of ncclCommGetUniqueId", ringo.ErrInvalid)
		}
		return l.InitRank(group, size, rank, []bootstrap.ID{*id}, given)
	}
	parent, ring, err := l.ready(handle)
	if err != nil {
		return 0, err
	}
	if rank != -1 {
		return 0, fmt.Errorf("%w: rank %d of a communicator that grows keeps its number: give -1, not %d", ringo.ErrInvalid, ring.Rank(), rank)
	}
	if size <= ring.Size() {
		return 0, fmt.Errorf("%w: %d ranks cannot become %d", ringo.ErrInvalid, ring.Size(), size)
	}
	return l.derive(group, parent, given, false, func(ctx context.Context, c *comm, cfg ringo.Config) (*ringo.Comm, error) {
		var mine bootstrap.ID
		if id != nil {
			mine = *id
		}
		all := make([]byte, len(mine)*ring.Size())
		if err := ringo.AllGather(ring, all, mine[:]); err != nil {
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
		c.meetAgain(&meet)
		cfg.ID, cfg.Rank, cfg.Size = &meet, ring.Rank(), size
		return l.join(ctx, cfg)
	})
}

// Finalize waits for what was begun. The communicator takes no calls any more. As in NCCL the null handle
// is no error, and none of Destroy and Abort.
func (l *Library) Finalize(group, handle uintptr) (err error) {
	if handle == 0 {
		return nil
	}
	defer func() { l.Fail(group, err) }()
	c, _, err := l.ready(handle)
	if err != nil {
		return err
	}
	return l.job(group, job{c, nil, func() (*ringo.Comm, error) {
		c.mu.Lock()
		c.finalized = true
		c.usable.Store(nil)
		last := c.started
		c.mu.Unlock()
		if last != nil {
			return nil, last.Wait()
		}
		return nil, nil
	}})
}

// Destroy ends a communicator, and its handle. It waits for what this rank has begun, and for no other
// rank: one that is still being opened is given up.
func (l *Library) Destroy(handle uintptr) error { return l.end(handle, nil) }

// Abort is Destroy that ends what is under way, on all ranks, instead of waiting for it. Where
// nothing is, it is Destroy: programs that are done abort, and others may still be at work.
func (l *Library) Abort(handle uintptr) error { return l.end(handle, errors.New("ncclCommAbort")) }

// idle is how long Abort gives a communicator to end by itself, which one with nothing under way does,
// and leaving how long it waits then for what other ranks may hold up, the end of memory that they
// have open. That goes on in the background.
const (
	idle    = 200 * time.Millisecond
	leaving = time.Second
)

// end ends a communicator; a reason aborts what is under way.
func (l *Library) end(handle uintptr, reason error) error {
	if handle == 0 {
		return nil
	}
	c, err := l.comms.take(handle)
	if err != nil {
		return err
	}
	defer c.cancel()
	if reason == nil {
		if c.opened() == nil { // it would wait for ranks that may never come
			c.cancel()
		}
		err := l.close(c)
		c.say(c.opened(), "Destroy")
		return err
	}
	c.cancel()
	done := make(chan error, 1)
	go func() { done <- l.close(c) }()
	select {
	case err = <-done:
	case <-time.After(idle):
		if r := c.opened(); r != nil {
			r.Abort(reason)
		}
		select {
		case err = <-done:
		case <-time.After(leaving):
		}
	}
	c.say(c.opened(), "Abort")
	l.Note(err) // what was aborted has failed, and that is no error of Abort
	return nil
}

// close gives back what a communicator has. Why it failed was said before.
func (l *Library) close(c *comm) (err error) {
	defer caught(&err)
	c.jobs.Wait()
	r := c.opened()
	if r == nil {
		return nil
	}
	well := r.Err() == nil
	err = errors.Join(r.Close(), l.release(c))
	if !well {
		return nil
	}
	return err
}

// Revoke ends what is under way, on all ranks, and leaves a communicator that can only be
// destroyed.
func (l *Library) Revoke(handle uintptr, flags int) error {
	if flags != 0 {
		return fmt.Errorf("%w: ncclCommRevoke has no flags but NCCL_REVOKE_DEFAULT, not %d", ringo.ErrInvalid, flags)
	}
	c, r, err := l.known(handle)
	if err != nil {
		return err
	}
	r.Abort(errors.New("ncclCommRevoke"))
	c.mu.Lock()
	c.revoked = true
	c.mu.Unlock()
	return nil
}

// suspendMemory is NCCL_SUSPEND_MEM.
const suspendMemory = 1

// Suspend has a communicator take no calls until Resume. It frees nothing: a communicator has a few MiB of
// its GPU, which peers have open.
func (l *Library) Suspend(handle uintptr, flags int) error {
	if flags != suspendMemory {
		return fmt.Errorf("%w: ncclCommSuspend has no flags but NCCL_SUSPEND_MEM, not %d", ringo.ErrInvalid, flags)
	}
	c, _, err := l.ready(handle)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended = true
	c.usable.Store(nil)
	return nil
}

// Resume ends Suspend.
func (l *Library) Resume(handle uintptr) error {
	c, _, err := l.known(handle)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.suspended {
		return fmt.Errorf("%w: ncclCommResume of a communicator that is not suspended", errUsage)
	}
	c.suspended = false
	c.admit()
	return nil
}
