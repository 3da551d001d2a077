//go:build !linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

func TestNotHere(t *testing.T) {
	_, err := New(transport.Config{}, Options{}).Listen()
	require.ErrorContains(t, err, "sockets")
}
