package socket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
)

// sentMuch makes a connection on which rank 1 has sent rank 0 more than the kernel takes. closed gets the error of
// rank 1's Close.
func sentMuch(t *testing.T, o Options, linger time.Duration) (messages int, to *Transport, r transport.RecvConn,
	closed chan error) {
	limits := transport.Limits{SlotBytes: 4 << 20, Slots: 8}
	config := func(rank int) transport.Config {
		return transport.Config{Self: transport.Info{Rank: rank}, Key: testKey, Limits: limits, Guard: new(fifo.Guard),
			Linger: linger}
	}
	to, from := New(config(0), o), New(config(1), o)
	addr, err := to.Listen()
	require.NoError(t, err)
	s, err := from.Dial(transport.Info{Rank: 0}, addr)
	require.NoError(t, err)
	r, err = to.Accept(transport.Info{Rank: 1})
	require.NoError(t, err)
	for ; messages < limits.Slots; messages++ {
		b, err := s.Reserve(limits.SlotBytes)
		require.NoError(t, err)
		b.Bytes()[0] = byte(messages)
		require.NoError(t, s.Publish(transport.Stamp{}))
	}
	closed = make(chan error, 1)
	go func() { closed <- from.Close() }()
	return messages, to, r, closed
}

// What was sent arrives, however long the receiver is busy.
func TestCloseWaitsForReceiver(t *testing.T) {
	t.Parallel()
	side := tier.Together(t)
	defer side.Wait()
	for name, o := range networks() {
		side.Run(name, func(t *testing.T) {
			messages, to, r, closed := sentMuch(t, o, time.Hour)
			defer to.Close()
			time.Sleep(ends.LingerTime * 3 / 2)
			for i := range messages {
				b, _, err := r.Next()
				require.NoError(t, err)
				require.Equal(t, byte(i), b.Bytes()[0])
				require.NoError(t, r.Release())
			}
			require.NoError(t, <-closed)
		})
	}
}

// Close does not wait for a receiver that closes. For one that takes nothing it waits as long as Linger, and then
// returns what is lost.
func TestCloseWithoutReceiver(t *testing.T) {
	t.Parallel()
	side := tier.Together(t)
	defer side.Wait()
	for name, o := range networks() {
		side.Run(name, func(t *testing.T) {
			_, to, _, closed := sentMuch(t, o, time.Hour)
			require.NoError(t, to.Close())
			select {
			case err := <-closed:
				require.NoError(t, err)
			case <-time.After(tier.Patience):
				t.Fatal("Close waits for a peer that has closed")
			}
			if name != "unix" { // whose buffers are small on all machines
				return
			}
			_, to, _, closed = sentMuch(t, o, 50*time.Millisecond)
			defer to.Close()
			require.Regexp(t, `^socket: rank 0 has taken nothing for 50ms: [1-9]\d* bytes that were sent to it are lost$`,
				<-closed)
		})
	}
}
