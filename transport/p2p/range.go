package p2p

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// A Range is addresses on a rank's GPU, whose memory comes piece by piece, when some rank
// needs a piece of its own Range or of a peer's. The ranks need not meet for that. In one process
// the rank that needs a piece makes it itself; another process makes it on a goroutine of its
// own. Nothing waits for kernels: memory is mapped, and cleared by a copy engine. Pieces stay
// until Close or Suspend. The methods may be called from any goroutine, except Close, Suspend and
// Resume.
type Range struct {
	cfg   Config
	offer RangeOffer
	total int
	files *exporter // nil if no other process may ask
	blank *blank
	ctx   context.Context // ends waits for other processes
	stop  context.CancelCauseFunc
	views map[int]*rangeView // of peers in other processes, by rank

	mu     sync.Mutex
	pieces []piece // guarded by mu
	closed bool    // guarded by mu
}

// A piece is memory of a Range.
type piece struct {
	at      uintptr
	bytes   int
	handle  cuda.MemHandle // 0 while there is no memory
	granted []cuda.Device  // that have access
	again   []cuda.Device  // that had access before Suspend
}

// A RangeOffer is what other ranks need of a Range. It travels as JSON.
type RangeOffer struct {
	transport.Info
	Driver  string // tells apart drivers of one process
	ID      string // in its process
	Addr    uint64
	Pieces  []int   // bytes of each; a piece of 0 bytes needs no memory
	Export  *Export `json:",omitempty"` // for other processes
	Refused string  `json:",omitempty"` // why there is none
}

// ranges are those of this process, by ID.
var ranges sync.Map

// A rangeView is a peer's Range in another process than the peer's.
type rangeView struct {
	peer   *RangeOffer
	pieces []int // bytes of each
	base   uintptr
	total  int

	mu    sync.Mutex
	have  []bool // guarded by mu
	again []bool // guarded by mu; the pieces it had before Suspend
}

// NewRange reserves addresses for pieces of the given bytes, which are multiples of 2 MiB.
// With shared, other processes of the host may ask for them. If the driver or the system
// cannot do all this, Refused and the offer say why, and the Range is of no use.
func NewRange(cfg Config, pieces []int, shared bool) *Range {
	r := &Range{cfg: cfg, views: map[int]*rangeView{}}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	r.offer = RangeOffer{Info: cfg.Self, Driver: driverID(cfg.Driver), ID: rand.Text(), Pieces: pieces}
	if err := r.with(func() error { return r.reserve(shared) }); err != nil {
		r.offer.Refused = errors.Join(err, r.Close(true)).Error()
		return r
	}
	ranges.Store(r.offer.ID, r)
	return r
}

func (r *Range) with(f func() error) error { return cuda.Quietly(r.cfg.Driver, r.cfg.Context, f) }

func (r *Range) prop() cuda.AllocationProp {
	return cuda.AllocationProp{Device: r.cfg.Device, Shareable: r.files != nil}
}

// reserve finds out whether there can be such memory, and reserves its addresses.
func (r *Range) reserve(shared bool) (err error) {
	d := r.cfg.Driver
	if shared {
		if r.files, err = newExporter(r.offer.ID, r.export); err != nil {
			return err
		}
		r.offer.Export = &r.files.Export
	}
	unit, err := d.MemGetAllocationGranularity(r.prop(), cuda.GranularityMinimum)
	if err != nil {
		return err
	}
	for _, n := range r.offer.Pieces {
		if n%unit != 0 {
			return fmt.Errorf("memory is mapped in units of %d bytes", unit)
		}
		r.total += n
	}
	h, err := d.MemCreate(unit, r.prop()) // a trial: some drivers promise such memory and then fail
	if err != nil {
		return err
	}
	if shared {
		var fd int
		if fd, err = d.MemExportToShareableHandle(h); err == nil {
			closeFile(fd)
		}
	}
	if err = errors.Join(err, d.MemRelease(h)); err != nil {
		return err
	}
	if r.blank, err = borrowBlank(d, r.cfg.Context); err != nil {
		return err
	}
	base, err := d.MemAddressReserve(r.total, 0)
	if err != nil {
		return err
	}
	r.offer.Addr = uint64(base)
	for _, n := range r.offer.Pieces {
		r.pieces = append(r.pieces, piece{at: base, bytes: n})
		base += uintptr(n)
	}
	return nil
}

// Offer is this rank's offer, for all others.
func (r *Range) Offer() []byte { return plain.JSON(&r.offer) }

// Refused is why there is no Range, "" if there is one.
func (r *Range) Refused() string { return r.offer.Refused }

// ParseRangeOffer reads what Offer made.
func ParseRangeOffer(b []byte) (o RangeOffer, err error) {
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("p2p: offer of addresses: %w", err)
	}
	for _, n := range o.Pieces {
		if n < 0 {
			return o, fmt.Errorf("p2p: offer of rank %d: a piece of %d bytes", o.Rank, n)
		}
	}
	return o, nil
}

func (r *Range) here(peer *RangeOffer) bool {
	return peer.Process == r.offer.Process && peer.Driver == r.offer.Driver
}

// Open returns the address of a peer's Range, or its own, for kernels of this rank. There
// is no memory yet. Opening again gives the same.
func (r *Range) Open(peer *RangeOffer) (addr uint64, err error) {
	if peer.Refused != "" {
		return 0, refusal(peer.Rank, peer.Refused)
	}
	if r.here(peer) {
		return peer.Addr, nil
	}
	v := r.views[peer.Rank]
	if v == nil {
		v = &rangeView{peer: peer, pieces: peer.Pieces, have: make([]bool, len(peer.Pieces))}
		for _, n := range peer.Pieces {
			v.total += n
		}
		err = fetch(r.ctx, peer.Export, 0, 0, nil)
		if err == nil {
			v.base, err = r.cfg.Driver.MemAddressReserve(v.total, 0)
		}
		if err != nil {
			return 0, fmt.Errorf("p2p: rank %d opens addresses of rank %d: %w", r.cfg.Self.Rank, peer.Rank, err)
		}
		r.views[peer.Rank] = v
	}
	return uint64(v.base), nil
}

// Bring makes piece i of a peer's Range, or of this rank's, and gives kernels of this rank access.
// New memory is zero. The peer's Range has to be open. Bringing again costs next to nothing.
func (r *Range) Bring(peer *RangeOffer, i int) error {
	if peer.Pieces[i] == 0 {
		return nil
	}
	var err error
	if !r.here(peer) {
		err = r.bringFrom(peer, r.views[peer.Rank], i)
	} else if owner, ok := ranges.Load(peer.ID); ok {
		err = owner.(*Range).make(i, r.cfg.Device)
	} else {
		err = fifo.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("p2p: rank %d needs memory of rank %d: %w", r.cfg.Self.Rank, peer.Rank, err)
	}
	return nil
}

// make makes a piece of this rank's memory, unless it is there, and gives a device access.
func (r *Range) make(i int, dev cuda.Device) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fifo.ErrClosed
	}
	p := &r.pieces[i]
	if slices.Contains(p.granted, dev) {
		return nil
	}
	return r.with(func() error {
		if p.handle == 0 {
			if err := r.fill(p); err != nil {
				return err
			}
		}
		if slices.Contains(p.granted, dev) {
			return nil
		}
		err := r.cfg.Driver.MemSetAccess(p.at, p.bytes, dev)
		if err == nil {
			p.granted = append(p.granted, dev)
		}
		return err
	})
}

// fill maps cleared memory, with the context current.
func (r *Range) fill(p *piece) error {
	d := r.cfg.Driver
	h, err := d.MemCreate(p.bytes, r.prop())
	if err != nil {
		return err
	}
	if err := d.MemMap(p.at, p.bytes, h); err != nil {
		return errors.Join(err, d.MemRelease(h))
	}
	err = d.MemSetAccess(p.at, p.bytes, r.cfg.Device)
	if err == nil {
		err = r.blank.clear(p.at, p.bytes)
	}
	if err != nil {
		return errors.Join(err, d.MemUnmap(p.at, p.bytes), d.MemRelease(h))
	}
	p.handle, p.granted = h, []cuda.Device{r.cfg.Device}
	return nil
}

// export makes a file of a piece, for a process that asks the exporter.
func (r *Range) export(i int) (fd int, err error) {
	if i < 0 || i >= len(r.offer.Pieces) || r.offer.Pieces[i] == 0 {
		return -1, fmt.Errorf("piece %d of %d", i, len(r.offer.Pieces))
	}
	if err := r.make(i, r.cfg.Device); err != nil {
		return -1, err
	}
	err = r.with(func() error {
		fd, err = r.cfg.Driver.MemExportToShareableHandle(r.pieces[i].handle)
		return err
	})
	return fd, err
}

// bringFrom maps a piece of a peer in another process.
func (r *Range) bringFrom(peer *RangeOffer, v *rangeView, i int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.have[i] {
		return nil
	}
	d, at, n := r.cfg.Driver, v.at(i), v.pieces[i]
	err := fetch(r.ctx, peer.Export, i, 1, func(_, fd int) error {
		return r.with(func() error {
			h, err := d.MemImportFromShareableHandle(fd)
			if err != nil {
				return err
			}
			if err = d.MemMap(at, n, h); err == nil {
				if err = d.MemSetAccess(at, n, r.cfg.Device); err != nil {
					err = errors.Join(err, d.MemUnmap(at, n))
				}
			}
			return errors.Join(err, d.MemRelease(h)) // the mapping keeps the memory
		})
	})
	v.have[i] = err == nil
	return err
}

func (v *rangeView) at(i int) uintptr {
	at := v.base
	for _, n := range v.pieces[:i] {
		at += uintptr(n)
	}
	return at
}

func (v *rangeView) unmap(d cuda.Driver) error {
	var errs []error
	for i, have := range v.have {
		if have {
			errs = append(errs, d.MemUnmap(v.at(i), v.pieces[i]))
		}
	}
	clear(v.have)
	return errors.Join(errs...)
}

func (v *rangeView) close(d cuda.Driver) error {
	return errors.Join(v.unmap(d), d.MemAddressFree(v.base, v.total))
}

func (p *piece) unmap(d cuda.Driver) error {
	if p.handle == 0 {
		return nil
	}
	err := errors.Join(d.MemUnmap(p.at, p.bytes), d.MemRelease(p.handle))
	p.handle, p.granted = 0, nil
	return err
}

// Stop ends waits for other processes, which then fail with cause.
func (r *Range) Stop(cause error) { r.stop(cause) }

// Close gives back this rank's memory and its addresses, and those of peers. No kernel of this process may use them any
// more. If the ranks have not parted, kernels of others may still write to the memory: the driver keeps it for their
// processes.
func (r *Range) Close(parted bool) error {
	if r.files != nil {
		r.files.close()
		r.files = nil
	}
	r.stop(fifo.ErrClosed)
	ranges.Delete(r.offer.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	err := r.with(func() error {
		d := r.cfg.Driver
		var errs []error
		for i := range r.pieces {
			if p := &r.pieces[i]; !parted && p.handle != 0 {
				cuda.Keep(d, p.at)
			}
			errs = append(errs, r.pieces[i].unmap(d))
		}
		if r.offer.Addr != 0 {
			errs = append(errs, d.MemAddressFree(uintptr(r.offer.Addr), r.total))
		}
		for _, v := range r.views {
			errs = append(errs, v.close(d))
		}
		if r.blank != nil {
			errs = append(errs, r.blank.giveBack())
		}
		return errors.Join(errs...)
	})
	r.pieces, r.offer.Addr, r.views, r.blank = nil, 0, map[int]*rangeView{}, nil
	return err
}
