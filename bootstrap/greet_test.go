package bootstrap

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/stretchr/testify/require"
)

// greeting is the first message of a rank that speaks a protocol.
func greeting(protocol string) []byte {
	nonce := auth.NewNonce()
	return append(append([]byte{byte(len(protocol))}, protocol...), nonce[:]...)
}

// impostor listens at an address of its own and treats every caller with do.
// Callers that have been served are counted.
func impostor(t *testing.T, do func(c net.Conn)) (addr string, served chan struct{}, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served = make(chan struct{}, 1000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			do(c)
			c.Close()
			served <- struct{}{}
		}
	})
	stop = sync.OnceFunc(func() { ln.Close(); wg.Wait() })
	t.Cleanup(stop)
	return ln.Addr().String(), served, stop
}

// A message of a process that has not proved itself is not believed, is not repeated
// at length, and does not end Join.
func TestForgedRefusal(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("rank 3 died, pay here; ", 4<<10/23)
	refused := rendezvous.Encode(&rendezvous.Refusal{Cause: rendezvous.Dead, Rank: 3, Reason: text})
	for name, say := range map[string]func(c net.Conn){
		"at once":            func(c net.Conn) { c.Write(refused) },
		"after its greeting": func(c net.Conn) { c.Write(greeting(protocol)); c.Write(refused) },
		"with a wrong proof": func(c net.Conn) {
			c.Write(greeting(protocol))
			c.Write(append([]byte{0, 0}, make([]byte, auth.ProofLen)...))
			c.Write(refused)
		},
		"as another version": func(c net.Conn) { c.Write(greeting(text[:64])); c.Write(refused) },
	} {
		t.Run(name, func(t *testing.T) {
			addr, served, stop := impostor(t, func(c net.Conn) {
				say(c)
				c.(*net.TCPConn).CloseWrite()
				c.SetReadDeadline(time.Now().Add(time.Second))
				io.Copy(io.Discard, c)
			})
			id, err := randomID(addr)
			require.NoError(t, err)
			_, err = Join(within(t, 100*time.Millisecond), id, 1, 2, JoinOptions{})
			var e *JoinError
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var f *Failure
			require.NotErrorAs(t, err, &f)
			require.Less(t, len(err.Error()), 500)

			late := join(within(t, 10*time.Second), id, 1, 2)
			for len(served) > 0 {
				<-served
			}
			<-served // the joiner has been lied to once more
			stop()
			require.NoError(t, Serve(id, ListenOptions{}))
			defer Stop(id)
			first, second := <-join(within(t, 10*time.Second), id, 0, 2), <-late
			require.NoError(t, first.err)
			require.NoError(t, second.err)
			closeAll(t, []Group{first.g, second.g})
		})
	}
}

func TestOtherVersion(t *testing.T) {
	addr, _, _ := impostor(t, func(c net.Conn) { auth.Answer(c, make([]byte, keyLen), "ringo rendezvous 1", nil) })
	id, err := makeID(addr, make([]byte, keyLen))
	require.NoError(t, err)
	_, err = Join(within(t, 50*time.Millisecond), id, 1, 2, JoinOptions{})
	require.ErrorContains(t, err,
		`it speaks "ringo rendezvous 1" and this rank "ringo rendezvous 6": use one release of ringo everywhere`)

	id, log := hubAt(t)
	c, err := net.Dial("tcp", id.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = auth.Call(c, id.key(), "ringo rendezvous 1", nil)
	require.ErrorIs(t, err, auth.ErrProtocol)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "ringo rendezvous 1") }, 10*time.Second,
		time.Millisecond)
}

// recorder keeps what a connection has sent and received.
type recorder struct {
	io.ReadWriter
	sent, received bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) { r.sent.Write(b); return r.ReadWriter.Write(b) }

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.ReadWriter.Read(b)
	r.received.Write(b[:n])
	return n, err
}

// A replay of a rank's messages gives nobody a slot, nor any bytes made with the key.
func TestReplay(t *testing.T) {
	id, log := hubAt(t)
	c, err := net.Dial("tcp", id.Addr())
	require.NoError(t, err)
	defer c.Close()
	r := &recorder{ReadWriter: c}
	_, err = auth.Call(r, id.key(), protocol, rendezvous.Append(nil, &rendezvous.Claim{Rank: 1, Size: 2}))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
	slots := taken(id)

	again, err := net.Dial("tcp", id.Addr())
	require.NoError(t, err)
	defer again.Close()
	_, err = again.Write(r.sent.Bytes())
	require.NoError(t, err)
	got, _ := io.ReadAll(again)
	require.Len(t, got, len(greeting(protocol)), "the hub's greeting and no proof")
	require.Equal(t, slots, taken(id))
	require.Contains(t, log.String(), "another key")
}

// A connection that was closed to make room for others gets no slot, however right its proof.
func TestEvictedUnproven(t *testing.T) {
	id, _ := hubAt(t)
	h := hubOf(id)
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := auth.Call(far, id.key(), protocol, rendezvous.Append(nil, &rendezvous.Claim{Rank: 1, Size: 2}))
		far.Close()
		done <- err
	}()
	h.serve(near) // near is not among the hub's unproven
	require.NoError(t, <-done)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Nil(t, h.joined.slots)
}

// A hub that has ended slots nobody, and Stop returns.
func TestSitAfterStop(t *testing.T) {
	id, _ := hubAt(t)
	h := hubOf(id)
	Stop(id)
	near, far := net.Pipe()
	defer far.Close()
	require.False(t, h.admit(&slot{Claim: rendezvous.Claim{Rank: 0, Size: 1}, link: newLink(near)}))
	require.Zero(t, h.open)
	require.Nil(t, h.joined.slots)
}
