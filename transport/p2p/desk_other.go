//go:build unix && !linux

package p2p

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/cuda"
)

type desk struct{ Desk }

func openDesk([]cuda.MemHandle, func(cuda.MemHandle) (int, error)) (*desk, error) {
	return nil, errors.ErrUnsupported
}

func (*desk) close() {}

func fetch(*Desk, int, func(i, fd int) error) error { return errors.ErrUnsupported }

func closeFile(fd int) { unix.Close(fd) }
