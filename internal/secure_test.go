//go:build !ringo_notls

package internal_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/internal/test/securetest"
)

// wires are the ends of a TCP connection.
func wires(t *testing.T) (dialled, accepted net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialled, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	accepted, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// meet has two ends speak TLS and prove that they know a key.
func meet(t *testing.T, client, server *secure.Config, a, b net.Conn) (failed, refused error) {
	key := []byte("a key")
	var both sync.WaitGroup
	both.Go(func() {
		c, err := client.Client(a)
		if err == nil {
			_, err = auth.Call(c, key, "ringo test 1", nil)
		}
		failed = err
		a.Close()
	})
	both.Go(func() {
		c, err := server.Server(b)
		if err == nil {
			err = auth.Answer(c, key, "ringo test 1", func([]byte) []byte { return nil })
		}
		refused = err
		b.Close()
	})
	both.Wait()
	return failed, refused
}

// With certificates both ends check each other's; without, the key alone counts.
func TestCertificates(t *testing.T) {
	config := func(f securetest.Files) *secure.Config {
		c, err := secure.New(f.Cert, f.Key, f.CA)
		require.NoError(t, err)
		return c
	}
	one, other, none := securetest.Make(t, "one"), securetest.Make(t, "other"), securetest.Files{}
	for name, test := range map[string]struct {
		client, server securetest.Files
		fails, refuses string
	}{
		"none":        {none, none, "", ""},
		"the same CA": {one, one, "", ""},
		"another CA": {one, other, "the peer's certificate (CN=other) is none that RINGO_TLS_CA has signed",
			"bad certificate"},
		"only the client": {one, none, "is none that RINGO_TLS_CA has signed", "bad certificate"},
		"only the server": {none, one, "remote error: tls: bad certificate",
			"the peer's certificate () is none that RINGO_TLS_CA has signed"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := wires(t)
			failed, refused := meet(t, config(test.client), config(test.server), a, b)
			for _, x := range []struct {
				err  error
				want string
			}{{failed, test.fails}, {refused, test.refuses}} {
				if x.want == "" {
					require.NoError(t, x.err)
				} else {
					require.ErrorContains(t, x.err, x.want)
				}
			}
		})
	}
}

func TestFilesGoTogether(t *testing.T) {
	f := securetest.Make(t, "one")
	_, err := secure.New(f.Cert, f.Key, "")
	require.ErrorContains(t, err, "RINGO_TLS_CA is missing")
	_, err = secure.New(f.Cert, f.CA, f.CA)
	require.ErrorContains(t, err, "RINGO_TLS_CERT")
	_, err = secure.New(f.Cert, f.Key, f.Key)
	require.ErrorContains(t, err, "RINGO_TLS_CA")
}

// A process between the ends, which speaks TLS with each and passes their bytes on, is found: an
// end's proof on one channel proves nothing on another.
func TestBetween(t *testing.T) {
	c, err := secure.New("", "", "")
	require.NoError(t, err)
	a, left := wires(t)
	right, b := wires(t)
	var work sync.WaitGroup
	work.Go(func() {
		defer left.Close()
		defer right.Close()
		l, err := c.Server(left)
		if err != nil {
			return
		}
		r, err := c.Client(right)
		if err != nil {
			return
		}
		work.Go(func() { io.Copy(r, l); right.Close() })
		io.Copy(l, r)
	})
	failed, refused := meet(t, c, c, a, b)
	work.Wait()
	require.ErrorIs(t, refused, auth.ErrKey)
	require.ErrorIs(t, failed, auth.ErrHungUp)
}

// A listener tells callers in clear from those who speak TLS.
func TestEither(t *testing.T) {
	c, err := secure.New("", "", "")
	require.NoError(t, err)
	for _, sealed := range []bool{false, true} {
		a, b := wires(t)
		go func() {
			x := a
			if sealed {
				s, err := c.Client(a)
				if err != nil {
					a.Close()
					return
				}
				x = s
			}
			io.WriteString(x, "hello")
			a.(*net.TCPConn).CloseWrite()
		}()
		x, said, err := (*secure.Config)(nil).Either(b)
		require.NoError(t, err)
		require.Equal(t, sealed, said)
		got, err := io.ReadAll(x)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		require.Same(t, b, secure.Below(x))
	}
}

// The end of what one side sends is seen by the other, which may still answer, through TLS and in clear.
func TestCloseWrite(t *testing.T) {
	c, err := secure.New("", "", "")
	require.NoError(t, err)
	for _, sealed := range []bool{false, true} {
		a, b := wires(t)
		var work sync.WaitGroup
		work.Go(func() {
			var from net.Conn = a
			if sealed {
				s, err := c.Client(a)
				require.NoError(t, err)
				from = s
			}
			_, err := from.Write([]byte("ask"))
			require.NoError(t, err)
			require.NoError(t, from.(interface{ CloseWrite() error }).CloseWrite())
			answer := make([]byte, 6)
			_, err = io.ReadFull(from, answer)
			require.NoError(t, err)
			require.Equal(t, "answer", string(answer))
		})
		to, is, err := c.Either(b)
		require.NoError(t, err)
		require.Equal(t, sealed, is)
		asked, _ := io.ReadAll(to) // TLS misses its goodbye
		require.Equal(t, "ask", string(asked))
		_, err = to.Write([]byte("answer"))
		require.NoError(t, err)
		require.NoError(t, to.(interface{ CloseWrite() error }).CloseWrite())
		work.Wait()
	}
	one, other := net.Pipe()
	defer one.Close()
	go func() { _, _ = other.Write([]byte("x")) }()
	to, _, err := c.Either(one)
	require.NoError(t, err)
	require.ErrorIs(t, to.(interface{ CloseWrite() error }).CloseWrite(), errors.ErrUnsupported)
}
