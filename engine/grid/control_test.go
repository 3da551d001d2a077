package grid

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

// TestControlFreedWhileUsed: a communicator may be stopped while it gives its control block back: nobody writes to the
// block then, which the next communicator has.
func TestControlFreedWhileUsed(t *testing.T) {
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	s := cuda.OpenStore(d, ctx)
	defer func() { require.NoError(t, s.Close()) }()
	for range 20 {
		require.NoError(t, cuda.With(d, ctx, func() error {
			c, err := newControl(d, s, 2)
			require.NoError(t, err)
			require.False(t, c.Aborted())
			var others sync.WaitGroup
			others.Go(c.Abort)
			others.Go(func() { c.Progress() })
			c.free(s)
			others.Wait()
			return nil
		}))
	}
}
