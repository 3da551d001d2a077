package socket

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

func FuzzParsePart(f *testing.F) {
	f.Add((&part{[16]byte{7}, 1, 2}).bytes())
	f.Add(make([]byte, partLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePart(b)
		if err != nil {
			return
		}
		require.Equal(t, b, p.bytes())
		require.Less(t, p.stream, p.streams)
		require.LessOrEqual(t, p.streams, maxStreams)
	})
}

// TestPuzzle: a connection is whole when each of its streams has come once.
func TestPuzzle(t *testing.T) {
	var z puzzle
	conn := func() net.Conn {
		a, _ := net.Pipe()
		return a
	}
	a, b, c := conn(), conn(), conn()
	whole := func(p part, c net.Conn, want []net.Conn) {
		t.Helper()
		require.NoError(t, z.wants(p))
		all, err := z.add(p, c)
		require.NoError(t, err)
		require.Equal(t, want, all)
	}
	whole(part{[16]byte{1}, 1, 2}, a, nil)
	whole(part{[16]byte{2}, 0, 1}, b, []net.Conn{b})
	whole(part{[16]byte{3}, 0, 3}, b, nil)
	for _, p := range []part{{[16]byte{1}, 1, 2}, {[16]byte{1}, 0, 3}, {[16]byte{3}, 0, 3}} {
		require.Error(t, z.wants(p), "%v", p)
		_, err := z.add(p, c)
		require.ErrorContains(t, err, "does not belong to this connection", "%v", p)
	}
	whole(part{[16]byte{1}, 0, 2}, c, []net.Conn{c, a})
	z.close()
	_, err := b.Write([]byte{1})
	require.Error(t, err, "what will never be whole is closed")
	_, err = z.add(part{[16]byte{4}, 0, 1}, c)
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestStreams: only parts that belong together make a connection, and one that
// does not is refused with the reason.
func TestStreams(t *testing.T) {
	b, addr, _ := listening(t, 1, small, onLoopback)
	first := part{[16]byte{9}, 0, 2}
	call(t, addr, first)
	var err error
	for err == nil { // the first is noted a moment after its answer
		_, err = tryCall(t, addr, first)
	}
	require.ErrorContains(t, err, "refused: stream 0 of 2 does not belong to this connection")
	_, err = tryCall(t, addr, part{[16]byte{8}, 2, 2})
	require.ErrorContains(t, err, "refused: stream 2 of 2")
	call(t, addr, part{[16]byte{9}, 1, 2})
	_, err = b.Accept(transport.Info{Rank: 3})
	require.NoError(t, err)
}
