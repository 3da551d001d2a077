//go:build !ringo_portable

package socket

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoDescriptor: a connection whose descriptor cannot be duplicated is an error.
func TestNoDescriptor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = newStream(nil, c)
	require.ErrorIs(t, err, net.ErrClosed)
}
