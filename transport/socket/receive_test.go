package socket

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/internal/test/transcript"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

var testKey = []byte("a secret of thirty-two bytes: ok")

// made is a transport of rank, with its log.
func made(t testing.TB, rank int, l transport.Limits, o Options) (*Transport, *transcript.Transcript) {
	log := new(transcript.Transcript)
	tr := New(transport.Config{
		Self:   transport.Info{Rank: rank, Host: "host"},
		Key:    testKey,
		Limits: l,
		Guard:  new(fifo.Guard),
		Spin:   true,
		Log:    slog.New(slog.NewTextHandler(log, nil)),
	}, o)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr, log
}

// lines is how many lines a log has.
func lines(log *transcript.Transcript) int { return strings.Count(log.String(), "\n") }

// listening is a transport of rank that listens, with its address and log.
func listening(t testing.TB, rank int, l transport.Limits, o Options) (*Transport, []byte, *transcript.Transcript) {
	tr, log := made(t, rank, l, o)
	addr, err := tr.Listen()
	require.NoError(t, err)
	return tr, addr, log
}

// pair is a connection from rank 2 to rank 1.
func pair(t testing.TB, l transport.Limits, o Options) (*sendConn, *recvConn) {
	a, _, _ := listening(t, 2, l, o)
	b, addr, _ := listening(t, 1, l, o)
	s, err := a.Dial(b.cfg.Self, addr)
	require.NoError(t, err)
	r, err := b.Accept(a.cfg.Self)
	require.NoError(t, err)
	return s.(*sendConn), r.(*recvConn)
}

var (
	onLoopback = Options{Network: "tcp", IfName: "lo"}
	small      = transport.Limits{SlotBytes: 300, Slots: 4}
)

// tryCall makes one stream of a connection from rank 3 to rank 1.
func tryCall(t *testing.T, addr []byte, p part) (net.Conn, error) {
	where, err := parseAddress(addr)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := &listen.Request{From: 3, To: 1, Limits: small, Rest: p.bytes()}
	return listen.Dial(ctx, listen.Target{Network: "tcp", Addr: where.TCP[0].String()}, testKey, protocol, r, nil)
}

func call(t *testing.T, addr []byte, p part) net.Conn {
	c, err := tryCall(t, addr, p)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestStrangers: a stranger who finds the port is dropped with one line in the log,
// and silent strangers do not keep others waiting.
func TestStrangers(t *testing.T) {
	b, addr, log := listening(t, 1, small, onLoopback)
	where, err := parseAddress(addr)
	require.NoError(t, err)
	stranger := func() net.Conn {
		c, err := net.Dial("tcp", where.TCP[0].At.String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, words := range []string{
		"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a scanner of some length\r\n\r\n.....................",
		strings.Repeat("\x00", 1<<16), "",
	} {
		before := lines(log)
		c := stranger()
		c.Write([]byte(words))
		c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(2 * tier.Patience))
		for err = nil; err == nil; {
			_, err = c.Read(make([]byte, 4096))
		}
		require.NotErrorIs(t, err, net.ErrClosed)
		require.Eventually(t, func() bool { return lines(log) == before+1 }, 20*time.Second, time.Millisecond)
	}
	for range 2*listen.MaxPending + 13 {
		stranger()
	}
	a, _, _ := listening(t, 2, small, onLoopback)
	start := time.Now()
	_, err = a.Dial(b.cfg.Self, addr)
	require.NoError(t, err)
	_, err = b.Accept(a.cfg.Self)
	require.NoError(t, err)
	require.Less(t, time.Since(start), listen.HandshakeTime*9/10)
	require.Less(t, lines(log), 30, "a stranger does not fill the log")
}

// TestDialErrors: the error of Dial says what is wrong with a peer.
func TestDialErrors(t *testing.T) {
	_, addr, _ := listening(t, 1, small, onLoopback)
	for _, c := range []struct {
		name   string
		rank   int
		limits transport.Limits
		o      Options
		addr   []byte
		want   string
	}{
		{"other rank", 7, small, onLoopback, addr, "refused: rank 7 was dialled, but this is rank 1"},
		{"other limits", 1, transport.Limits{SlotBytes: 301, Slots: 4}, onLoopback, addr,
			"refused: rank 2 has queues of 4 slots of 301 bytes, rank 1 of 4 slots of 300 bytes: set the same everywhere"},
		{"garbage", 1, small, onLoopback, []byte("hello"), `word "hello"`},
		{"no way", 1, small, Options{Network: "unix"}, addr, `it offers no socket that this rank may use (network "unix")`},
		{"options", 1, small, Options{Network: "udp"}, addr, `network "udp": want tcp, unix or nothing`},
		{"family", 1, small, Options{Family: 5}, addr, "address family 5: want 4, 6 or 0"},
		{"streams", 1, small, Options{Streams: -1}, addr, "-1 streams: want 1 to 64"},
		{"limits", 1, transport.Limits{SlotBytes: 1, Slots: 1}, onLoopback, addr, "want at least 2 slots"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := New(transport.Config{Self: transport.Info{Rank: 2, Host: "host"}, Key: testKey, Limits: c.limits}, c.o)
			defer tr.Close()
			_, err := tr.Dial(transport.Info{Rank: c.rank, Host: "host"}, c.addr)
			require.ErrorContains(t, err, c.want)
		})
	}
	tr := New(transport.Config{Limits: small}, Options{IfName: "=nosuch"})
	_, err := tr.Listen()
	require.ErrorContains(t, err, `socket: listen: no interface named "=nosuch"; there are: `)
}

// TestDialUnreachable ends with the Guard, not with the network's time-out. Nothing
// routes to the addresses of TEST-NET-1, or says so at once.
func TestDialUnreachable(t *testing.T) {
	tr, _, _ := listening(t, 2, small, onLoopback)
	tr.cfg.Guard.SetDeadline(fifo.Now() + int64(50*time.Millisecond))
	start := time.Now()
	_, err := tr.Dial(transport.Info{Rank: 1}, []byte("tcp=192.0.2.1:1"))
	require.ErrorIs(t, err, fifo.ErrDeadline)
	require.Less(t, time.Since(start), 10*time.Second) // real time; a dial gives up after 20 s
}

// TestLocal: among ranks of one host no port is open to others.
func TestLocal(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Local: true}, "^unix="},
		{Options{Local: true, Network: "unix"}, "^unix="},
		{Options{Local: true, Network: "tcp"}, "^tcp=127.0.0.1:[0-9]+#[A-Z2-7]+$"},
		{Options{Local: true, Network: "tcp", Family: 4}, "^tcp=127.0.0.1:[0-9]+#[A-Z2-7]+$"},
		{Options{Local: true, Network: "tcp", IfName: "lo"}, "^tcp=127.0.0.1:[0-9]+#[A-Z2-7]+$"},
	} {
		a, _, _ := listening(t, 2, small, c.o)
		b, addr, _ := listening(t, 1, small, c.o)
		require.Regexp(t, c.want, string(addr), "%+v", c.o)
		require.NotContains(t, strings.TrimPrefix(string(addr), "tcp="), "tcp=")
		_, err := a.Dial(b.cfg.Self, addr)
		require.NoError(t, err)
		_, err = b.Accept(a.cfg.Self)
		require.NoError(t, err)
	}
}

// TestLastSlotsAfterDeadline: published slots reach a slow reader though the sender
// closes after the deadline of its last operation.
func TestLastSlotsAfterDeadline(t *testing.T) {
	s, r := pair(t, large, onLoopback)
	for i := range large.Slots {
		_, err := s.Reserve(large.SlotBytes)
		require.NoError(t, err)
		require.NoError(t, s.Publish(transport.Stamp{uint64(i)}))
	}
	s.t.cfg.Guard.SetDeadline(fifo.Now() - 1)
	require.NoError(t, s.Close())
	for i := range large.Slots {
		_, stamp, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, transport.Stamp{uint64(i)}, stamp)
		require.NoError(t, r.Release())
	}
	_, _, err := r.Next()
	require.ErrorIs(t, err, fifo.ErrClosed)
}

// TestGarbage: bytes that no sender writes are an error that names the peer.
func TestGarbage(t *testing.T) {
	b, addr, _ := listening(t, 1, small, onLoopback)
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"text":     {[]byte(strings.Repeat("garbage ", 10)), "malformed frame: begins with 6761"},
		"too long": {frame(header{kind: kindSlot, length: 301}), "malformed frame: 301 bytes announced, at most 300 fit"},
		"cut":      {frame(header{kind: kindSlot, length: 300}), "the peer has gone: connection reset by peer"},
		"nothing":  {nil, "the peer has gone: connection reset by peer"},
	} {
		for _, into := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				nc := call(t, addr, part{[16]byte{1}, 0, 1})
				nc.Write(c.bytes)
				nc.Close()
				r, err := b.Accept(transport.Info{Rank: 3})
				require.NoError(t, err)
				for range 2 { // and the error stays
					if into {
						_, err = r.(transport.Into).NextInto(mem.Host(make([]byte, 300)))
					} else {
						_, _, err = r.Next()
					}
					require.EqualError(t, err, c.want)
				}
			})
		}
	}
}
