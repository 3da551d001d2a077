//go:build !linux

package ibverbs

import "errors"

// There is no library here to have descriptors.
func duplicate(int32) (uintptr, error) { return 0, errors.ErrUnsupported }

func nonblocking(int) error { return errors.ErrUnsupported }
