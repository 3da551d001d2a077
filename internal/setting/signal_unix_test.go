//go:build unix

package setting

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A signal is found by its name, unless programs cannot catch it.
func TestSignal(t *testing.T) {
	require.Equal(t, syscall.SIGUSR2, Signal("usr2"))
	require.Equal(t, syscall.SIGUSR1, Signal("SIGUSR1"))
	for _, name := range []string{"", "FOO", "KILL", "SIGSTOP", "0"} {
		require.Nil(t, Signal(name), name)
	}
}
