package verbs

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/transport"
)

// A member is a rank of a test.
type member struct {
	transport.Transport
	cfg  transport.Config
	addr []byte
}

// members are ranks that listen.
func members(t testing.TB, n int, l transport.Limits, open func(transport.Config) transport.Transport) (all []*member) {
	for i := range n {
		cfg := transport.Config{
			Self: transport.Info{Rank: i, Host: "h", Process: fmt.Sprint(i)}, Key: []byte("a secret of thirty-two bytes: ok"),
			Limits: l, Guard: new(fifo.Guard),
		}
		m := &member{Transport: open(cfg), cfg: cfg}
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		var err error
		m.addr, err = m.Listen()
		require.NoError(t, err)
		all = append(all, m)
	}
	return all
}

// pairOf is a connection between two new ranks.
func pairOf(t testing.TB, l transport.Limits, open func(transport.Config) transport.Transport) (transport.SendConn,
	transport.RecvConn) {
	m := members(t, 2, l, open)
	return join(t, m[0], m[1])
}

func join(t testing.TB, a, b *member) (s transport.SendConn, r transport.RecvConn) {
	var g errgroup.Group
	g.Go(func() (err error) {
		s, err = a.Dial(b.cfg.Self, b.addr)
		return err
	})
	g.Go(func() (err error) {
		r, err = b.Accept(a.cfg.Self)
		return err
	})
	require.NoError(t, g.Wait())
	return s, r
}

// flow sends messages of all sizes and calls between before each. It returns the errors
// of both ends.
func flow(s transport.SendConn, r transport.RecvConn, messages int, between func(i int)) (sent, received error) {
	done := make(chan error)
	go func() { done <- receiveAll(r, 0, messages) }()
	sent = sendAll(s, 0, messages, between)
	return sent, <-done
}

func (c *conn) most() int { return c.shape.max }

func (c *conn) first() *rail { return c.rails[0] }

func sizeOf(i, max int) int { return i * 37 % (max + 1) }

func sendAll(s transport.SendConn, from, to int, between func(i int)) error {
	max := s.(interface{ most() int }).most()
	for i := from; i < to; i++ {
		if between != nil {
			between(i)
		}
		b, err := s.Reserve(sizeOf(i, max))
		if err != nil {
			return fmt.Errorf("reserve %d: %w", i, err)
		}
		payload.Fill(b.Bytes(), uint64(i))
		if err := s.Publish(transport.Stamp{uint64(i)}); err != nil {
			return fmt.Errorf("publish %d: %w", i, err)
		}
	}
	return nil
}

func receiveAll(r transport.RecvConn, from, to int) error {
	max := r.(interface{ most() int }).most()
	want := make([]byte, max)
	for i := from; i < to; i++ {
		b, stamp, err := r.Next()
		if err != nil {
			return fmt.Errorf("next %d: %w", i, err)
		}
		n := sizeOf(i, max)
		payload.Fill(want[:n], uint64(i))
		if stamp[0] != uint64(i) || !bytes.Equal(want[:n], b.Bytes()) {
			return fmt.Errorf("message %d of %d bytes is not what was sent", i, n)
		}
		if err := r.Release(); err != nil {
			return fmt.Errorf("release %d: %w", i, err)
		}
	}
	return nil
}
