package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLater: a machine's Close waits for functions of Later, and none begins afterwards.
func TestLater(t *testing.T) {
	m, err := Open(Options{Emulate: 1})
	require.NoError(t, err)
	d, err := m.Device(0)
	require.NoError(t, err)
	begun, goOn := make(chan struct{}), make(chan struct{})
	done := false
	d.Later(func() {
		close(begun)
		<-goOn
		done = true
	})
	<-begun
	closed := make(chan error)
	go func() { closed <- m.Close() }()
	select {
	case <-closed:
		t.Fatal("Close has not waited")
	default:
	}
	close(goOn)
	require.NoError(t, <-closed)
	require.True(t, done)
	d.Later(func() { t.Error("after Close") })
}
