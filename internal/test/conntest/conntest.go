// Package conntest makes ranks of one process and connections between them, for tests of transports.
package conntest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/transport"
)

// A Rank is one member of a communicator.
type Rank[T transport.Transport] struct {
	Transport T
	Config    transport.Config
	Addr      []byte // after Listen
}

// Config is that of a rank.
func Config(rank int, l transport.Limits) transport.Config {
	return transport.Config{
		Self:   transport.Info{Rank: rank, Host: "host", Process: "process"},
		Key:    []byte("a secret of thirty-two bytes: ok"),
		Limits: l,
		Guard:  new(fifo.Guard),
		Log:    slog.New(slog.DiscardHandler),
	}
}

// Ranks are n that listen, closed at the end of the test.
func Ranks[T transport.Transport](tb testing.TB, n int, l transport.Limits, open func(transport.Config) T) []*Rank[T] {
	tb.Helper()
	all := make([]*Rank[T], n)
	for i := range all {
		r := &Rank[T]{Config: Config(i, l)}
		r.Transport = open(r.Config)
		tb.Cleanup(func() { require.NoError(tb, r.Transport.Close()) })
		var err error
		r.Addr, err = r.Transport.Listen()
		require.NoError(tb, err)
		all[i] = r
	}
	return all
}

// Dial dials another rank.
func (r *Rank[T]) Dial(to *Rank[T]) (transport.SendConn, error) {
	return r.Transport.Dial(to.Config.Self, to.Addr)
}

// Accept accepts what another rank has dialled.
func (r *Rank[T]) Accept(from *Rank[T]) (transport.RecvConn, error) {
	return r.Transport.Accept(from.Config.Self)
}

// TryConnect makes a connection from a to b.
func TryConnect[T transport.Transport](a, b *Rank[T]) (send transport.SendConn, recv transport.RecvConn, err error) {
	abort := func() error {
		a.Config.Guard.Abort(errOther)
		b.Config.Guard.Abort(errOther)
		return nil
	}
	err = both(func() (err error) {
		send, err = a.Dial(b)
		return err
	}, func() (err error) {
		recv, err = b.Accept(a)
		return err
	}, abort)
	return send, recv, err
}

var errOther = errors.New("the other end has failed")

// Connect makes a connection from a to b.
func Connect[T transport.Transport](tb testing.TB, a, b *Rank[T]) (transport.SendConn, transport.RecvConn) {
	tb.Helper()
	send, recv, err := TryConnect(a, b)
	require.NoError(tb, err)
	return send, recv
}

// Pair is a connection between two new ranks.
func Pair[T transport.Transport](tb testing.TB, l transport.Limits, open func(transport.Config) T) (transport.SendConn,
	transport.RecvConn) {
	tb.Helper()
	r := Ranks(tb, 2, l, open)
	return Connect(tb, r[0], r[1])
}

// Run has the ends of a connection do something at once. When one of them fails, Run closes the connection, so that the
// other does not wait for ever.
func Run(send, recv io.Closer, sends, receives func() error) error {
	return both(sends, receives, func() error { return errors.Join(send.Close(), recv.Close()) })
}

// both calls two functions at once, and end when one of them fails. It returns the errors of both.
func both(f, g, end func() error) error {
	var errs [2]error
	var all sync.WaitGroup
	for i, f := range []func() error{f, g} {
		all.Go(func() {
			if errs[i] = f(); errs[i] != nil {
				_ = end()
			}
		})
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

// Stamp goes with a message of n bytes and a number.
func Stamp(n int, number uint64) transport.Stamp { return transport.Stamp{number, ^uint64(n)} }

// Put sends a message of n bytes.
func Put(c transport.SendConn, n int, number uint64) error {
	b, err := c.Reserve(n)
	if err != nil {
		return err
	}
	if b.Len() != n {
		return fmt.Errorf("reserve gave %d bytes, not %d", b.Len(), n)
	}
	payload.Fill(b.Bytes(), number)
	return c.Publish(Stamp(n, number))
}

// Get receives a message that Put has sent.
func Get(c transport.RecvConn, n int, number uint64) error {
	b, stamp, err := c.Next()
	if err != nil {
		return err
	}
	if err := Verify(b.Bytes(), stamp, n, number); err != nil {
		return err
	}
	return c.Release()
}

// Verify returns how a message differs from the one of n bytes and a number, nil if it does not.
func Verify(b []byte, stamp transport.Stamp, n int, number uint64) error {
	if stamp != Stamp(n, number) {
		return fmt.Errorf("stamp %x, not %x", stamp, Stamp(n, number))
	}
	if len(b) != n {
		return fmt.Errorf("message %d has %d bytes, not %d", number, len(b), n)
	}
	want := make([]byte, n)
	if payload.Fill(want, number); bytes.Equal(want, b) {
		return nil
	}
	for i := range b {
		if b[i] != want[i] {
			return fmt.Errorf("byte %d of message %d of %d bytes is %#x, not %#x", i, number, n, b[i], want[i])
		}
	}
	return errors.New("the message changes while it is read")
}

// PutAll sends messages of these sizes.
func PutAll(c transport.SendConn, from, to int, size func(i int) int) error {
	for i := from; i < to; i++ {
		if err := Put(c, size(i), uint64(i)); err != nil {
			return fmt.Errorf("send %d: %w", i, err)
		}
	}
	return nil
}

// GetAll receives messages that PutAll has sent.
func GetAll(c transport.RecvConn, from, to int, size func(i int) int) error {
	for i := from; i < to; i++ {
		if err := Get(c, size(i), uint64(i)); err != nil {
			return fmt.Errorf("receive %d: %w", i, err)
		}
	}
	return nil
}

// Flow sends messages of these sizes over a connection.
func Flow(send transport.SendConn, recv transport.RecvConn, messages int, size func(i int) int) error {
	return Run(send, recv, func() error { return PutAll(send, 0, messages, size) },
		func() error { return GetAll(recv, 0, messages, size) })
}
