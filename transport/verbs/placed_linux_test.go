package verbs

import (
	"runtime"
	"testing"
	"time"

	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/pace"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// A placement makes memory for the slots of a test.
type placement func(tb testing.TB, bytes int) transporttest.Slots

var placements = map[string]placement{
	"host": transporttest.HostSlots, "GPU": transporttest.FileSlots,
	"GPU in order": func(tb testing.TB, bytes int) transporttest.Slots {
		s := transporttest.FileSlots(tb, bytes)
		s.Ordered = true
		return s
	},
}

// A placer is a Transport all of whose connections are placed, each in memory of its own.
type placer struct {
	*Transport
	in placement
	tb testing.TB
}

func (p placement) open(tb testing.TB, cfg transport.Config, o Options) *placer {
	return &placer{New(cfg, o), p, tb}
}

func (p placement) opener(o Options) transporttest.Open {
	return func(tb testing.TB, cfg transport.Config) transport.Transport { return p.open(tb, cfg, o) }
}

func (p *placer) place() (transporttest.Slots, error) {
	l := p.cfg.Limits
	m := p.in(p.tb, max(pages(l.Slots*l.SlotBytes), page))
	_, err := p.Register(m.Memory)
	return m, err
}

// see is the host's view of a part of a connection's memory.
func see(m transporttest.Slots, r mem.Region) mem.Region {
	return mem.Host(m.View[r.Ptr()-m.Ptr():][:r.Len()])
}

func (p *placer) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	m, err := p.place()
	if err != nil {
		return nil, err
	}
	s, err := p.DialPlaced(peer, addr, m.Region)
	if err != nil {
		return nil, err
	}
	return &placedSend{s.(*sendConn), m}, nil
}

func (p *placer) Accept(peer transport.Info) (transport.RecvConn, error) {
	m, err := p.place()
	if err != nil {
		return nil, err
	}
	r, err := p.AcceptPlaced(peer, m.Region)
	if err != nil {
		return nil, err
	}
	return &placedRecv{r.(*recvConn), m}, nil
}

// A placedSend is used as other connections are: Reserve waits until the slot may be filled.
type placedSend struct {
	*sendConn
	memory transporttest.Slots
}

func (s *placedSend) Reserve(n int) (mem.Region, error) {
	w := pace.Waiter{Guard: s.t.cfg.Guard}
	for {
		r, err := s.sendConn.Reserve(n)
		if err != nil {
			return r, err
		}
		if s.sendConn.Free() > 0 { // or the connection has ended: Publish returns the reason
			return see(s.memory, r), nil
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
	memory transporttest.Slots
}

func (r *placedRecv) Next() (mem.Region, transport.Stamp, error) {
	b, stamp, err := r.recvConn.Next()
	if err != nil {
		return b, stamp, err
	}
	return see(r.memory, b), stamp, nil
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
