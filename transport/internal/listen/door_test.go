package listen

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/transport"
)

// Transports share a listener; a caller comes to the one that he asked for, or hears that it
// has gone; the last one closes the door.
func TestDoor(t *testing.T) {
	opened := 0
	open := func() (net.Listener, string, error) {
		opened++
		l, err := net.Listen("tcp", "127.0.0.1:0")
		return l, "zone", err
	}
	enter := func(name string) *Endpoint {
		var p atomic.Pointer[Endpoint]
		x, err := Enter("test", open, nil, nil, func(c net.Conn) {
			for p.Load() == nil {
				time.Sleep(time.Millisecond)
			}
			if p.Load().Trust(c) {
				io.WriteString(c, name)
				c.Close()
			}
		})
		require.NoError(t, err)
		p.Store(x)
		return x
	}
	hear := func(addr string) (string, error) {
		c, err := reach(context.Background(), Target{Network: "tcp", Addr: addr})
		if err != nil {
			return "", err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		return string(b), err
	}
	a, b := enter("a"), enter("b")
	require.Equal(t, 1, opened)
	require.Equal(t, "zone", b.Zone())
	for name, p := range map[string]*Endpoint{"a": a, "b": b} {
		got, err := hear(p.Addr())
		require.NoError(t, err)
		require.Equal(t, name, got)
	}
	a.Shut()
	a.Wait()
	_, err := hear(a.Addr())
	require.ErrorIs(t, err, transport.ErrClosed)
	silent, err := net.Dial("tcp", b.door.listener.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	b.Shut()
	b.Wait()
	require.True(t, b.Closed())
	_, err = hear(b.Addr())
	require.ErrorIs(t, err, transport.ErrClosed)
	c := enter("c")
	require.Equal(t, 2, opened)
	c.Shut()
	c.Wait()
}

// A call to an Endpoint that has left is refused each time, and the log says so once: no harm was done.
func TestDoorLeft(t *testing.T) {
	var text bytes.Buffer
	lines := slog.New(slog.NewTextHandler(&text, nil))
	enter := func() *Endpoint {
		open := func() (net.Listener, string, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return l, "", err
		}
		p, err := Enter("left", open, nil, auth.NewLog(lines), func(net.Conn) {})
		require.NoError(t, err)
		return p
	}
	here, left, other := enter(), enter(), enter()
	left.Shut()
	other.Shut()
	for _, p := range []*Endpoint{left, left, left, other, other} {
		_, err := reach(t.Context(), Target{Network: "tcp", Addr: p.Addr()})
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	here.Shut()
	here.Wait() // so that nobody writes to the log any more
	require.Equal(t, 2, strings.Count(text.String(), "\n"), &text)
	require.Equal(t, 2, strings.Count(text.String(), `level=INFO msg="listener: a caller asked for nobody who is here"`),
		&text)
}
