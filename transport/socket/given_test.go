package socket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/securetest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// A hidden connection does not show that it is a TCP connection, like one of a service mesh.
type hidden struct{ net.Conn }

type hiding struct{ net.Listener }

func (l hiding) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return hidden{c}, err
}

func dialHidden(ctx context.Context, network, address string) (net.Conn, error) {
	addr, ok := strings.CutPrefix(address, "mesh:")
	if !ok {
		return nil, fmt.Errorf("no route to %q", address)
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return hidden{c}, err
}

// given gives each transport a listener of its own.
func given(t testing.TB, wrap func(net.Listener) net.Listener, s transport.Sockets, o Options) transporttest.Open {
	return func(tb testing.TB, cfg transport.Config) transport.Transport {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		tb.Cleanup(func() { l.Close() })
		own, o := s, o
		own.Listener, own.Address = wrap(l), s.Address+l.Addr().String()
		o.Sockets = &own
		return New(cfg, o)
	}
}

// Sockets of the program's own, of any type, are a transport like any other, with its TLS and with ours.
func TestGiven(t *testing.T) {
	tier.Long(t)
	hide := func(l net.Listener) net.Listener { return hiding{l} }
	mesh := transport.Sockets{Address: "mesh:", Dial: dialHidden}
	talk := func(t *testing.T, open transporttest.Open) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		require.NoError(t, exchanged(t, func(cfg transport.Config) transport.Transport { return open(t, cfg) },
			time.Minute, some))
	}
	t.Run("mesh", func(t *testing.T) {
		if open := given(t, hide, mesh, Options{}); tier.Full() {
			// Allocations of the program's connections are allowed.
			transporttest.Conformance(t, open, transporttest.Options{Loose: true, Allocs: 1000})
		} else {
			talk(t, open)
		}
	})
	t.Run("its own TLS", func(t *testing.T) {
		f := securetest.Make(t, "mesh")
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		require.NoError(t, err)
		cfg := &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
		seal := func(l net.Listener) net.Listener { return tls.NewListener(l, cfg) }
		dialer := &tls.Dialer{Config: cfg}
		talk(t, given(t, seal, transport.Sockets{Dial: dialer.DialContext}, Options{Streams: 2}))
	})
	t.Run("our TLS", func(t *testing.T) { talk(t, given(t, hide, mesh, Options{TLS: byKey})) })
	t.Run("TCP as it is", func(t *testing.T) {
		bare := func(l net.Listener) net.Listener { return l }
		talk(t, given(t, bare, transport.Sockets{}, Options{TLS: byKey, Streams: 2}))
	})
}

// Communicators share a listener, and the last one closes it.
func TestGivenShared(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &transport.Sockets{Listener: l}
	cfg := transport.Config{Key: []byte("a secret of thirty-two bytes: ok"), Limits: large}
	a, b := New(cfg, Options{Sockets: s}), New(cfg, Options{Sockets: s})
	first, err := a.Listen()
	require.NoError(t, err)
	second, err := b.Listen()
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Contains(t, string(second), "given="+l.Addr().String()+"#")
	require.NoError(t, a.Close())
	c, err := b.Dial(transport.Info{}, second) // to itself
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}

// Faults of Sockets are errors with a remedy.
func TestGivenWrong(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	cfg := transport.Config{Key: []byte("a secret of thirty-two bytes: ok"), Limits: large, Guard: new(fifo.Guard)}
	for address, want := range map[string]string{"two words": "without blanks", "a#b": "without blanks and #",
		strings.Repeat("x", 500): "at most 400 bytes"} {
		_, err := New(cfg, Options{Sockets: &transport.Sockets{Listener: l, Address: address}}).Listen()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "set Sockets.Address")
	}
	for _, address := range []string{"0.0.0.0:7", "[::]:7", ":7"} {
		_, err := New(cfg, Options{Sockets: &transport.Sockets{Listener: l, Address: address}}).Listen()
		require.ErrorContains(t, err, "is every interface: set Sockets.Address")
	}
	_, err = New(cfg, Options{Network: "unix", Sockets: new(transport.Sockets)}).Listen()
	require.ErrorContains(t, err, "not for unix sockets")

	var calls atomic.Int32
	enough := errors.New("enough of that")
	x := New(cfg, Options{Sockets: &transport.Sockets{Dial: func(context.Context, string, string) (net.Conn, error) {
		if calls.Add(1) == 2 {
			cfg.Guard.Abort(enough)
		}
		return nil, nil
	}}})
	defer x.Close()
	_, err = x.Dial(transport.Info{Rank: 3}, []byte("given=a:1#"+strings.Repeat("A", 26)))
	require.ErrorIs(t, err, enough)
	require.GreaterOrEqual(t, calls.Load(), int32(2), "it is tried again, until the Guard is looked at")
	_, err = (&transport.Sockets{Dial: dialHidden}).Dialer()(t.Context(), "tcp", "far:1")
	require.EqualError(t, err, `Config.Sockets.Dial("far:1"): no route to "far:1"`)
}
