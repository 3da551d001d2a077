package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
)

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
