package p2p

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// A HostMemory is a rank's segment of pinned host memory, for ranks of a host whose
// GPUs cannot access each other's memory, and the segments of its peers that are open.
type HostMemory struct {
	cfg    Config
	offer  HostOffer
	own    mapping
	opened map[int]mapping // of peers in other processes, by rank
}

// A HostOffer is what other ranks need to open a rank's segment. It travels as JSON.
type HostOffer struct {
	transport.Info
	Driver  string
	Addr    uint64 // in its process
	Bytes   int
	File    *File  `json:",omitempty"` // for other processes
	Refused string `json:",omitempty"` // why the rank offers nothing
}

// A File is an open file of another process of the host. Device and inode tell
// whether it is still the same.
type File struct {
	PID, FD  int
	Dev, Ino uint64
}

// A mapping is memory of this process that is pinned for all its devices.
type mapping struct {
	data []byte
	file *os.File // nil if it cannot be shared
}

// NewHost makes the segment of this rank: zero, and shared where the system allows. A
// failure is not returned: the rank's offer carries it as Refused.
func NewHost(cfg Config) *HostMemory {
	m := &HostMemory{cfg: cfg, opened: map[int]mapping{}}
	m.offer = HostOffer{Info: cfg.Self, Driver: driverID(cfg.Driver), Bytes: cfg.Bytes, Refused: cfg.Refused}
	if cfg.Refused != "" {
		return m
	}
	own, file, err := create(cfg.Bytes)
	if err == nil {
		if err = m.pin(own); err == nil {
			m.own, m.offer.File, m.offer.Addr = own, file, uint64(own.at())
			return m
		}
		err = errors.Join(err, own.unmap())
	}
	m.offer.Refused = err.Error()
	return m
}

// pin makes memory accessible to all devices of this process.
func (m *HostMemory) pin(x mapping) error {
	return m.with(func() error {
		return m.cfg.Driver.MemHostRegister(x.at(), len(x.data), cuda.HostRegisterPortable|cuda.HostRegisterMapped)
	})
}

func (m *HostMemory) with(f func() error) error { return cuda.Quietly(m.cfg.Driver, m.cfg.Context, f) }

// address is the address of pinned memory for kernels of this rank.
func (m *HostMemory) address(p uintptr) (addr uint64, err error) {
	err = m.with(func() error {
		a, err := m.cfg.Driver.MemHostGetDevicePointer(p)
		addr = uint64(a)
		return err
	})
	return addr, err
}

// Bytes is this rank's segment as the host sees it; nil if there is none.
func (m *HostMemory) Bytes() []byte { return m.own.data }

// Address is the address of this rank's segment for its kernels.
func (m *HostMemory) Address() (uint64, error) {
	if m.own.data == nil {
		return 0, fmt.Errorf("p2p: rank %d: %s", m.cfg.Self.Rank, m.offer.Refused)
	}
	return m.address(m.own.at())
}

// Offer is this rank's offer, for all others.
func (m *HostMemory) Offer() []byte { return plain.JSON(&m.offer) }

// ParseHostOffer reads what Offer made.
func ParseHostOffer(b []byte) (o HostOffer, err error) {
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("p2p: offer of host memory: %w", err)
	}
	return o, nil
}

// ReachHost says why two ranks cannot open each other's segments, nil if nothing in
// their offers prevents it. It is pure and symmetric.
func ReachHost(a, b *HostOffer) error {
	for _, o := range []*HostOffer{a, b} {
		if o.Refused != "" {
			return refusal(o.Rank, o.Refused)
		}
	}
	switch {
	case a.Host != b.Host:
		return errOtherHosts
	case a.Bytes != b.Bytes:
		return otherSizes(a.Rank, b.Rank, a.Bytes, b.Bytes)
	case a.Process == b.Process && a.Driver == b.Driver:
		return nil
	}
	for _, o := range []*HostOffer{a, b} {
		if o.File == nil {
			return fmt.Errorf("p2p: rank %d cannot share host memory with another process on this system", o.Rank)
		}
	}
	return nil
}

// Open opens the segment of a peer for which ReachHost is nil, and returns its address
// for kernels of this rank. Opening again gives the same. It fails if processes may
// not open each other's files (another user, another PID namespace).
func (m *HostMemory) Open(peer *HostOffer) (addr uint64, err error) {
	switch {
	case peer.Rank == m.cfg.Self.Rank:
		return m.Address()
	case peer.Process == m.offer.Process && peer.Driver == m.offer.Driver:
		addr, err = m.address(uintptr(peer.Addr))
	default:
		x, ok := m.opened[peer.Rank]
		if !ok {
			if x, err = open(peer.File, peer.Bytes); err == nil {
				if err = m.pin(x); err != nil {
					err = errors.Join(err, x.unmap())
				} else {
					m.opened[peer.Rank] = x
				}
			}
		}
		if err == nil {
			addr, err = m.address(x.at())
		}
	}
	if err != nil {
		return 0, fmt.Errorf("p2p: rank %d opens host memory of rank %d: %w", m.cfg.Self.Rank, peer.Rank, err)
	}
	return addr, nil
}

// Close unmaps the segments of peers and this rank's own. No kernel of any rank of
// this process may use them any more.
func (m *HostMemory) Close() error {
	all := []mapping{}
	if m.own.data != nil {
		all = append(all, m.own)
	}
	for _, x := range m.opened {
		all = append(all, x)
	}
	m.own, m.opened = mapping{}, map[int]mapping{}
	if len(all) == 0 {
		return nil
	}
	return m.with(func() error {
		var errs []error
		for _, x := range all {
			errs = append(errs, m.cfg.Driver.MemHostUnregister(x.at()), x.unmap())
		}
		return errors.Join(errs...)
	})
}
