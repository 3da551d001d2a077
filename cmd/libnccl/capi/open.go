package capi

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
)

// UniqueID makes an ID for a new communicator, and serves it from this process. With NCCL_COMM_ID
// rank 0's process serves it.
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
	id, err := cfg.NewID("")
	if err != nil {
		return id, err
	}
	return l.sealed(id)
}

// InitRank makes a communicator, with the caller's current GPU. All ranks give the same ids; the first
// is where they meet.
func (l *Library) InitRank(group uintptr, size, rank int, ids []bootstrap.ID, given *Config) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	if size < 1 || rank < 0 || rank >= size {
		return 0, fmt.Errorf("%w: rank %d of %d", ringo.ErrInvalid, rank, size)
	}
	if len(ids) == 0 || len(ids) > size {
		return 0, fmt.Errorf("%w: %d unique IDs for %d ranks: want one, and one a rank at most", ringo.ErrInvalid, len(ids),
			size)
	}
	if err := ids[0].Check(); err != nil {
		return 0, fmt.Errorf("%w: %w", ringo.ErrInvalid, err)
	}
	cfg, blocking, err := l.completed(given)
	if err != nil {
		return 0, err
	}
	d, err := l.here()
	if err != nil {
		return 0, err
	}
	id := l.meets(ids[0], size, rank)
	cfg = on(d, cfg)
	lease := l.lease(&cfg, id.Addr())
	cfg.ID, cfg.Rank, cfg.Size = &id, rank, size
	c := newComm(d, blocking, cfg)
	c.lease = lease
	c.meeting = at(id)
	c.handle = l.comms.Add(c)
	return l.opened(c, l.job(group, job{c, c, func() (*ringo.Comm, error) { return l.join(c.opening, cfg) }}))
}

// opened is the handle of a communicator that is open or being opened. After an error the handle ends and opened is 0.
func (l *Library) opened(c *comm, err error) (uintptr, error) {
	if err != nil && err != errInProgress {
		_, _ = l.comms.Take(c.handle)
		c.lease.End()
		return 0, err
	}
	return c.handle, err
}

// on is a configuration with a GPU, which log lines then name; nil is host memory.
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

// completed is the common configuration with a program's Config added, and whether the communicator blocks.
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
		if cfg.MaxBlocks > 0 { // the environment may set one bound and the program the other
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
	id, err := l.sealed(*cfg.ID)
	if err != nil {
		return nil, err
	}
	if cfg.Size == 1 { // no other rank will join
		bootstrap.Stop(id)
		cfg.ID = nil
	} else if addr, _ := l.env.meeting(); addr == id.Addr() && cfg.Rank == 0 {
		if err := l.serve(cfg); err != nil {
			return nil, err
		}
	}
	if cfg.ID != nil {
		cfg.ID = &id
	}
	return ringo.Open(ctx, cfg)
}

// serve serves the ID of a Config in this process.
func (l *Library) serve(cfg ringo.Config) error {
	id, err := l.sealed(*cfg.ID)
	if err != nil {
		return err
	}
	l.mu.Lock()
	tls, err := bootstrap.TLSFromEnv(l.setting)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return bootstrap.Serve(id, bootstrap.ListenOptions{TLS: tls, Log: cfg.Log.With("subsys", "BOOTSTRAP")})
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
	lease := l.lease(&cfg, "")
	defer lease.End() // each communicator has its own
	rings, err := ringo.OpenLocal(n, cfg)
	if err != nil {
		return nil, err
	}
	var cards [][]byte
	for _, r := range rings {
		if lease != nil {
			cards = append(cards, l.card(lease, r.Device()))
		}
	}
	handles, meet := make([]uintptr, n), l.inside()
	for i, r := range rings {
		mine := on(r.Device(), cfg)
		mine.Devices = nil
		own := l.lease(&mine, "")
		c := newComm(r.Device(), true, mine)
		c.lease, c.cards, c.meeting = own, cards, meet
		c.handle = l.comms.Add(c)
		c.take(r, nil)
		handles[i] = c.handle
	}
	return handles, nil
}
