package verbs

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/pace"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// A chip is memory for slots that stands in for a GPU's: a file, which plays the dma-buf, and the
// test's view of the file.
type chip struct {
	transport.Memory
	view []byte
	fd   int // -1 if the memory is the host's
}

// A placement is the kind of memory in which the slots of a test lie.
type placement struct {
	host, ordered bool
	shift         uintptr // from the test's view of a chip to its address, so that only devices can use the address
}

var placements = map[string]placement{
	"host": {host: true}, "GPU": {shift: 1 << 40}, "GPU in order": {shift: 1 << 40, ordered: true},
}

const chipOffset = 4096 // where a chip begins in its file

func (p placement) chip(n int) (*chip, error) {
	n = max(pages(n), page)
	if p.host {
		b, err := allocate(n)
		return &chip{transport.Memory{Region: mem.Host(b)}, b, -1}, err
	}
	fd, err := unix.MemfdCreate("chip", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	b, err := []byte(nil), unix.Ftruncate(fd, int64(chipOffset+n))
	if err == nil {
		b, err = unix.Mmap(fd, chipOffset, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	c := &chip{transport.Memory{Region: mem.Device(3, uintptr(unsafe.Pointer(&b[0]))+p.shift, n), Ordered: p.ordered},
		b, fd}
	c.DMABuf = func() (int, uint64, error) {
		fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
		return fd, chipOffset, err
	}
	return c, nil
}

func (c *chip) free() error {
	err := unix.Munmap(c.view)
	if c.fd >= 0 {
		err = errors.Join(err, unix.Close(c.fd))
	}
	return err
}

// see is the host's view of a part of the chip.
func (c *chip) see(r mem.Region) mem.Region {
	return mem.Host(c.view[r.Ptr()-c.Ptr():][:r.Len()])
}

// A placer is a Transport all of whose connections are placed, each in a chip of its own.
type placer struct {
	*Transport
	in    placement
	mu    sync.Mutex
	chips []*chip
}

func (p placement) open(cfg transport.Config, o Options) *placer {
	return &placer{Transport: New(cfg, o), in: p}
}

func (p placement) opener(o Options) transporttest.Open {
	return func(_ testing.TB, cfg transport.Config) transport.Transport { return p.open(cfg, o) }
}

func (p *placer) place() (*chip, error) {
	l := p.cfg.Limits
	c, err := p.in.chip(l.Slots * l.SlotBytes)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.chips = append(p.chips, c)
	p.mu.Unlock()
	_, err = p.Register(c.Memory)
	return c, err
}

func (p *placer) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	c, err := p.place()
	if err != nil {
		return nil, err
	}
	s, err := p.DialPlaced(peer, addr, c.Region)
	if err != nil {
		return nil, err
	}
	return &placedSend{s.(*sendConn), c}, nil
}

func (p *placer) Accept(peer transport.Info) (transport.RecvConn, error) {
	c, err := p.place()
	if err != nil {
		return nil, err
	}
	r, err := p.AcceptPlaced(peer, c.Region)
	if err != nil {
		return nil, err
	}
	return &placedRecv{r.(*recvConn), c}, nil
}

func (p *placer) Close() error {
	err := p.Transport.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.chips {
		err = errors.Join(err, c.free())
	}
	p.chips = nil
	return err
}

// A placedSend is used as other connections are: Reserve waits until the slot may be filled.
type placedSend struct {
	*sendConn
	chip *chip
}

func (s *placedSend) Reserve(n int) (mem.Region, error) {
	w := pace.Waiter{Guard: s.t.cfg.Guard}
	for {
		r, err := s.sendConn.Reserve(n)
		if err != nil {
			return r, err
		}
		if s.sendConn.Free() > 0 { // or the connection has ended: Publish returns the reason
			return s.chip.see(r), nil
		}
		sleep, err := w.Pause()
		if err != nil {
			return r, err
		}
		if sleep {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// Free waits until the receiver has sent the address of its slots.
func (s *placedSend) Free() int {
	for end := time.Now().Add(5 * time.Second); s.there.Load() == nil && time.Now().Before(end); {
		runtime.Gosched()
	}
	return s.sendConn.Free()
}

type placedRecv struct {
	*recvConn
	chip *chip
}

func (r *placedRecv) Next() (mem.Region, transport.Stamp, error) {
	b, stamp, err := r.recvConn.Next()
	if err != nil {
		return b, stamp, err
	}
	return r.chip.see(b), stamp, nil
}

func TestPlaced(t *testing.T) {
	t.Run("GPU", func(t *testing.T) {
		transporttest.Placed(t, onFabric(rdma.NewFabric(t, "fx0", "fx1"), Options{Rails: 2}), transporttest.FileSlots)
	})
	t.Run("host, nothing by value", func(t *testing.T) {
		f := rdma.NewFabric(t, "fx0")
		f.NoInline = true
		transporttest.Placed(t, onFabric(f, Options{}), transporttest.HostSlots)
	})
}

// Placed connections pass the suite of all transports.
func TestPlacedConformance(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1", "fx2")
	transporttest.Conformance(t, placements["GPU"].opener(Options{Verbs: f, Rails: 3}))
}
