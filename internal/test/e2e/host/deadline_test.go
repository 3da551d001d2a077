package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A deadline of DoContext holds while the call waits behind another one that never ends, which was started, or which
// another goroutine makes.
func TestDeadlineBehind(t *testing.T) {
	for name, before := range map[string]func(c *ringo.Comm) <-chan error{
		"a started call": func(c *ringo.Comm) <-chan error {
			p, end := c.Start(ringo.RecvOf(make([]byte, 8), 1)), make(chan error, 1)
			go func() { end <- p.Wait() }()
			return end
		},
		"another goroutine's": func(c *ringo.Comm) <-chan error {
			end := make(chan error, 1)
			go func() { end <- ringo.Recv(c, make([]byte, 8), 1) }()
			for len(c.History().Calls) == 0 {
				time.Sleep(time.Millisecond)
			}
			return end
		},
	} {
		t.Run(name, func(t *testing.T) {
			comms := commtest.Local(t, 2, ringo.Config{Timeout: time.Hour})
			end := before(comms[0])
			began := time.Now()
			err := doWithin(comms[0], 100*time.Millisecond, ringo.AllReduceOf([]float32{1}, ringo.Sum))
			require.ErrorIs(t, err, ringo.ErrTimeout)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "before the call's turn came")
			require.Error(t, <-end, "it is ended too")
			require.Less(t, time.Since(began), tier.Patience)
		})
	}
}
