package transport_test

import (
	"bytes"
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
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// accepts wants every request.
func accepts(*listen.Request) error { return nil }

// doorOf is where the listener of an Endpoint listens.
func doorOf(p *listen.Endpoint) string {
	door, _, _ := strings.Cut(p.Addr(), "#")
	return door
}

// Transports share a listener; a caller comes to the one that he asked for, or hears that it
// has gone; the last one closes the door.
func TestDoor(t *testing.T) {
	opened := 0
	open := func() (net.Listener, string, error) {
		opened++
		l, err := net.Listen("tcp", "127.0.0.1:0")
		return l, "zone", err
	}
	key := []byte("a secret of thirty-two bytes: ok")
	cfg := &transport.Config{Key: key}
	enter := func(name string) *listen.Endpoint {
		var p atomic.Pointer[listen.Endpoint]
		x, err := listen.Enter("test", open, nil, nil, func(c net.Conn) {
			for p.Load() == nil {
				time.Sleep(time.Millisecond)
			}
			if _, err := listen.Answer(c, p.Load(), cfg, "test", accepts); err == nil {
				io.WriteString(c, name)
				c.Close()
			}
		})
		require.NoError(t, err)
		p.Store(x)
		return x
	}
	hear := func(addr string) (string, error) {
		c, err := listen.Dial(t.Context(), listen.Target{Network: "tcp", Addr: addr}, key, "test", &listen.Request{}, nil)
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
	for name, p := range map[string]*listen.Endpoint{"a": a, "b": b} {
		got, err := hear(p.Addr())
		require.NoError(t, err)
		require.Equal(t, name, got)
	}
	a.Shut()
	a.Wait()
	_, err := hear(a.Addr())
	require.ErrorIs(t, err, transport.ErrClosed)
	silent, err := net.Dial("tcp", doorOf(b))
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
	enter := func() *listen.Endpoint {
		open := func() (net.Listener, string, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return l, "", err
		}
		p, err := listen.Enter("left", open, nil, auth.NewLog(lines), func(net.Conn) {})
		require.NoError(t, err)
		return p
	}
	here, left, other := enter(), enter(), enter()
	left.Shut()
	other.Shut()
	for _, p := range []*listen.Endpoint{left, left, left, other, other} {
		_, err := listen.Dial(t.Context(), listen.Target{Network: "tcp", Addr: p.Addr()}, nil, "test", &listen.Request{}, nil)
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	here.Shut()
	here.Wait() // so that nobody writes to the log any more
	require.Equal(t, 2, strings.Count(text.String(), "\n"), &text)
	require.Equal(t, 2, strings.Count(text.String(), `level=INFO msg="listener: a caller asked for nobody who is here"`),
		&text)
}
