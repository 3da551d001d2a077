package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
)

// suspendMemory is NCCL_SUSPEND_MEM.
const suspendMemory = 1

// Suspend has a communicator refuse calls until Resume, and gives back the GPU memory that it can do without in
// the meantime. All ranks call it. No graph with operations of the communicator may be launched until Resume.
func (l *Library) Suspend(group, handle uintptr, flags int) (err error) {
	defer func() { l.Fail(group, err) }()
	if flags != suspendMemory {
		return fmt.Errorf("%w: ncclCommSuspend has no flags but NCCL_SUSPEND_MEM, not %d", ringo.ErrInvalid, flags)
	}
	c, r, err := l.ready(handle)
	if err != nil {
		return err
	}
	return l.job(group, job{c, nil, func() (*ringo.Comm, error) {
		if err := r.Footprint().Suspend(); err != nil {
			return nil, err
		}
		return nil, c.change(func(s *state) error { s.barred = errSuspended; return nil })
	}})
}

// Resume ends Suspend. All ranks call it.
func (l *Library) Resume(group, handle uintptr) (err error) {
	defer func() { l.Fail(group, err) }()
	c, r, err := l.known(handle)
	if err != nil {
		return err
	}
	if c.whyUnusable() != errSuspended {
		return fmt.Errorf("%w: ncclCommResume of a communicator that is not suspended", errUsage)
	}
	return l.job(group, job{c, nil, func() (*ringo.Comm, error) {
		if err := r.Footprint().Resume(); err != nil {
			return nil, err
		}
		return nil, c.change(func(s *state) error { s.barred = nil; return nil })
	}})
}

// The figures of MemStats, of ncclCommMemStat_t.
const (
	memSuspend   = iota // bytes that Suspend would give back, or has given back
	memSuspended        // 1 between Suspend and Resume
	memPersist          // bytes that stay until the communicator's end
	memTotal            // sum of memSuspend and memPersist
)

// MemStats is one figure of a communicator's memory on its GPU, by its number in ncclCommMemStat_t.
func (l *Library) MemStats(handle uintptr, stat int) (uint64, error) {
	c, r, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	if stat == memSuspended {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.state.barred == errSuspended {
			return 1, nil
		}
		return 0, nil
	}
	fixed, mapped := r.Footprint().Bytes()
	switch stat {
	case memSuspend:
		return uint64(mapped), nil
	case memPersist:
		return uint64(fixed), nil
	case memTotal:
		return uint64(fixed + mapped), nil
	}
	return 0, fmt.Errorf("%w: ncclCommMemStats has no figure %d", ringo.ErrInvalid, stat)
}
