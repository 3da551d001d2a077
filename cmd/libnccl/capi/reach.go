package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/kernels/collective"
)

// Reach is the LSA team of NCCL: the ranks that have access to each other's windows, which are all ranks, or each
// alone. size is their number, rank this rank's place among them; kernels reports whether they can have a device
// communicator.
func (l *Library) Reach(handle uintptr) (size, rank int, kernels bool, err error) {
	c, r, err := l.known(handle)
	if err != nil {
		return 0, 0, false, err
	}
	size, rank = reach(r)
	return size, rank, c.device != nil && size == r.Size(), nil
}

func reach(r *ringo.Comm) (size, rank int) {
	if r.Size() > collective.MaxRanks {
		return 1, 0
	}
	for peer := range r.Size() {
		if path := r.DeviceTransport(peer); peer != r.Rank() && path != "p2p" && path != "pcie" {
			return 1, 0
		}
	}
	return r.Size(), r.Rank()
}

// PeerAddress is the address of a rank's part of a window for this rank's kernels, 0 if it has no access.
func (l *Library) PeerAddress(handle uintptr, offset uint64, peer int) (uintptr, error) {
	w, r, err := l.inWindow(handle, offset)
	if err != nil {
		return 0, err
	}
	if peer < 0 || peer >= r.Size() {
		return 0, fmt.Errorf("%w: peer %d of %d ranks", ringo.ErrInvalid, peer, r.Size())
	}
	if peer == r.Rank() {
		return w.at + uintptr(offset), nil
	}
	if w.ring == nil {
		return 0, nil
	}
	if at := w.ring.At(peer); at != 0 {
		return at + uintptr(offset), nil
	}
	return 0, nil
}

// TeamAddress is PeerAddress for a rank of Reach.
func (l *Library) TeamAddress(handle uintptr, offset uint64, rank int) (uintptr, error) {
	_, r, err := l.inWindow(handle, offset)
	if err != nil {
		return 0, err
	}
	size, mine := reach(r)
	if rank < 0 || rank >= size {
		return 0, fmt.Errorf("%w: rank %d of the %d that have access to each other", ringo.ErrInvalid, rank, size)
	}
	at, err := l.PeerAddress(handle, offset, r.Rank()-mine+rank)
	if err == nil && at == 0 {
		return 0, fmt.Errorf("%w: ncclGetLsaDevicePointer: the window has no effect here", ringo.ErrUnsupported)
	}
	return at, err
}

// Multimem is the address by which one access reaches an offset of all ranks' windows: 0, for there is none.
func (l *Library) Multimem(handle uintptr, offset uint64) (uintptr, error) {
	_, _, err := l.inWindow(handle, offset)
	return 0, err
}

// inWindow is a window that has an offset.
func (l *Library) inWindow(handle uintptr, offset uint64) (*window, *ringo.Comm, error) {
	w, err := l.window(handle)
	if err != nil {
		return nil, nil, err
	}
	r := w.comm.opened()
	if r == nil {
		return nil, nil, w.comm.whyUnusable()
	}
	if offset >= uint64(w.bytes) {
		return nil, nil, fmt.Errorf("%w: offset %d of a window of %d bytes", ringo.ErrInvalid, offset, w.bytes)
	}
	return w, r, nil
}
