//go:build unix && !linux

package p2p

import (
	"errors"

	"golang.org/x/sys/unix"
)

// create makes zero memory of this process.
func create(n int) (mapping, *File, error) {
	x, err := mapped(-1, n, unix.MAP_ANON|unix.MAP_SHARED)
	return x, nil, err
}

func open(*File, int) (mapping, error) { return mapping{}, errors.ErrUnsupported }
