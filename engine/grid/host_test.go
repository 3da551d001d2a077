package grid

import (
	"errors"
	"sync"
	"testing"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/stretchr/testify/require"
)

// onHost has the host's engine carry out the same, over channels.
func onHost(t testing.TB, s sched.Schedule, jobs []engine.Job) {
	t.Helper()
	n := len(jobs)
	m := make(mesh, n*n)
	for i := range m {
		m[i] = make(wire, 4096)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			p, err := engine.Compile(s, sched.Rank(r), corner{m, r, n})
			if err == nil {
				jobs[r].Program = p
				err = engine.New(transport.Limits{SlotBytes: 1 << 10, Slots: 4}).Run(&jobs[r])
			}
			errs[r] = err
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

type mesh []wire

type wire chan packet

type packet struct {
	b []byte
	s transport.Stamp
}

type corner struct {
	mesh
	rank, n int
}

func (c corner) Send(to sched.Rank) (transport.SendConn, error) {
	return &sender{wire: c.mesh[c.rank*c.n+int(to)]}, nil
}

func (c corner) Recv(from sched.Rank) (transport.RecvConn, error) {
	return c.mesh[int(from)*c.n+c.rank], nil
}

type sender struct {
	wire
	b []byte
}

func (s *sender) Reserve(n int) (mem.Region, error) {
	s.b = make([]byte, n)
	return mem.Host(s.b), nil
}

func (s *sender) Publish(stamp transport.Stamp) error {
	s.wire <- packet{s.b, stamp}
	return nil
}

func (w wire) Next() (mem.Region, transport.Stamp, error) {
	m := <-w
	return mem.Host(m.b), m.s, nil
}

func (w wire) Release() error { return nil }
func (w wire) Close() error   { return nil }
