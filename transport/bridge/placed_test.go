package bridge_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// A placedSide is a rank whose slots its card moves.
type placedSide struct {
	bridge *bridge.Bridge
	guard  fifo.Guard
	card   *transporttest.Card
	addr   []byte
	info   transport.Info
	kernel []kernelQueue
	queues []bridge.Queue
	failed chan error
}

// A kernelQueue is a queue as a kernel uses it: it sees bytes that the bridge does not touch.
type kernelQueue struct {
	*bridge.Queue
	slots, headers []byte
}

const placedBytes = 256

func placedSides(t testing.TB, memory func(testing.TB, int) transporttest.Slots) (from, to *placedSide) {
	both := make([]*placedSide, 2)
	for r := range both {
		s := &placedSide{info: transport.Info{Rank: r, Host: "h", Process: "p"}, failed: make(chan error, 2*lanes),
			queues: make([]bridge.Queue, lanes)}
		s.card = transporttest.NewCard(transport.Config{
			Self: s.info, Key: []byte("key"), Limits: transport.Limits{SlotBytes: placedBytes, Slots: slots}, Guard: &s.guard,
		}, nil)
		var err error
		s.addr, err = s.card.Listen()
		require.NoError(t, err)
		m := memory(t, lanes*slots*placedBytes)
		_, err = s.card.Register(m.Memory)
		require.NoError(t, err)
		for i := range s.queues {
			at, headers := i*slots*placedBytes, make([]byte, slots*bridge.HeaderBytes)
			s.queues[i], err = bridge.NewPlaced(slots, placedBytes, m.Slice(at, slots*placedBytes), headers, make([]byte, 128),
				make([]byte, 128))
			require.NoError(t, err)
			s.kernel = append(s.kernel, kernelQueue{&s.queues[i], m.View[at:][:slots*placedBytes], headers})
		}
		s.bridge = bridge.New(bridge.Config{Guard: &s.guard, Fail: func(peer int, phase string, err error) {
			s.failed <- fmt.Errorf("%s %d: %w", phase, peer, err)
		}})
		both[r] = s
		t.Cleanup(func() {
			require.NoError(t, s.bridge.Close())
			require.NoError(t, s.card.Close())
		})
	}
	return both[0], both[1]
}

// join connects lane i of the one with lane order[i] of the other.
func join(from, to *placedSide, order ...int) {
	from.bridge.OutPlaced(1, from.queues, func(lane int) (transport.PlacedSendConn, error) {
		return from.card.DialPlaced(to.info, to.addr, from.queues[order[lane]].Placed)
	})
	to.bridge.InPlaced(0, to.queues, func(lane int) (transport.PlacedRecvConn, error) {
		return to.card.AcceptPlaced(from.info, to.queues[lane].Placed)
	})
}

func (q kernelQueue) slot(n uint64) []byte   { return q.slots[n%slots*placedBytes:][:placedBytes] }
func (q kernelQueue) header(n uint64) []byte { return q.headers[n%slots*bridge.HeaderBytes:] }

// publish sends a slot as a kernel does, as soon as it is the kernel's.
func (q kernelQueue) publish(n uint64, length int, seed byte) {
	until(func() bool { return int64(n-q.Seen.Load()) < slots })
	for i := range q.slot(n)[:length] {
		q.slot(n)[i] = byte(i) + seed
	}
	h := q.header(n)
	binary.LittleEndian.PutUint64(h, uint64(seed))
	binary.LittleEndian.PutUint64(h[8:], n)
	binary.LittleEndian.PutUint64(h[16:], uint64(length))
	q.Posted.Store(n + 1)
}

// wrong is how a slot that has arrived differs from the one published, nil if it does not.
func (q kernelQueue) wrong(n uint64, length int, seed byte) error {
	h := q.header(n)
	good := binary.LittleEndian.Uint64(h) == uint64(seed) && binary.LittleEndian.Uint64(h[8:]) == n &&
		binary.LittleEndian.Uint64(h[16:]) == uint64(length)
	for i := range q.slot(n)[:length] {
		good = good && q.slot(n)[i] == byte(i)+seed
	}
	if !good {
		return fmt.Errorf("slot %d of %d bytes: header %x, data %x", n, length, h[:24], q.slot(n)[:length])
	}
	return nil
}

// Slots come as they were sent, where they are placed, and are the sender's again when the receiver has
// released them, which may hold all of them.
func TestPlaced(t *testing.T) {
	for name, memory := range map[string]func(testing.TB, int) transporttest.Slots{"host": transporttest.HostSlots,
		"file": transporttest.FileSlots} {
		t.Run(name, func(t *testing.T) {
			from, to := placedSides(t, memory)
			join(from, to, 0, 1, 2)
			const count = 200
			var wg sync.WaitGroup
			for l := range lanes {
				length := func(n uint64) int { return int(n*37+uint64(l)) % (placedBytes + 1) }
				wg.Go(func() {
					for n := range uint64(count) {
						from.kernel[l].publish(n, length(n), byte(l)+byte(n))
					}
					until(func() bool { return from.kernel[l].Seen.Load() == count }) // nothing more is posted
				})
				wg.Go(func() {
					held := uint64(l) // slots that this kernel keeps for a while
					q := to.kernel[l]
					for n := range uint64(count) {
						until(func() bool { return q.Seen.Load() > n })
						if n >= held {
							if err := q.wrong(n-held, length(n-held), byte(l)+byte(n-held)); err != nil {
								t.Error(err)
							}
							q.Posted.Store(n - held + 1)
						}
					}
					q.Posted.Store(count)
				})
			}
			wg.Wait()
			require.Empty(t, from.failed)
			require.Empty(t, to.failed)
		})
	}
}

// Lanes that were mixed up are found out before a kernel hears of a slot.
func TestPlacedLanes(t *testing.T) {
	from, to := placedSides(t, transporttest.HostSlots)
	from.bridge.OutPlaced(1, from.queues[1:], func(lane int) (transport.PlacedSendConn, error) {
		return from.card.DialPlaced(to.info, to.addr, from.queues[lane].Placed)
	})
	to.bridge.InPlaced(0, to.queues[1:], func(lane int) (transport.PlacedRecvConn, error) {
		if lane == 0 {
			other, err := to.card.AcceptPlaced(from.info, to.queues[2].Placed)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { require.NoError(t, other.Close()) })
		}
		return to.card.AcceptPlaced(from.info, to.queues[1].Placed)
	})
	require.ErrorContains(t, <-to.failed, "recv 0: a connection for lane 1 in place of lane 0")
	require.Zero(t, to.queues[1].Seen.Load())
}

// Fail hears of a connection that breaks, with the peer, and other lanes go on.
func TestPlacedBroken(t *testing.T) {
	from, to := placedSides(t, transporttest.HostSlots)
	join(from, to, 0, 1, 2)
	from.kernel[0].publish(0, 10, 1)
	until(func() bool { return to.kernel[0].Seen.Load() == 1 })
	to.guard.Abort(errors.New("dies without goodbye"))
	require.NoError(t, to.bridge.Close())
	from.guard.Abort(errors.New("enough"))
	require.Empty(t, from.failed, "a peer that closes is not missed")

	from, to = placedSides(t, transporttest.HostSlots)
	join(from, to, 0, 1, 2)
	binary.LittleEndian.PutUint64(from.kernel[1].header(0)[16:], placedBytes+1)
	from.kernel[1].Posted.Store(1)
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
	from, to := placedSides(t, transporttest.HostSlots)
	join(from, to, 0, 1, 2)
	n := uint64(0)
	turn := func() {
		from.kernel[0].publish(n, 8, 1)
		until(func() bool { return to.kernel[0].Seen.Load() > n })
		n++
		to.kernel[0].Posted.Store(n)
	}
	for range 100 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(200, turn))
}

func TestNewPlaced(t *testing.T) {
	m := transporttest.HostSlots(t, 4*128)
	_, err := bridge.NewPlaced(4, 128, m.Slice(0, 4*128-1), make([]byte, 4*bridge.HeaderBytes), make([]byte, 8),
		make([]byte, 8))
	require.Error(t, err)
	_, err = bridge.NewPlaced(4, 128, m.Region, make([]byte, 4*bridge.HeaderBytes-1), make([]byte, 8), make([]byte, 8))
	require.Error(t, err)
}
