package p2p

import (
	"context"
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/process"
)

// opened are the MemAlloc allocations of other processes that this process has open.
// The driver may refuse to open an allocation twice in a context, so it is opened once
// and the segments that have a part of it are counted.
var opened = process.Shared[openKey, openAllocation]{
	End: func(x openAllocation) error { return x.driver.IpcCloseMemHandle(x.at) },
}

type openKey struct {
	driver  cuda.Driver
	ctx     cuda.Context
	process string // that owns it
	other   string // its driver there
	addr    uint64 // there
	id      uint64
}

type openAllocation struct {
	driver cuda.Driver
	at     uintptr
}

// openPiece opens the allocation that a peer's segment lies in, with the context
// current.
func (s *Segment) openPiece(peer *SegmentOffer) (v segmentView, err error) {
	d, p := s.cfg.Driver, &peer.Pieces[0]
	if len(p.Handle) != len(cuda.IPCHandle{}) {
		return v, errors.New("the peer has no handle for it")
	}
	key := openKey{d, s.cfg.Context, peer.Process, peer.Driver, p.Addr, p.ID}
	x, err := opened.Open(nil, key, func() (openAllocation, error) {
		at, err := d.IpcOpenMemHandle(cuda.IPCHandle(p.Handle))
		return openAllocation{d, at}, err
	})
	if err != nil {
		return v, err
	}
	return segmentView{uint64(x.at) + peer.Addr - p.Addr, func() error { return opened.Leave(nil, key) }}, nil
}

// mapPieces maps a peer's virtual memory, with the context current.
func (s *Segment) mapPieces(peer *SegmentOffer) (v segmentView, err error) {
	d, total := s.cfg.Driver, 0
	for _, p := range peer.Pieces {
		total += p.Bytes
	}
	base, err := d.MemAddressReserve(total, 0)
	if err != nil {
		return v, err
	}
	at := base
	giveBack := func() error {
		var errs []error
		for i, p := base, 0; i < at; p++ { // each as it was mapped
			errs = append(errs, d.MemUnmap(i, peer.Pieces[p].Bytes))
			i += uintptr(peer.Pieces[p].Bytes)
		}
		return errors.Join(append(errs, d.MemAddressFree(base, total))...)
	}
	err = fetch(context.Background(), peer.Export, 0, len(peer.Pieces), func(i, fd int) error {
		h, err := d.MemImportFromShareableHandle(fd)
		if err != nil {
			return err
		}
		n := peer.Pieces[i].Bytes
		if err = d.MemMap(at, n, h); err == nil {
			at += uintptr(n)
		}
		return errors.Join(err, d.MemRelease(h)) // the mapping keeps the memory
	})
	if err == nil {
		err = d.MemSetAccess(base, total, s.cfg.Device)
	}
	if err != nil {
		return v, errors.Join(err, giveBack())
	}
	return segmentView{uint64(base) + peer.Addr - peer.Pieces[0].Addr, giveBack}, nil
}
