package bridge

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A broken is a connection that has ended: all of its slots are free.
type broken struct{ transport.PlacedSendConn }

var errBroken = errors.New("no rail is left")

func (broken) Free() int                       { return 4 }
func (broken) Reserve(int) (mem.Region, error) { return mem.Region{}, errBroken }

// Slots that are on their way when a connection breaks do not go back to the kernel, and the bridge gets
// the error, although nothing more is to be sent.
func TestLaneBroken(t *testing.T) {
	q, err := NewPlaced(4, 64, mem.Host(make([]byte, 4*64)), make([]byte, 4*HeaderBytes), make([]byte, 8), make([]byte, 8))
	require.NoError(t, err)
	l := &lane{q: q, send: broken{}, greeted: q.Slots, count: 2}
	q.Posted.Store(2)
	_, err = l.out()
	require.ErrorIs(t, err, errBroken)
	require.Zero(t, q.Seen.Load())
}
