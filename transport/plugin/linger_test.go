//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
)

// Close waits for a busy receiver as long as Config.Linger, and then returns what is lost.
func TestCloseWaitsForReceiver(t *testing.T) {
	t.Parallel()
	for name, linger := range map[string]time.Duration{"it goes on": time.Hour, "it does not": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ranks := twoThatLinger(t, newFake(t, version(11)).load(t), transport.Limits{SlotBytes: 300, Slots: 4},
				linger)
			s, err := ranks[0].Dial(ranks[1])
			require.NoError(t, err)
			r, err := ranks[1].Accept(ranks[0])
			require.NoError(t, err)
			const messages = 8 // the receiver's ring holds half of them
			for range messages {
				_, err := s.Reserve(100)
				require.NoError(t, err)
				require.NoError(t, s.Publish(transport.Stamp{}))
			}
			closed := make(chan error, 1)
			go func() { closed <- ranks[0].Transport.Close() }()
			if linger < time.Second {
				require.ErrorContains(t, <-closed, "it may lack the last messages")
				return
			}
			select {
			case err := <-closed:
				t.Fatal("Close has given up: ", err)
			case <-time.After(ends.LingerTime * 5 / 4):
			}
			for range messages {
				_, _, err := r.Next()
				require.NoError(t, err)
				require.NoError(t, r.Release())
			}
			require.NoError(t, <-closed)
		})
	}
}
