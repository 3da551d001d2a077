package plugin

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport/internal/listen"
)

// heard is the result of read, while send sends.
func heard(t *testing.T, send func(c net.Conn), read func(c net.Conn) error) error {
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer there.Close()
		send(there)
	}()
	err := read(here)
	here.Close()
	<-done
	return err
}

// A message travels whole, a long one is cut to maxSaid, and a longer length is an error.
func TestHear(t *testing.T) {
	for _, n := range []int{0, 1, maxSaid, maxSaid + 1} {
		text := bytes.Repeat([]byte("x"), n)
		require.NoError(t, heard(t, func(c net.Conn) { _ = say(c, sayReady, text) }, func(c net.Conn) error {
			kind, body, err := hear(c)
			require.Equal(t, sayReady, kind)
			require.Equal(t, text[:min(n, maxSaid)], body)
			return err
		}))
	}
	for text, want := range map[string]error{"": io.EOF, "h\x00": io.ErrUnexpectedEOF, "h\x00\x02x": io.ErrUnexpectedEOF} {
		_, _, err := hear(strings.NewReader(text))
		require.Equal(t, want, err, "%q", text)
	}
	_, _, err := hear(strings.NewReader("h\x08\x01" + strings.Repeat("x", maxSaid+1)))
	require.EqualError(t, err, "control message of 2049 bytes")
}

// A listener answers with a handle for each comm, or says why not. Anything else is no answer.
func TestHearHandles(t *testing.T) {
	handles := make([]byte, 4+2*handleBytes)
	handles[5] = 7
	hears := func(send func(c net.Conn)) (body []byte, err error) {
		err = heard(t, send, func(c net.Conn) error {
			body, err = hearHandles(c, 2)
			return err
		})
		return body, err
	}
	body, err := hears(func(c net.Conn) { _ = say(c, sayHandle, handles) })
	require.NoError(t, err)
	require.Equal(t, handles, body)
	_, err = hears(func(net.Conn) {})
	require.ErrorIs(t, err, io.EOF)
	for want, send := range map[string]func(c net.Conn){
		"refused: no room": func(c net.Conn) { _ = say(c, sayRefused, []byte("no room")) },
		`refused: with an unknown control message 'r' of 260 bytes`: func(c net.Conn) { _ = say(c, sayReady, handles) },
		`refused: with an unknown control message 'h' of 259 bytes`: func(c net.Conn) { _ = say(c, sayHandle, handles[1:]) },
	} {
		var refused *listen.Refusal
		_, err = hears(send)
		require.ErrorAs(t, err, &refused)
		require.EqualError(t, err, want)
	}
}

// A region keeps the error of each end that has left it.
func TestEndsLeaveRegion(t *testing.T) {
	r, a, b := &region{}, errors.New("a"), errors.New("b")
	r.users.Add(3)
	r.leave(a)
	r.leave(nil)
	r.leave(b)
	r.users.Wait()
	require.Equal(t, []error{a, b}, r.errs)
}
