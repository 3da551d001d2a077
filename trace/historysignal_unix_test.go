//go:build unix

package trace_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/history"
)

// OnSignal calls its function until stop; after that the signal does nothing.
func TestOnSignal(t *testing.T) {
	come := make(chan bool)
	for name, s := range map[string]syscall.Signal{"usr2": syscall.SIGUSR2, "HUP": syscall.SIGHUP} {
		stop, err := history.OnSignal(name, func() { come <- true })
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		<-come
		stop()
		stop()
		next := make(chan os.Signal, 1)
		signal.Notify(next, syscall.SIGUSR1)
		for range 3 {
			require.NoError(t, syscall.Kill(os.Getpid(), s)) // does not end the process
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
			<-next
		}
		signal.Stop(next)
	}
	_, err := history.OnSignal("nonsense", nil)
	require.ErrorIs(t, err, history.ErrSignal)
}
