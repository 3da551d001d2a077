//go:build !linux

package verbs

import (
	"errors"
	"time"
)

// Where there is no libibverbs none of this is ever reached.

func allocate(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func closeFD(int) {}

func free([]byte) {}

type sleeper struct{}

func (s *sleeper) add(int) {}

func (s *sleeper) readable(int) bool { return false }

func (s *sleeper) sleep(d time.Duration) { time.Sleep(d) }
