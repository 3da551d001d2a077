//go:build !linux

package verbs

import (
	"errors"
	"time"
)

// allocate and the rest are never called: these systems have no libibverbs.

func allocate(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func closeFD(int) {}

func free([]byte) {}

type sleeper struct{}

func (s *sleeper) add(int) {}

func (s *sleeper) readable(int) bool { return false }

func (s *sleeper) sleep(d time.Duration) { time.Sleep(d) }
