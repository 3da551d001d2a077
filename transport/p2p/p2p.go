// Package p2p shares memory among the GPUs of a host. It is for packages gpupaths and
// gpucomm. Each rank allocates one segment on its GPU, and all others open it, by peer
// access in the same process and by IPC handles in another (Memory). A large area that is
// rarely needed as a whole is addresses at first, and gets memory when some rank needs a piece
// (Range). Where GPUs cannot access each other's memory, the segment is pinned host memory, which processes hand over
// as a file (HostMemory). The caller lays out the segment (engine/grid.Board). Memory that
// the user has allocated, in any way, is shared as it is (Segment). The package is part of a
// communicator, and nothing here is promised to other modules.
//
// The trap: closing a segment frees or unmaps memory that kernels of other ranks may still
// use. All ranks have to be done first.
package p2p

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// Config describes a rank and the segment it makes.
type Config struct {
	Driver  cuda.Driver
	Context cuda.Context
	Device  cuda.Device
	Self    transport.Info
	Bytes   int    // of the segment
	Refused string // why this rank shares nothing ("RINGO_P2P_DISABLE is set"), "" if it does
}

// An Offer is what other ranks need to open a rank's segment. It travels as JSON.
type Offer struct {
	transport.Info
	Driver  string               // tells apart drivers of one process
	UUID    string               // of the device
	Links   map[string]cuda.Link // to the devices that this process sees, itself included, by UUID
	Addr    uint64
	Bytes   int
	Handle  []byte `json:",omitempty"` // for other processes
	NoIPC   string `json:",omitempty"` // why there is none
	Refused string `json:",omitempty"` // why the rank offers nothing
}

// A Memory is a rank's own segment and the segments of its peers that are open.
type Memory struct {
	cfg   Config
	offer Offer
	store *cuda.Store
	own   uintptr
	addrs map[int]uintptr // of peers, by rank
	ipc   []uintptr       // to close
}

// New allocates the segment of this rank and clears it. A rank that shares nothing
// has a segment for itself.
func New(cfg Config) (*Memory, error) {
	m := &Memory{cfg: cfg, store: cuda.OpenStore(cfg.Driver, cfg.Context), addrs: map[int]uintptr{}}
	d := cfg.Driver
	m.offer = Offer{Info: cfg.Self, Driver: driverID(d), Bytes: cfg.Bytes, Refused: cfg.Refused}
	err := m.with(func() (err error) {
		if m.offer.UUID, err = uuid(d, cfg.Device); err != nil {
			return err
		}
		if m.offer.Links, err = links(d, cfg.Device); err != nil {
			return err
		}
		if m.own, err = m.store.Alloc(cfg.Bytes); err != nil {
			return err
		}
		m.offer.Addr = uint64(m.own)
		// Peers may write as soon as they know the address. Another thread may be capturing on
		// this GPU, which a wait for the whole context would break.
		if err := clearNow(d, cfg.Context, m.own, cfg.Bytes); err != nil {
			return err
		}
		if cfg.Refused != "" {
			return nil
		}
		h, err := d.IpcGetMemHandle(m.own)
		if err != nil {
			m.offer.NoIPC = err.Error()
			return nil
		}
		m.offer.Handle = h[:]
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("p2p: rank %d: %w", cfg.Self.Rank, err), m.Close(true))
	}
	return m, nil
}

func (m *Memory) with(f func() error) error { return cuda.Quietly(m.cfg.Driver, m.cfg.Context, f) }

// driverID tells apart the drivers of a process.
func driverID(d cuda.Driver) string { return fmt.Sprintf("%s %p", d.Name(), d) }

func uuid(d cuda.Driver, dev cuda.Device) (string, error) {
	u, err := d.DeviceGetUuid(dev)
	return fmt.Sprintf("%x", u), err
}

// links finds the devices that this process sees, and how dev can access their memory.
func links(d cuda.Driver, dev cuda.Device) (map[string]cuda.Link, error) {
	n, err := d.DeviceGetCount()
	if err != nil {
		return nil, err
	}
	found := map[string]cuda.Link{}
	for i := range n {
		peer, err := d.DeviceGet(i)
		if err != nil {
			return nil, err
		}
		link, err := cuda.LinkBetween(d, dev, peer)
		if err != nil {
			return nil, err
		}
		u, err := uuid(d, peer)
		if err != nil {
			return nil, err
		}
		found[u] = link
	}
	return found, nil
}

// Offer is this rank's offer, for all others.
func (m *Memory) Offer() []byte { return plain.JSON(&m.offer) }

// ParseOffer reads what Offer made.
func ParseOffer(b []byte) (o Offer, err error) {
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("p2p: offer: %w", err)
	}
	if h := o.Handle; h != nil && len(h) != len(cuda.IPCHandle{}) {
		return o, fmt.Errorf("p2p: offer of rank %d: a handle of %d bytes", o.Rank, len(h))
	}
	return o, nil
}

// Reach says why two ranks cannot open each other's segments, nil if nothing in their
// offers prevents it: a GPU that CUDA_VISIBLE_DEVICES hides from the other process may be
// reached, which Open finds out. It is pure and symmetric.
func Reach(a, b *Offer) error {
	if a.Rank == b.Rank {
		return nil
	}
	for _, o := range []*Offer{a, b} {
		if o.Refused != "" {
			return refusal(o.Rank, o.Refused)
		}
	}
	if a.Host != b.Host {
		return errOtherHosts
	}
	if a.Bytes != b.Bytes {
		return otherSizes(a.Rank, b.Rank, a.Bytes, b.Bytes)
	}
	for _, p := range [][2]*Offer{{a, b}, {b, a}} {
		from, to := p[0], p[1]
		if link, seen := from.Links[to.UUID]; seen && link == cuda.NoLink {
			return fmt.Errorf("p2p: the GPU of rank %d does not reach that of rank %d: no NVLink or PCIe peer access",
				from.Rank, to.Rank)
		}
		if !sameProcess(a, b) && to.Handle == nil {
			return fmt.Errorf("p2p: rank %d cannot hand its memory to another process: %s", to.Rank, to.NoIPC)
		}
	}
	return nil
}

// LinkOf is the link between the GPUs of two ranks for which Reach is nil. If their offers
// differ, it is the link that does not carry lines whole.
func LinkOf(a, b *Offer) cuda.Link {
	if there := a.linkTo(b); !there.Whole() {
		return there
	}
	return b.linkTo(a)
}

func (o *Offer) linkTo(peer *Offer) cuda.Link {
	if link, seen := o.Links[peer.UUID]; seen {
		return link
	}
	return cuda.UnknownLink
}

func refusal(rank int, why string) error { return fmt.Errorf("p2p: rank %d: %s", rank, why) }

var errOtherHosts = errors.New("p2p: different hosts")

func otherSizes(a, b, m, n int) error {
	return fmt.Errorf("p2p: ranks %d and %d share %d and %d bytes; give both the same configuration", a, b, m, n)
}

func sameProcess(a, b *Offer) bool { return a.Process == b.Process && a.Driver == b.Driver }

// Bytes is the length of this rank's segment.
func (m *Memory) Bytes() int { return m.cfg.Bytes }

// Address is the address of this rank's segment for its kernels.
func (m *Memory) Address() uint64 { return uint64(m.own) }

// Open opens the segment of a peer for which Reach is nil, and returns its address for
// kernels of this rank. Opening again gives the same.
func (m *Memory) Open(peer *Offer) (addr uint64, err error) {
	if peer.Rank == m.cfg.Self.Rank {
		return uint64(m.own), nil
	}
	if a, ok := m.addrs[peer.Rank]; ok {
		return uint64(a), nil
	}
	err = m.with(func() error {
		var a uintptr
		if sameProcess(&m.offer, peer) {
			if err := enable(m.cfg.Driver, m.cfg.Device, peer.UUID); err != nil {
				return err
			}
			a = uintptr(peer.Addr)
		} else {
			var err error
			if a, err = m.cfg.Driver.IpcOpenMemHandle(cuda.IPCHandle(peer.Handle)); err != nil {
				return err
			}
			m.ipc = append(m.ipc, a)
		}
		m.addrs[peer.Rank] = a
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("p2p: rank %d opens memory of rank %d: %w", m.cfg.Self.Rank, peer.Rank, err)
	}
	return uint64(m.addrs[peer.Rank]), nil
}

// enable gives kernels of a device, whose context is current, access to the memory
// of another one. Access stays enabled: others of this process may rely on it too.
func enable(d cuda.Driver, self cuda.Device, peer string) error {
	n, err := d.DeviceGetCount()
	if err != nil {
		return err
	}
	for i := range n {
		dev, err := d.DeviceGet(i)
		if err != nil {
			return err
		}
		if u, err := uuid(d, dev); err != nil || u != peer {
			if err != nil {
				return err
			}
			continue
		}
		if dev == self {
			return nil
		}
		ctx, err := d.DevicePrimaryCtxRetain(dev)
		if err != nil {
			return err
		}
		err = d.CtxEnablePeerAccess(ctx)
		if errors.Is(err, cuda.ErrPeerAccessAlreadyEnabled) {
			err = nil
		}
		return errors.Join(err, d.DevicePrimaryCtxRelease(dev))
	}
	return fmt.Errorf("this process has no GPU %s", peer)
}

// Close closes the segments of peers and gives up this rank's own. No kernel of this process
// may use them any more. If the ranks have not parted, kernels of others may still write to this
// rank's segment.
func (m *Memory) Close(parted bool) error {
	if m.store == nil {
		return nil
	}
	var errs []error
	if len(m.ipc) > 0 {
		errs = append(errs, m.with(func() error {
			var errs []error
			for _, a := range m.ipc {
				errs = append(errs, m.cfg.Driver.IpcCloseMemHandle(a))
			}
			return errors.Join(errs...)
		}))
	}
	switch {
	case m.own == 0:
	case parted:
		m.store.Free(m.own)
	default:
		errs = append(errs, m.with(func() error { return m.store.Retire(m.own) }))
	}
	errs = append(errs, m.store.Close())
	m.store, m.ipc, m.own, m.addrs = nil, nil, 0, map[int]uintptr{}
	return errors.Join(errs...)
}
