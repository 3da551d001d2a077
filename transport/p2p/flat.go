package p2p

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A Flat is the memory of all ranks' segments in one range of addresses, with the same distance from each segment
// to the next. A kernel computes the address of any rank's segment from the first address and the distance.
type Flat struct {
	Base   uint64 // of rank 0's segment
	Stride uint64 // a multiple of FlatUnit

	segment  *Segment
	reserved stretch
	maps     []stretch
}

// FlatUnit divides the distance of every Flat, in bytes. NCCL's kernels count distances in this unit.
const FlatUnit = 1 << 32

// A stretch is addresses that are mapped, or reserved.
type stretch struct {
	at    uintptr
	bytes int
}

// Lay maps the segments of all ranks, whose offers are given by rank, for kernels of this rank. ReachSegment must be
// nil for every two of them. Only memory of the virtual-memory API can be mapped, and the segments have to begin
// at the same offset in a page. Call Lay before any rank's Settle. Cost: addresses for a stride for each
// rank, and three calls of the driver for each piece.
func (s *Segment) Lay(offers []SegmentOffer) (f *Flat, err error) {
	f = &Flat{segment: s}
	err = s.with(func() error {
		page, err := s.cfg.Driver.MemGetAllocationGranularity(cuda.AllocationProp{Device: s.cfg.Device},
			cuda.GranularityMinimum)
		if err != nil {
			return err
		}
		lead, err := f.measure(offers, uint64(page))
		if err != nil {
			return err
		}
		f.reserved.bytes = len(offers) * int(f.Stride)
		if f.reserved.at, err = s.cfg.Driver.MemAddressReserve(f.reserved.bytes, 0); err != nil {
			return err
		}
		f.Base = uint64(f.reserved.at) + lead
		for r := range offers {
			if err := f.fill(&offers[r], f.Base+uint64(r)*f.Stride-offers[r].lead()); err != nil {
				return errors.Join(fmt.Errorf("memory of rank %d: %w", r, err), f.giveBack())
			}
		}
		return nil
	})
	if err != nil {
		return nil, &SegmentError{Rank: s.cfg.Self.Rank, Peer: -1, Reason: "all ranks' memory in one range of addresses",
			Err: err}
	}
	return f, nil
}

// lead is how far into its first piece a segment begins.
func (o *SegmentOffer) lead() uint64 { return o.Addr - o.Pieces[0].Addr }

// measure finds the stride, and the greatest lead of a rank.
func (f *Flat) measure(offers []SegmentOffer, page uint64) (lead uint64, err error) {
	for r := range offers {
		o := &offers[r]
		switch {
		case !o.mapped():
			return 0, fmt.Errorf("rank %d's is not of the virtual-memory API: allocate it with ncclMemAlloc or cuMemCreate", r)
		case o.lead()%page != offers[0].lead()%page:
			return 0, fmt.Errorf("rank 0's begins at %d of a page of %d, and rank %d's at %d", offers[0].lead()%page, page, r,
				o.lead()%page)
		}
		lead = max(lead, o.lead())
	}
	most := uint64(0)
	for r := range offers {
		o := &offers[r]
		last := o.Pieces[len(o.Pieces)-1]
		most = max(most, lead-o.lead()+last.Addr+uint64(last.Bytes)-o.Pieces[0].Addr)
	}
	f.Stride = (most + FlatUnit - 1) / FlatUnit * FlatUnit
	return lead, nil
}

// fill maps the pieces of a rank at an address, with the context current.
func (f *Flat) fill(o *SegmentOffer, addr uint64) error {
	s, d, at := f.segment, f.segment.cfg.Driver, uintptr(addr)
	add := func(i int, h cuda.MemHandle) error {
		n := o.Pieces[i].Bytes
		err := d.MemMap(at, n, h)
		if err == nil {
			f.maps = append(f.maps, stretch{at, n})
			err = d.MemSetAccess(at, n, s.cfg.Device)
			at += uintptr(n)
		}
		return errors.Join(err, d.MemRelease(h)) // the mapping keeps the memory
	}
	if o.Process != s.offer.Process || o.Driver != s.offer.Driver {
		return fetch(context.Background(), o.Export, 0, len(o.Pieces), func(i, fd int) error {
			h, err := d.MemImportFromShareableHandle(fd)
			if err != nil {
				return err
			}
			return add(i, h)
		})
	}
	for i := range o.Pieces {
		h, err := d.MemRetainAllocationHandle(uintptr(o.Pieces[i].Addr))
		if err != nil {
			return err
		}
		if err := add(i, h); err != nil {
			return err
		}
	}
	return nil
}

// giveBack unmaps everything, with the context current.
func (f *Flat) giveBack() error {
	var errs []error
	for _, m := range f.maps {
		errs = append(errs, f.segment.cfg.Driver.MemUnmap(m.at, m.bytes))
	}
	f.maps = nil
	return errors.Join(append(errs, f.segment.cfg.Driver.MemAddressFree(f.reserved.at, f.reserved.bytes))...)
}

// Close gives the addresses back. No kernel of this rank may use them any more.
func (f *Flat) Close() error { return f.segment.with(f.giveBack) }
