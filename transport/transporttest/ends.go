package transporttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// close: slots that were published before the sender closed are received.
func (s suite) close(t *testing.T) {
	send, recv := s.pair(t, small)
	for i := range small.Slots {
		put(t, send, 100, uint64(i))
	}
	require.NoError(t, send.Close())
	require.NoError(t, send.Close(), "close again")
	_, err := send.Reserve(1)
	require.ErrorIs(t, err, fifo.ErrClosed)
	for i := range small.Slots {
		get(t, recv, 100, uint64(i))
	}
	_, _, err = recv.Next()
	require.ErrorIs(t, err, fifo.ErrClosed)
	require.NoError(t, recv.Close())
	_, _, err = recv.Next()
	require.ErrorIs(t, err, fifo.ErrClosed)
}

// delays are two: after the first a wait still spins, after the second it sleeps.
var delays = []time.Duration{0, 30 * time.Millisecond}

// waits: all that wait for a wait to end, or for a dial to give up.
func (s suite) waits(t *testing.T) {
	side := tier.Together(t)
	defer side.Wait()
	side.Run("accept unblocks", s.acceptUnblocks)
	side.Run("stranger", s.stranger)
	side.Run("dial closed", s.dialClosed)
	s.closeUnblocks(side)
	s.guardUnblocks(side)
}

// closeUnblocks: Close of either end, or of either transport, ends the waits of
// both ends.
func (s suite) closeUnblocks(side *tier.Group) {
	for _, waiter := range []string{"sender", "receiver"} {
		for _, closer := range []string{"sender", "receiver", "sender's transport", "receiver's transport"} {
			for _, delay := range delays {
				byTransport := strings.Contains(closer, "transport")
				if delay == 0 && byTransport {
					continue // a transport may be closed only when nobody touches a slot
				}
				side.Run(fmt.Sprintf("%s waits and %s closes after %v", waiter, closer, delay), func(t *testing.T) {
					r := s.ranks(t, 2, small)
					send, recv := conntest.Connect(t, r[0], r[1])
					var f flooder
					wait := map[string]func() error{
						"sender":   func() error { return f.flood(send) },
						"receiver": func() error { return receive(recv) },
					}[waiter]
					closing := map[string]func() error{
						"sender": send.Close, "receiver": recv.Close,
						"sender's transport": r[0].Transport.Close, "receiver's transport": r[1].Transport.Close,
					}[closer]
					require.ErrorIs(t, unblocks(t, wait, func() {
						time.Sleep(delay)
						if byTransport {
							f.settle()
						}
						require.NoError(t, closing())
					}), fifo.ErrClosed)
				})
			}
		}
	}
}

// guardUnblocks: an abort and a deadline end the waits of the end whose Guard
// it is.
func (s suite) guardUnblocks(side *tier.Group) {
	abort := errors.New("it was enough")
	for _, delay := range delays {
		for _, c := range []struct {
			name string
			end  func(*fifo.Guard)
			want error
		}{
			{"abort", func(g *fifo.Guard) { g.Abort(abort) }, abort},
			{"deadline", func(g *fifo.Guard) { g.SetDeadline(fifo.Now() + int64(10*time.Millisecond)) }, fifo.ErrDeadline},
		} {
			side.Run(fmt.Sprintf("%s after %v", c.name, delay), func(t *testing.T) {
				r := s.ranks(t, 2, small)
				send, recv := conntest.Connect(t, r[0], r[1])
				require.ErrorIs(t, unblocks(t, func() error { return receive(recv) }, func() {
					time.Sleep(delay)
					c.end(r[1].Config.Guard)
				}), c.want)
				require.ErrorIs(t, unblocks(t, func() error { return flood(send) }, func() {
					time.Sleep(delay)
					c.end(r[0].Config.Guard)
				}), c.want)
				require.ErrorIs(t, flood(send), c.want, "a later call")
				require.ErrorIs(t, receive(recv), c.want, "a later call")
			})
		}
	}
}

// acceptUnblocks: Accept of a peer that never dials ends with the Guard and
// with Close.
func (s suite) acceptUnblocks(t *testing.T) {
	r := s.ranks(t, 2, small)
	accept := func() error {
		_, err := r[0].Accept(r[1])
		return err
	}
	require.ErrorIs(t, unblocks(t, accept, func() { require.NoError(t, r[0].Transport.Close()) }), fifo.ErrClosed)

	r = s.ranks(t, 2, small)
	abort := errors.New("it was enough")
	require.ErrorIs(t, unblocks(t, accept, func() { r[0].Config.Guard.Abort(abort) }), abort)
}

// slowWaits: whoever waits for a peer calls the Guard's OnSlow soon after it is due.
func (s suite) slowWaits(t *testing.T) {
	r := s.ranks(t, 2, small)
	slow := make(chan bool, 1)
	guard := r[1].Config.Guard
	guard.OnSlow(10*time.Millisecond, func() { slow <- true })
	heard := func(wait func() error, end func()) {
		t.Helper()
		guard.Begin(time.Minute)
		require.NoError(t, unblocks(t, wait, func() {
			<-slow
			end()
		}))
		guard.End()
	}
	var send transport.SendConn
	var recv transport.RecvConn
	heard(func() (err error) {
		recv, err = r[1].Accept(r[0])
		return err
	}, func() {
		var err error
		send, err = r[0].Dial(r[1])
		require.NoError(t, err)
	})
	heard(func() error { return conntest.Get(recv, 100, 1) }, func() { put(t, send, 100, 1) })
}

// dialClosed: a peer that has closed is not waited for, nor is one that closes after
// it has been dialled.
func (s suite) dialClosed(t *testing.T) {
	r := s.ranks(t, 2, small)
	send, _ := conntest.Connect(t, r[0], r[1])
	require.NoError(t, r[1].Transport.Close())
	_, err := r[0].Dial(r[1])
	require.ErrorIs(t, err, transport.ErrClosed)
	require.ErrorIs(t, flood(send), transport.ErrClosed)
	_, err = r[1].Accept(r[0])
	require.ErrorIs(t, err, transport.ErrClosed)
	_, err = r[1].Dial(r[0])
	require.ErrorIs(t, err, transport.ErrClosed)

	r = s.ranks(t, 2, small)
	_, err = r[0].Dial(r[1])
	require.NoError(t, err)
	require.NoError(t, r[0].Transport.Close())
	recv, err := r[1].Accept(r[0])
	require.NoError(t, err)
	_, _, err = recv.Next()
	require.ErrorIs(t, err, transport.ErrClosed)
}

// closeAfterDeadline: the deadline of an operation that is long over does not keep
// a rank from closing in order.
func (s suite) closeAfterDeadline(t *testing.T) {
	for _, closer := range []string{"sender", "receiver"} {
		r := s.ranks(t, 2, small)
		send, recv := conntest.Connect(t, r[0], r[1])
		put(t, send, 100, 1)
		over := fifo.Now() - 1
		if closer == "sender" {
			r[0].Config.Guard.SetDeadline(over)
			require.NoError(t, send.Close())
			get(t, recv, 100, 1)
			require.ErrorIs(t, receive(recv), transport.ErrClosed, closer)
			continue
		}
		r[1].Config.Guard.SetDeadline(over)
		require.NoError(t, recv.Close())
		require.ErrorIs(t, flood(send), transport.ErrClosed, closer)
	}
}

// stranger: a caller that does not know the key is refused, and does no harm.
func (s suite) stranger(t *testing.T) {
	r := s.ranks(t, 2, small)
	cfg := conntest.Config(0, small)
	cfg.Key = []byte("another communicator's secret...")
	stranger := s.open(t, cfg)
	defer stranger.Close()
	_, err := stranger.Listen()
	require.NoError(t, err)
	_, err = stranger.Dial(r[1].Config.Self, r[1].Addr)
	require.Error(t, err, "dial with another key")

	send, recv := conntest.Connect(t, r[0], r[1])
	put(t, send, 100, 1)
	get(t, recv, 100, 1)
}

// reach: Reach is symmetric, and nil for two ranks of one process.
func (s suite) reach(t *testing.T) {
	tr := s.open(t, conntest.Config(0, small))
	defer tr.Close()
	infos := []transport.Info{
		{Rank: 0, Host: "a", Process: "a1"}, {Rank: 1, Host: "a", Process: "a1"},
		{Rank: 2, Host: "a", Process: "a2"}, {Rank: 3, Host: "b", Process: "b1"},
	}
	for _, a := range infos {
		for _, b := range infos {
			require.Equal(t, tr.Reach(a, b) == nil, tr.Reach(b, a) == nil, "%v to %v and back", a, b)
		}
	}
	require.NoError(t, tr.Reach(infos[0], infos[1]))
}
