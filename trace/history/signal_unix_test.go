//go:build unix

package history

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// OnSignal calls its function until stop; after that the signal does nothing.
func TestOnSignal(t *testing.T) {
	come := make(chan bool)
	caught = make(chan os.Signal, 2) // for both signals below
	stop, err := OnSignal("usr2", func() { come <- true })
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	<-come
	stop()
	stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2)) // does not end the process
	<-caught
	<-caught
	_, err = OnSignal("nonsense", nil)
	require.ErrorIs(t, err, ErrSignal)
}
