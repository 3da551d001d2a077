package gpu

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

// A communicator is opened and closed while a stream of its GPUs is captured by another thread,
// whose capture stays whole.
func TestDeviceOpenBesideCapture(t *testing.T) {
	list := gputest.GPUs(t, 2)
	for name, mode := range map[string]cuda.CaptureMode{"global": cuda.CaptureGlobal, "thread": cuda.CaptureThreadLocal,
		"relaxed": cuda.CaptureRelaxed} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			d := list[0]
			x := commtest.Alloc(t, d, make([]byte, 64))
			s, err := d.NewStream()
			require.NoError(t, err)
			require.NoError(t, d.With(func() error { return d.Driver().StreamBeginCapture(s, mode) }))
			require.NoError(t, d.Set(x.Ptr(), 1, 64, s))
			done := make(chan error)
			go func() {
				comms, err := ringo.OpenLocal(2, ringo.Config{Devices: list, Timeout: 20 * time.Second})
				for _, c := range comms {
					err = errors.Join(err, c.Close())
				}
				done <- err
			}()
			require.NoError(t, <-done)
			require.NoError(t, d.With(func() error {
				g, err := d.Driver().StreamEndCapture(s)
				return errors.Join(err, d.Driver().GraphDestroy(g))
			}))
			require.NoError(t, d.DestroyStream(s))
		})
	}
}
