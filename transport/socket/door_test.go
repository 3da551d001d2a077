package socket

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

var testKey = []byte("a secret of thirty-two bytes: ok")

// logbook keeps log lines.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), "\n")
}

// listening is a transport of rank that listens, with its address and log.
func listening(t testing.TB, rank int, l transport.Limits, o Options) (*Transport, []byte, *logbook) {
	log := new(logbook)
	tr := New(transport.Config{
		Self:   transport.Info{Rank: rank, Host: "host"},
		Key:    testKey,
		Limits: l,
		Guard:  new(fifo.Guard),
		Spin:   true,
		Log:    slog.New(slog.NewTextHandler(log, nil)),
	}, o)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
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

// TestStrangers: whoever finds the port is dropped with one line, and those who
// say nothing do not keep others waiting.
func TestStrangers(t *testing.T) {
	b, addr, log := listening(t, 1, small, onLoopback)
	where, err := parseAddress(addr)
	require.NoError(t, err)
	call := func() net.Conn {
		c, err := net.Dial("tcp", where.TCP.String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, words := range []string{
		"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a scanner of some length\r\n\r\n.....................",
		strings.Repeat("\x00", 1<<16), string(someHello.bytes()) + strings.Repeat("x", proofLen), "",
	} {
		before := log.lines()
		c := call()
		c.Write([]byte(words))
		c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		for err = nil; err == nil; {
			_, err = c.Read(make([]byte, 4096))
		}
		require.NotErrorIs(t, err, net.ErrClosed)
		require.Eventually(t, func() bool { return log.lines() == before+1 }, 5*time.Second, time.Millisecond)
	}
	for range maxCallers + 10 {
		call()
	}
	a, _, _ := listening(t, 2, small, onLoopback)
	start := time.Now()
	_, err = a.Dial(b.cfg.Self, addr)
	require.NoError(t, err)
	_, err = b.Accept(a.cfg.Self)
	require.NoError(t, err)
	require.Less(t, time.Since(start), handshakeTime/2)
}

// TestDialErrors: what is wrong with a peer is said.
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
		{"other rank", 7, small, onLoopback, addr, "dial rank 7: handshake with tcp"},
		{"other limits", 1, transport.Limits{SlotBytes: 301, Slots: 4}, onLoopback, addr, "it has queues of {SlotBytes:300 Slots:4} and this rank of {SlotBytes:301 Slots:4}"},
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

// TestDialUnreachable ends with the Guard, not with the network's time-out.
func TestDialUnreachable(t *testing.T) {
	tr, _, _ := listening(t, 2, small, onLoopback)
	tr.cfg.Guard.SetDeadline(fifo.Now() + int64(50*time.Millisecond))
	start := time.Now()
	_, err := tr.Dial(transport.Info{Rank: 1}, []byte("tcp=127.0.0.1:1"))
	require.ErrorIs(t, err, fifo.ErrDeadline)
	require.Less(t, time.Since(start), 2*time.Second)
}

// TestGarbage: bytes that no sender writes are an error that names the peer.
func TestGarbage(t *testing.T) {
	b, addr, _ := listening(t, 1, small, onLoopback)
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"text":     {[]byte(strings.Repeat("garbage ", 10)), "recv from rank 3 over socket: malformed frame: begins with 6761"},
		"too long": {frame(header{kind: kindSlot, length: 301}), "recv from rank 3 over socket: malformed frame: 301 bytes announced, at most 300 fit"},
		"cut":      {frame(header{kind: kindSlot, length: 300}), "recv from rank 3 over socket: connection reset by peer"},
		"nothing":  {nil, "recv from rank 3 over socket: connection reset by peer"},
	} {
		for _, into := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				where, _ := parseAddress(addr)
				nc, err := net.Dial("tcp", where.TCP.String())
				require.NoError(t, err)
				require.NoError(t, greet(nc, testKey, hello{streams: 1, from: 3, to: 1, limits: small, conn: [16]byte{1}}))
				nc.Write(c.bytes)
				nc.Close()
				r, err := b.Accept(transport.Info{Rank: 3})
				require.NoError(t, err)
				for range 2 { // and it stays
					if into {
						_, err = r.(transport.Into).NextInto(mem.Host(make([]byte, 300)))
					} else {
						_, _, err = r.Next()
					}
					require.EqualError(t, err, c.want)
				}
				var pe *PeerError
				require.ErrorAs(t, err, &pe)
				require.Equal(t, 3, pe.Peer)
			})
		}
	}
}
