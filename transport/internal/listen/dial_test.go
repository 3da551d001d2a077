package listen

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/auth"
)

// A handshake that is cut off because the communicator has ended is an error of that, however
// long it has taken, and not of the peer.
func TestRetryAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("ranks disagree")
		ctx, cancel := context.WithCancelCause(context.Background())
		err := Retry(ctx, func() error {
			time.Sleep(2 * graceTime)
			cancel(cause)
			return auth.ErrHungUp
		})
		require.Equal(t, cause, err)

		err = Retry(context.Background(), func() error {
			time.Sleep(2 * graceTime)
			return auth.ErrHungUp
		})
		require.Equal(t, auth.ErrHungUp, err)
	})
}
