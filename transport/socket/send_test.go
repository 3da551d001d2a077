package socket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

// A Reserve whose slot is free gets no memory after Close has given it back.
func TestReserveBehindClose(t *testing.T) {
	memory, err := allocate(page)
	require.NoError(t, err)
	c := &sendConn{t: &Transport{cfg: transport.Config{Guard: new(fifo.Guard)}}, max: 8,
		slots: []slot{{frame: memory[:headerLen+8]}}, reserved: -1, memory: memory}
	c.users.Store(1)
	_, err = c.Reserve(8)
	require.NoError(t, err)
	c.unuse() // of Close
	c.memory[headerLen] = 1
	c.reserved = -1
	c.unuse() // of Publish, and the memory is gone
	_, err = c.Reserve(8)
	require.ErrorIs(t, err, fifo.ErrClosed)
}
