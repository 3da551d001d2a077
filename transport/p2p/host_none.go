//go:build !unix

package p2p

import "errors"

// Systems other than Unix have no pinned host memory and no GPU here, so create and open fail.

func create(int) (mapping, *File, error) { return mapping{}, nil, errors.ErrUnsupported }

func open(*File, int) (mapping, error) { return mapping{}, errors.ErrUnsupported }

func (mapping) at() uintptr { return 0 }

func (mapping) unmap() error { return nil }

func closeFile(int) {}
