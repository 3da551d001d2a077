//go:build !linux

package ibverbs

import "errors"

// duplicate is never called: no library opens on this system.
func duplicate(int32) (uintptr, error) { return 0, errors.ErrUnsupported }

func nonblocking(int) error { return errors.ErrUnsupported }
