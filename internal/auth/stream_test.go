package auth

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const protocol = "ringo test 1"

type result struct {
	answer []byte
	err    error
}

// call runs Call at the other end of the returned connection, and then hangs up.
func call(t *testing.T, key []byte, context, body string) (net.Conn, <-chan result) {
	far, near := net.Pipe()
	for _, c := range []net.Conn{far, near} {
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
	}
	done := make(chan result, 1)
	go func() {
		answer, err := Call(far, key, context, []byte(body))
		far.Close()
		done <- result{answer, err}
	}()
	return near, done
}

func never(t *testing.T) func([]byte) []byte {
	return func([]byte) []byte {
		t.Error("a stranger's body was judged")
		return nil
	}
}

func TestHandshake(t *testing.T) {
	for _, body := range []string{"", "who I am", string(make([]byte, MaxBody))} {
		c, called := call(t, key, protocol, body)
		require.NoError(t, Answer(c, key, protocol, func(b []byte) []byte {
			require.Equal(t, body, string(b))
			return []byte("welcome")
		}))
		r := <-called
		require.NoError(t, r.err)
		require.Equal(t, "welcome", string(r.answer))
	}
	c, called := call(t, key, protocol, string(make([]byte, MaxBody+1)))
	require.Error(t, Answer(c, key, protocol, never(t)))
	require.ErrorContains(t, (<-called).err, "4097 bytes, at most 4096")
}

func TestOtherKey(t *testing.T) {
	c, called := call(t, []byte("another"), protocol, "x")
	require.ErrorIs(t, Answer(c, key, protocol, never(t)), ErrKey)
	c.Close()
	require.ErrorIs(t, (<-called).err, ErrHungUp)
}

func TestOtherProtocol(t *testing.T) {
	c, called := call(t, key, "ringo test 2", "x")
	err := Answer(c, key, protocol, never(t))
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, `it speaks "ringo test 2" and this rank "ringo test 1"`)
	err = (<-called).err
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, `it speaks "ringo test 1" and this rank "ringo test 2"`)
}

// A listener without the key gets a proof, which is worthless elsewhere, and its
// answer is not believed.
func TestForgedAnswer(t *testing.T) {
	c, called := call(t, key, protocol, "x")
	require.NoError(t, writeHelloAfterRead(c))
	_, body, err := readProof(c)
	require.NoError(t, err)
	require.Equal(t, "x", string(body))
	require.NoError(t, writeProof(c, Proof{1}, []byte("rank 3 died")))
	require.ErrorIs(t, (<-called).err, ErrKey)
}

func writeHelloAfterRead(c net.Conn) error {
	if _, err := readHello(c, protocol); err != nil {
		return err
	}
	return writeHello(c, protocol, NewNonce())
}

// A caller does not believe its own proof, sent back to it.
func TestReflected(t *testing.T) {
	c, called := call(t, key, protocol, "")
	n, err := readHello(c, protocol)
	require.NoError(t, err)
	require.NoError(t, writeHello(c, protocol, n)) // its own nonce
	p, _, err := readProof(c)
	require.NoError(t, err)
	require.NoError(t, writeProof(c, p, nil))
	require.ErrorIs(t, (<-called).err, ErrKey)
}

// recorder keeps the bytes that pass.
type recorder struct {
	io.ReadWriter
	read, written bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.ReadWriter.Read(b)
	r.read.Write(b[:n])
	return n, err
}

func (r *recorder) Write(b []byte) (int, error) {
	r.written.Write(b)
	return r.ReadWriter.Write(b)
}

func TestReplayed(t *testing.T) {
	c, called := call(t, key, protocol, "x")
	r := &recorder{ReadWriter: c}
	require.NoError(t, Answer(r, key, protocol, func([]byte) []byte { return []byte("yes") }))
	require.NoError(t, (<-called).err)

	said := &script{in: *bytes.NewBuffer(r.read.Bytes())}
	require.ErrorIs(t, Answer(said, key, protocol, never(t)), ErrKey, "to a listener")

	heard := &script{in: *bytes.NewBuffer(r.written.Bytes())}
	_, err := Call(heard, key, protocol, []byte("x"))
	require.ErrorIs(t, err, ErrKey, "to a caller")
}

// A script is a partner whose words are fixed.
type script struct{ in, out bytes.Buffer }

func (s *script) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *script) Write(b []byte) (int, error) { return s.out.Write(b) }

// A connection that knows no key gets nothing that was made with it: the same
// listener with any other key, and the same nonce, would have said the same.
func TestNothingKeyedForStrangers(t *testing.T) {
	s := &script{}
	require.NoError(t, writeHello(&s.in, protocol, Nonce{}))
	require.NoError(t, writeProof(&s.in, Proof{}, []byte("let me in")))
	require.ErrorIs(t, Answer(s, key, protocol, never(t)), ErrKey)
	require.Equal(t, 1+len(protocol)+NonceLen, s.out.Len(), "only a hello")
	require.Equal(t, protocol, string(s.out.Bytes()[1:][:len(protocol)]))
}

// Garbage is an error, quickly, on both sides.
func FuzzStranger(f *testing.F) {
	var b bytes.Buffer
	writeHello(&b, protocol, Nonce{})
	writeProof(&b, Proof{}, []byte("x"))
	f.Add(b.Bytes())
	f.Add([]byte{0})
	f.Add([]byte{255, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := Answer(&script{in: *bytes.NewBuffer(b)}, key, protocol, never(t)); err == nil {
			t.Error("a stranger was let in")
		}
		if _, err := Call(&script{in: *bytes.NewBuffer(b)}, key, protocol, nil); err == nil {
			t.Error("a stranger was believed")
		}
	})
}

// Deadlines stay visible: a slow partner is not one with another key.
func TestDeadline(t *testing.T) {
	far, near := net.Pipe()
	defer far.Close()
	go func() {
		if writeHelloAfterRead(near) == nil {
			readProof(near)
			far.SetDeadline(time.Unix(1, 0))
		}
	}()
	_, err := Call(far, key, protocol, nil)
	var timeout net.Error
	require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
	require.NotErrorIs(t, err, ErrHungUp)
	near.Close()
}
