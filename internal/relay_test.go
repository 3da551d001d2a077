package internal_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/relay"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// between starts a relay before a listener, and gives both ends of the first connection, and of the next ones.
func between(t *testing.T, r *relay.Relay) (caller, called net.Conn, next func() (caller, called net.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr, err := r.Start(l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(r.Close)
	t.Cleanup(func() { l.Close() })
	next = func() (caller, called net.Conn) {
		caller, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		called, err = l.Accept()
		require.NoError(t, err)
		for _, c := range []net.Conn{caller, called} {
			require.NoError(t, c.SetDeadline(time.Now().Add(tier.Patience)))
			t.Cleanup(func() { c.Close() })
		}
		return caller, called
	}
	caller, called = next()
	return caller, called, next
}

// read is the bytes of a connection until it ends or n have come.
func read(c net.Conn, n int) ([]byte, error) {
	b := make([]byte, n)
	n, err := io.ReadFull(c, b)
	return b[:n], err
}

// quiet reports whether a connection brings nothing for a moment.
func quiet(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(tier.Patience)))
}

func sequence(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// Bytes arrive, in pieces and late too, and each direction ends by itself.
func TestRelayPassesOn(t *testing.T) {
	for _, r := range []*relay.Relay{{}, {Piece: 100, Delay: time.Microsecond}} {
		caller, called, _ := between(t, r)
		data := sequence(200_000)
		for _, way := range [][2]net.Conn{{caller, called}, {called, caller}} {
			go func() {
				_, _ = way[0].Write(data)
				_ = way[0].(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(way[1])
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
		}
	}
}

// A fault is at its byte, in its direction, on the first connection.
func TestRelayFirst(t *testing.T) {
	data := sequence(64)
	for _, f := range []relay.Fault{
		{Kind: relay.Cut, At: 10}, {Kind: relay.Cut, Back: true, At: 10}, {Kind: relay.Half, At: 10},
		{Kind: relay.Half, Back: true}, {Kind: relay.Corrupt, At: 10}, {Kind: relay.Corrupt, Back: true, At: 63},
	} {
		caller, called, _ := between(t, &relay.Relay{Piece: 7, First: f})
		good, bad := [2]net.Conn{called, caller}, [2]net.Conn{caller, called}
		if f.Back {
			good, bad = bad, good
		}
		_, err := good[0].Write(data)
		require.NoError(t, err)
		got, err := read(good[1], len(data))
		require.NoError(t, err)
		require.Equal(t, data, got, "%v leaves the other direction", f)
		_, _ = bad[0].Write(data)
		switch f.Kind {
		case relay.Cut:
			got, err = read(bad[1], len(data))
			require.Equal(t, data[:10], got)
			require.Error(t, err)
			_, err = read(bad[0], 1)
			require.Error(t, err, "it ends for both")
		case relay.Half:
			got, err = read(bad[1], f.At)
			require.NoError(t, err)
			require.Equal(t, data[:f.At], got)
			quiet(t, bad[1])
			_, err = bad[0].Write(data)
			require.NoError(t, err)
		case relay.Corrupt:
			want := sequence(64)
			want[f.At] ^= 0x10
			got, err = read(bad[1], len(data))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	caller, _, next := between(t, &relay.Relay{First: relay.Fault{Kind: relay.Cut}})
	_, err := caller.Write(data)
	require.NoError(t, err)
	_, err = read(caller, 1)
	require.Error(t, err)
	second, _ := next()
	_, err = second.Write(data)
	require.NoError(t, err)
	quiet(t, second)
}

// A condition holds as soon as it is set, also for bytes on their way.
func TestRelayConditions(t *testing.T) {
	r := &relay.Relay{}
	caller, called, _ := between(t, r)
	send := func(b byte) {
		_, err := caller.Write([]byte{b})
		require.NoError(t, err)
	}
	next := func() byte {
		b, err := read(called, 1)
		require.NoError(t, err)
		return b[0]
	}
	r.Set(relay.Condition{Held: true})
	send(1)
	quiet(t, called)
	r.Set(relay.Condition{})
	require.EqualValues(t, 1, next())
	r.Set(relay.Condition{Lost: true})
	send(2)
	quiet(t, called)
	r.Set(relay.Condition{})
	send(3)
	require.EqualValues(t, 3, next())
	r.Corrupt()
	send(4)
	require.EqualValues(t, 4^0x10, next())
	send(5)
	require.EqualValues(t, 5, next())

	start := time.Now()
	r.Set(relay.Condition{Delay: 30 * time.Millisecond})
	send(6)
	require.EqualValues(t, 6, next())
	require.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
	r.Set(relay.Condition{Rate: 100_000})
	start = time.Now()
	_, err := caller.Write(sequence(5000))
	require.NoError(t, err)
	got, err := read(called, 5000)
	require.NoError(t, err)
	require.Equal(t, sequence(5000), got)
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
	r.Set(relay.Condition{Rate: 1})
	send(7)
	quiet(t, called)
	r.Set(relay.Condition{})
	require.EqualValues(t, 7, next())
}

// A sender to an end that reads no more is reset, cut connections end for both sides, and a relay whose other side is
// gone refuses callers.
func TestRelayEnds(t *testing.T) {
	r := &relay.Relay{}
	caller, called, next := between(t, r)
	require.NoError(t, called.Close())
	var err error
	for err == nil {
		_, err = caller.Write(make([]byte, 1<<16))
	}
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	second, there := next()
	quiet(t, second)
	_, err = second.Write([]byte{1})
	require.NoError(t, err)
	_, err = read(there, 1) // the relay has both ends
	require.NoError(t, err)
	r.Cut()
	_, err = read(second, 1)
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)

	away := &relay.Relay{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr, err := away.Start(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	first, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, first.SetDeadline(time.Now().Add(tier.Patience)))
	_, err = read(first, 1)
	require.ErrorIs(t, err, io.EOF)
	first.Close()
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	away.Close()
	away.Close()
	late, other := net.Pipe() // has been accepted before, and comes now
	away.Serve(late)
	_, err = other.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	held := &relay.Relay{}
	caller, _, _ = between(t, held)
	held.Set(relay.Condition{Held: true})
	_, err = caller.Write([]byte{1})
	require.NoError(t, err)
	held.Close() // bytes that are held do not keep Close waiting
	_, err = read(caller, 1)
	require.Error(t, err)
}
