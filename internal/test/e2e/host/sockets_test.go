package host

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/securetest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A mesh is listeners and diallers under a TLS of the program's own, and how often they were used.
type mesh struct {
	config   *tls.Config
	accepted atomic.Int32
	dialled  atomic.Int32
	conns    sync.Map // that have been dialled
}

func newMesh(t *testing.T) *mesh {
	f := securetest.Make(t, "mesh")
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	require.NoError(t, err)
	return &mesh{config: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}}
}

type meshListener struct {
	net.Listener
	mesh *mesh
}

func (l meshListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mesh.accepted.Add(1)
	}
	return c, err
}

func (m *mesh) listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return meshListener{tls.NewListener(l, m.config), m}
}

func (m *mesh) dial(ctx context.Context, network, address string) (net.Conn, error) {
	m.dialled.Add(1)
	c, err := (&tls.Dialer{Config: m.config}).DialContext(ctx, network, address)
	m.conns.Store(c, err)
	return c, err
}

// die ends the dialled connections, as the death of the dialling process does.
func (m *mesh) die() {
	m.conns.Range(func(c, err any) bool {
		if err == nil {
			c.(net.Conn).Close()
		}
		return true
	})
}

// Ranks meet and talk over the program's own sockets alone; those that are left after a failure meet there again.
func TestSockets(t *testing.T) {
	m := newMesh(t)
	last := &mesh{config: m.config} // rank 2's
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Listener: m.listen(t)})
	require.NoError(t, err)
	comms, errs := commtest.OpenAll(t, 3, func(r int) ringo.Config {
		dial := m.dial
		if r == 2 {
			dial = last.dial
		}
		return ringo.Config{ID: &id, Transport: "socket", Sockets: &ringo.Sockets{Listener: m.listen(t), Dial: dial}}
	})
	commtest.NoErrors(t, errs)
	work := func(comms []*ringo.Comm) {
		t.Helper()
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
			if c == nil {
				return nil
			}
			x := make([]int64, 100_000)
			x[99_999] = 1
			err := ringo.AllReduce(c, x, ringo.Sum)
			if err == nil && x[99_999] != int64(c.Size()) {
				err = errors.New("wrong sum")
			}
			return err
		}))
	}
	work(comms)
	dialled := m.dialled.Load() + last.dialled.Load()
	require.Equal(t, dialled, m.accepted.Load())
	require.Greater(t, dialled, int32(3+2), "to the rendezvous, and to each other")

	last.die()
	left := make([]*ringo.Comm, 3)
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) (err error) {
		if c.Rank() < 2 {
			left[c.Rank()], err = c.Shrink(t.Context())
		}
		return err
	}))
	before := m.dialled.Load()
	work(left)
	require.Greater(t, m.dialled.Load(), before)
	for _, c := range left[:2] {
		require.NoError(t, c.Close())
	}
}

// A listener needs no dialler, its address may be of IPv6, and our TLS goes over it.
func TestSocketsIPv6(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "[::1]:0")
		if err != nil {
			t.Skip(err)
		}
		return l
	}
	at := listen()
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Listener: at})
	require.NoError(t, err)
	require.Equal(t, at.Addr().String(), id.Addr())
	comms, errs := commtest.OpenAll(t, 2, func(int) ringo.Config {
		return ringo.Config{ID: &id, Transport: "socket", TLS: true, Sockets: &ringo.Sockets{Listener: listen()}}
	})
	commtest.NoErrors(t, errs)
	commtest.NoErrors(t, commtest.Each(comms,
		func(c *ringo.Comm) error { return ringo.AllReduce(c, make([]int64, 100_000), ringo.Sum) }))
	require.Contains(t, comms[0].Paths()[0], "the program's listener) over TLS")
}

// Ranks that differ hear of it; a dial that fails is named.
func TestSocketsWrong(t *testing.T) {
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	_, errs := commtest.OpenAll(t, 2, func(r int) ringo.Config {
		cfg := ringo.Config{ID: &id}
		if r == 1 {
			cfg.Sockets = new(ringo.Sockets)
		}
		return cfg
	})
	for _, err := range errs {
		require.ErrorContains(t, err, "give all ranks the same Config.Sockets")
	}
	id, err = ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	nowhere := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no such service") }
	_, err = ringo.Open(t.Context(), ringo.Config{ID: &id, Rank: 1, Size: 2, JoinTimeout: 50 * time.Millisecond,
		Sockets: &ringo.Sockets{Dial: nowhere}})
	require.ErrorContains(t, err, `Config.Sockets.Dial("127.0.0.1:`)
	require.ErrorContains(t, err, "no such service")
	require.ErrorContains(t, err, "RINGO_JOIN_TIMEOUT")
}

// Messages that a rank has sent before its Close arrive, however long the receiver is busy.
func TestSendThenClose(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) { t.Parallel(); sendThenClose(t, network) })
	}
}

func sendThenClose(t *testing.T, network string) {
	comms, errs := commtest.OpenAll(t, 2, func(int) ringo.Config {
		return ringo.Config{SlotBytes: 4 << 20, Transport: "socket", SocketNetwork: network, Timeout: tier.Patience}
	})
	require.NoError(t, errors.Join(errs...))
	const messages = 7
	closed := make(chan error, 1)
	go func() {
		for i := range messages {
			x := make([]byte, 3900<<10)
			x[5] = byte(i)
			if err := ringo.Send(comms[0], x, 1); err != nil {
				closed <- err
				return
			}
		}
		closed <- comms[0].Close()
	}()
	time.Sleep(1500 * time.Millisecond) // longer than a second, when the group hears of the Close
	x := make([]byte, 3900<<10)
	for i := range messages {
		require.NoError(t, ringo.Recv(comms[1], x, 0))
		require.Equal(t, byte(i), x[5])
	}
	require.NoError(t, <-closed)
}
