package bridge_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

const placedBytes = 256

// Lanes that were mixed up are found out before a kernel hears of a slot.
func TestPlacedLanes(t *testing.T) {
	from, to := apart(t, "placed", placedBytes)
	from.bridge.OutPlaced(1, from.queues()[1:], func(lane int) (transport.PlacedSendConn, error) {
		return from.dialPlaced(to, lane)
	})
	to.bridge.InPlaced(0, to.queues()[1:], func(lane int) (transport.PlacedRecvConn, error) {
		if lane == 0 {
			other, err := to.acceptPlaced(from, 2)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { require.NoError(t, other.Close()) })
		}
		return to.acceptPlaced(from, 1)
	})
	require.ErrorContains(t, <-to.failed, "recv 0: a connection for lane 1 in place of lane 0")
	require.Zero(t, to.kernel[1].Seen.Load())
}

// Fail hears of a connection that breaks, with the peer, and other lanes go on.
func TestPlacedBroken(t *testing.T) {
	from, to := sides(t, "placed", placedBytes)
	from.kernel[0].publish(0, 10, 1)
	until(func() bool { return to.kernel[0].Seen.Load() == 1 })
	to.Config.Guard.Abort(errors.New("dies without goodbye"))
	require.NoError(t, to.bridge.Close())
	from.Config.Guard.Abort(errors.New("enough"))
	require.Empty(t, from.failed, "a peer that closes is not missed")

	from, to = sides(t, "placed", placedBytes)
	from.kernel[1].post(0, placedBytes+1, 0)
	require.ErrorContains(t, <-from.failed, "send 1: slot 0 has 257 bytes of 256")
	for n := range uint64(3 * slots) {
		from.kernel[2].publish(n, 100, byte(n))
		until(func() bool { return to.kernel[2].Seen.Load() == n+1 })
		require.NoError(t, to.kernel[2].wrong(n, 100, byte(n)))
		to.kernel[2].Posted.Store(n + 1)
	}
}

// A slot costs nothing of the heap.
func TestPlacedAllocations(t *testing.T) {
	if tier.Race {
		t.Skip("the race detector allocates")
	}
	from, to := sides(t, "placed", placedBytes)
	n := uint64(0)
	turn := func() {
		from.kernel[0].publish(n, 8, 1)
		to.kernel[0].take(n)
		n++
	}
	for range 100 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(200, turn))
}
