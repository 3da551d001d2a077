//go:build !linux

package p2p

import (
	"context"
	"errors"
)

// An exporter cannot be made here: only Linux passes files of GPU memory between processes.
type exporter struct{ Export }

func newExporter(string, func(int) (int, error)) (*exporter, error) {
	return nil, errors.ErrUnsupported
}

func (*exporter) close() {}

func fetch(context.Context, *Export, int, int, func(i, fd int) error) error {
	return errors.ErrUnsupported
}
