//go:build !linux

package p2p

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

type exporter struct{ Export }

func newExporter([]cuda.MemHandle, func(cuda.MemHandle) (int, error)) (*exporter, error) {
	return nil, errors.ErrUnsupported
}

func (*exporter) close() {}

func fetch(*Export, int, func(i, fd int) error) error { return errors.ErrUnsupported }
