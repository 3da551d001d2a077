//go:build unix

package internal_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/setting"
)

// A signal is found by its name, unless programs cannot catch it.
func TestSignal(t *testing.T) {
	require.Equal(t, syscall.SIGUSR2, setting.Signal("usr2"))
	require.Equal(t, syscall.SIGUSR1, setting.Signal("SIGUSR1"))
	for _, name := range []string{"", "FOO", "KILL", "SIGSTOP", "0"} {
		require.Nil(t, setting.Signal(name), name)
	}
}
