package ringo

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

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/secure/securetest"
)

// A mesh is listeners and diallers under a TLS of the program's own, and how often they were used.
type mesh struct {
	config   *tls.Config
	accepted atomic.Int32
	dialled  atomic.Int32
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
	return (&tls.Dialer{Config: m.config}).DialContext(ctx, network, address)
}

// openAll opens a communicator of so many ranks, each with its own Config.
func openAll(t *testing.T, n int, cfg func(r int) Config) (comms []*Comm, errs []error) {
	comms, errs = make([]*Comm, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			c := cfg(r)
			c.Rank, c.Size = r, n
			comms[r], errs[r] = Open(t.Context(), c)
		})
	}
	all.Wait()
	t.Cleanup(func() {
		for _, c := range comms {
			if c != nil {
				require.NoError(t, c.Close())
			}
		}
	})
	return comms, errs
}

// Ranks meet and talk over the program's own sockets alone; those that are left after a failure meet there again.
func TestSockets(t *testing.T) {
	m := newMesh(t)
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Listener: m.listen(t)})
	require.NoError(t, err)
	comms, errs := openAll(t, 3, func(int) Config {
		return Config{ID: &id, Transport: "socket", Sockets: &Sockets{Listener: m.listen(t), Dial: m.dial}}
	})
	noErrors(t, errs)
	work := func(comms []*Comm) {
		t.Helper()
		noErrors(t, each(comms, func(c *Comm) error {
			if c == nil {
				return nil
			}
			x := make([]int64, 100_000)
			x[99_999] = 1
			err := AllReduce(c, x, Sum)
			if err == nil && x[99_999] != int64(c.Size()) {
				err = errors.New("wrong sum")
			}
			return err
		}))
	}
	work(comms)
	require.Equal(t, m.dialled.Load(), m.accepted.Load())
	require.Greater(t, m.dialled.Load(), int32(3+2), "to the rendezvous, and to each other")

	bootstrap.Drop(comms[2].group)
	left := make([]*Comm, 3)
	noErrors(t, each(comms, func(c *Comm) (err error) {
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
	comms, errs := openAll(t, 2, func(int) Config {
		return Config{ID: &id, Transport: "socket", TLS: true, Sockets: &Sockets{Listener: listen()}}
	})
	noErrors(t, errs)
	noErrors(t, each(comms, func(c *Comm) error { return AllReduce(c, make([]int64, 100_000), Sum) }))
	require.Contains(t, comms[0].Paths()[0], "the program's listener) over TLS")
}

// Ranks that differ hear of it; a dial that fails is named.
func TestSocketsWrong(t *testing.T) {
	id, err := NewID("127.0.0.1:0")
	require.NoError(t, err)
	_, errs := openAll(t, 2, func(r int) Config {
		cfg := Config{ID: &id}
		if r == 1 {
			cfg.Sockets = new(Sockets)
		}
		return cfg
	})
	for _, err := range errs {
		require.ErrorContains(t, err, "give all ranks the same Config.Sockets")
	}
	id, err = NewID("127.0.0.1:0")
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	nowhere := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no such service") }
	_, err = Open(t.Context(), Config{ID: &id, Rank: 1, Size: 2, JoinTimeout: 50 * time.Millisecond, Sockets: &Sockets{Dial: nowhere}})
	require.ErrorContains(t, err, `Config.Sockets.Dial("127.0.0.1:`)
	require.ErrorContains(t, err, "no such service")
	require.ErrorContains(t, err, "RINGO_JOIN_TIMEOUT")
}
