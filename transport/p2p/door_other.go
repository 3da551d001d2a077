//go:build !linux

package p2p

import (
	"context"
	"errors"
)

type exporter struct{ Export }

func newExporter(string, func(int) (int, error)) (*exporter, error) {
	return nil, errors.ErrUnsupported
}

func (*exporter) close() {}

func fetch(context.Context, *Export, int, int, func(i, fd int) error) error {
	return errors.ErrUnsupported
}
