package p2p

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// A Segment is memory of the user on this rank's GPU, allocated in any way, and the segments
// of its peers that are open.
type Segment struct {
	cfg     Config
	offer   SegmentOffer
	handles []cuda.MemHandle    // of the pieces, until Settle
	files   *exporter           // hands the pieces to other processes, until Settle
	opened  map[int]segmentView // of peers, by rank
}

// A SegmentOffer is what other ranks need to open a rank's segment. It travels as JSON.
type SegmentOffer struct {
	transport.Info
	Driver string // tells apart drivers of one process
	UUID   string // of the device
	Addr   uint64 // in its process
	Bytes  int
	Pieces []Piece
	Export *Export `json:",omitempty"` // where other processes get the pieces' files
	NoIPC  string  `json:",omitempty"` // why other processes cannot open it
	NoPeer string  `json:",omitempty"` // why nobody can
}

// A Piece is an allocation of which a segment has a part. Each piece begins where the one
// before it ends.
type Piece struct {
	Addr   uint64 // in its process
	Bytes  int
	ID     uint64 // tells it from other allocations at the address, earlier or later
	Handle []byte `json:",omitempty"` // of MemAlloc
	Mapped bool   `json:",omitempty"` // by the virtual-memory API
}

// A SegmentError says why memory of a rank cannot be shared.
type SegmentError struct {
	Rank   int
	Peer   int // whose memory it is, -1 if it is the rank's own
	Reason string
	Remedy string
	Err    error // of the driver or system, if there is one
}

func (e *SegmentError) Unwrap() error { return e.Err }
func (e *SegmentError) Error() string {
	s := fmt.Sprintf("p2p: rank %d: %s", e.Rank, e.Reason)
	if e.Peer >= 0 {
		s = fmt.Sprintf("p2p: rank %d opens memory of rank %d: %s", e.Rank, e.Peer, e.Reason)
	}
	if e.Err != nil {
		s += fmt.Sprintf(": %v", e.Err)
	}
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	return s
}

// A segmentView is a peer's segment as this rank sees it.
type segmentView struct {
	at    uint64
	close func() error // with the context current; nil if there is nothing to close
}

// NewSegment is the segment of cfg.Bytes bytes at addr. The error (*SegmentError) is that these
// are no memory of this rank's GPU. Memory that cannot be shared is no error: the offer
// says why. Cost: two calls of the driver, and four for each piece of virtual memory.
func NewSegment(cfg Config, addr uint64) (*Segment, error) {
	s := &Segment{cfg: cfg, opened: map[int]segmentView{}}
	s.offer = SegmentOffer{Info: cfg.Self, Driver: driverID(cfg.Driver), Addr: addr, Bytes: cfg.Bytes, NoPeer: cfg.Refused}
	err := s.with(func() (err error) {
		if err := s.inspect(); err != nil {
			return err
		}
		if s.offer.UUID, err = uuid(cfg.Driver, cfg.Device); err != nil {
			return &SegmentError{Rank: cfg.Self.Rank, Peer: -1, Reason: "identity of the GPU", Err: err}
		}
		if s.offer.NoPeer == "" && s.offer.NoIPC == "" && len(s.handles) > 0 {
			if s.files, err = newExporter(rand.Text(), s.export); err != nil {
				s.offer.NoIPC = err.Error()
			} else {
				s.offer.Export = &s.files.Export
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Segment) with(f func() error) error { return cuda.Quietly(s.cfg.Driver, s.cfg.Context, f) }

// export makes a file of a piece, for a process that asks the exporter.
func (s *Segment) export(i int) (fd int, err error) {
	if i < 0 || i >= len(s.handles) {
		return -1, fmt.Errorf("piece %d of %d", i, len(s.handles))
	}
	err = s.with(func() error {
		fd, err = s.cfg.Driver.MemExportToShareableHandle(s.handles[i])
		return err
	})
	return fd, err
}

// Offer is this rank's offer, for all others.
func (s *Segment) Offer() []byte { return plain.JSON(&s.offer) }

// ParseSegmentOffer reads what Offer made.
func ParseSegmentOffer(b []byte) (o SegmentOffer, err error) {
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("p2p: offer of registered memory: %w", err)
	}
	if o.NoPeer == "" && len(o.Pieces) == 0 {
		return o, fmt.Errorf("p2p: offer of rank %d: no memory", o.Rank)
	}
	at := uint64(0)
	for i := range o.Pieces {
		p := &o.Pieces[i]
		switch {
		case len(p.Handle) != 0 && len(p.Handle) != len(cuda.IPCHandle{}):
			return o, fmt.Errorf("p2p: offer of rank %d: a handle of %d bytes", o.Rank, len(p.Handle))
		case p.Bytes <= 0 || p.Addr+uint64(p.Bytes) < p.Addr || i > 0 && (p.Addr != at || !p.Mapped):
			return o, fmt.Errorf("p2p: offer of rank %d: pieces that do not fit together", o.Rank)
		}
		at = p.Addr + uint64(p.Bytes)
	}
	if n := len(o.Pieces); n > 0 &&
		(o.Bytes <= 0 || o.Addr < o.Pieces[0].Addr || o.Addr > at || uint64(o.Bytes) > at-o.Addr) {
		return o, fmt.Errorf("p2p: offer of rank %d: %d bytes at %#x are not in its pieces", o.Rank, o.Bytes, o.Addr)
	}
	return o, nil
}

// ReachSegment says why two ranks that share memory (Reach) cannot open each other's
// segments, nil if nothing in their offers prevents it. It is pure and symmetric.
func ReachSegment(a, b *SegmentOffer) error {
	for _, o := range []*SegmentOffer{a, b} {
		if o.NoPeer != "" {
			return refusal(o.Rank, o.NoPeer)
		}
	}
	if a.Bytes != b.Bytes {
		return otherSizes(a.Rank, b.Rank, a.Bytes, b.Bytes)
	}
	if a.Process == b.Process && a.Driver == b.Driver {
		return nil
	}
	for _, o := range []*SegmentOffer{a, b} {
		if o.NoIPC != "" {
			return fmt.Errorf("p2p: rank %d cannot hand its memory to another process: %s", o.Rank, o.NoIPC)
		}
	}
	return nil
}

// Stalls reports whether a rank's copies to a peer's segment, or the peer's to its, may wait for calls
// of other threads: the driver takes the owner's context for a copy to memory of cuMemAlloc on another
// GPU of the process, and a call that waits for kernels of that GPU holds it (cudaemu.Config.LoadsWait).
// The rank for which those kernels wait may be the one whose copy waits: then it is a deadlock.
// Mapped memory, kernels and graphs need no context of the owner's. It is pure and symmetric.
func Stalls(a, b *SegmentOffer) bool {
	return a.Process == b.Process && a.Driver == b.Driver && a.UUID != b.UUID && !(a.mapped() && b.mapped())
}

func (o *SegmentOffer) mapped() bool { return len(o.Pieces) > 0 && o.Pieces[0].Mapped }

// Open opens the segment of a peer for which ReachSegment is nil, and returns its address for
// kernels of this rank. Opening again gives the same. Call it before the peer's Settle.
// Errors are *SegmentError.
func (s *Segment) Open(peer *SegmentOffer) (addr uint64, err error) {
	if peer.Rank == s.cfg.Self.Rank {
		return s.offer.Addr, nil
	}
	if v, ok := s.opened[peer.Rank]; ok {
		return v.at, nil
	}
	var v segmentView
	err = s.with(func() (err error) {
		switch {
		case peer.Process == s.offer.Process && peer.Driver == s.offer.Driver:
			v.at, err = peer.Addr, s.grant(peer)
		case peer.Pieces[0].Mapped:
			v, err = s.mapPieces(peer)
		default:
			v, err = s.openPiece(peer)
		}
		return err
	})
	if err != nil {
		return 0, &SegmentError{Rank: s.cfg.Self.Rank, Peer: peer.Rank, Reason: "cannot", Err: err}
	}
	s.opened[peer.Rank] = v
	return v.at, nil
}

// grant gives this rank's device access to memory of this process.
func (s *Segment) grant(peer *SegmentOffer) error {
	if !peer.Pieces[0].Mapped {
		return enable(s.cfg.Driver, s.cfg.Device, peer.UUID)
	}
	for _, p := range peer.Pieces {
		if err := s.cfg.Driver.MemSetAccess(uintptr(p.Addr), p.Bytes, s.cfg.Device); err != nil {
			return err
		}
	}
	return nil
}

// Settle stops handing out the segment. Call it when all other processes have opened it.
func (s *Segment) Settle() error {
	if s.files != nil {
		s.files.close()
		s.files = nil
	}
	var errs []error
	for _, h := range s.handles {
		errs = append(errs, s.cfg.Driver.MemRelease(h))
	}
	s.handles = nil
	return errors.Join(errs...)
}

// Close closes the segments of peers. No kernel of this rank may use them any more. The
// peers have to call Close too before the user frees the memory.
func (s *Segment) Close() error {
	errs := []error{s.Settle()}
	if len(s.opened) > 0 {
		errs = append(errs, s.with(func() error {
			var errs []error
			for _, v := range s.opened {
				if v.close != nil {
					errs = append(errs, v.close())
				}
			}
			return errors.Join(errs...)
		}))
	}
	s.opened = map[int]segmentView{}
	return errors.Join(errs...)
}
