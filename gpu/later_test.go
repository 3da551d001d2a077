package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// TestLater: a machine's Close waits for functions of Later, and none begins afterwards.
func TestLater(t *testing.T) {
	m := must.Get(Open(Options{Emulate: 1}))
	d := must.Get(m.Device(0))
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
