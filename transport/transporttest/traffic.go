package transporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// sizes: every length up to SlotBytes arrives whole.
func (s suite) sizes(t *testing.T) {
	for _, l := range []transport.Limits{
		{SlotBytes: 1, Slots: 2}, {SlotBytes: 40, Slots: 2}, {SlotBytes: 41, Slots: 3}, small,
		{SlotBytes: 4096, Slots: 2}, {SlotBytes: 1<<18 + 8, Slots: 4},
	} {
		t.Run(fmt.Sprint(l.SlotBytes), func(t *testing.T) {
			send, recv := s.pair(t, l)
			sizes := []int{0, 1, 39, 40, 41, 63, 64, 65, 4095, 4096, 4097, 1 << 17, l.SlotBytes - 1, l.SlotBytes}
			for n := 0; n <= l.SlotBytes && n <= 300; n++ {
				sizes = append(sizes, n)
			}
			for i, n := range sizes {
				if n < 0 || n > l.SlotBytes {
					continue
				}
				put(t, send, n, uint64(i))
				get(t, recv, n, uint64(i))
			}
		})
	}
}

// limits: lengths that fit no slot are errors and do no harm.
func (s suite) limits(t *testing.T) {
	send, recv := s.pair(t, small)
	for _, n := range []int{-1, small.SlotBytes + 1, math.MaxInt} {
		_, err := send.Reserve(n)
		require.Error(t, err, "%d bytes in a slot of %d", n, small.SlotBytes)
	}
	put(t, send, small.SlotBytes, 1)
	get(t, recv, small.SlotBytes, 1)
}

// order: many messages of random lengths arrive in order with their stamps.
func (s suite) order(t *testing.T) {
	send, recv := s.pair(t, small)
	messages := s.many(5000)
	size := func(i int) int { return int(rand.New(rand.NewPCG(1, uint64(i))).IntN(small.SlotBytes + 1)) }
	require.NoError(t, conntest.Flow(send, recv, messages, size))
}

// depth: Slots messages can be sent while nobody receives.
func (s suite) depth(t *testing.T) {
	for _, slots := range []int{2, 3, 8} {
		send, recv := s.pair(t, transport.Limits{SlotBytes: 1 << 16, Slots: slots})
		for round := range 3 {
			for i := range slots {
				put(t, send, 1<<16, uint64(100*round+i))
			}
			for i := range slots {
				get(t, recv, 1<<16, uint64(100*round+i))
			}
		}
	}
}

// backPressure: a sender waits while Slots messages wait, and goes on as soon
// as one is released.
func (s suite) backPressure(t *testing.T) {
	send, recv := s.pair(t, small)
	messages := s.many(1000)
	ready := make(chan int) // the sender has a slot for this message
	go func() {
		defer close(ready)
		for i := range messages {
			n := i % small.SlotBytes
			b, err := send.Reserve(n)
			if err != nil {
				t.Errorf("message %d: %v", i, err)
				return
			}
			ready <- i
			payload.Fill(b.Bytes(), uint64(i))
			if err := send.Publish(conntest.Stamp(n, uint64(i))); err != nil {
				t.Errorf("message %d: %v", i, err)
				return
			}
		}
	}()
	for i := range small.Slots {
		require.Equal(t, i, <-ready)
	}
	for i := range messages {
		if !s.Loose {
			select {
			case n, ok := <-ready:
				require.False(t, ok, "a slot for message %d when %d of %d slots were given back", n, i, small.Slots)
			default:
			}
		}
		get(t, recv, i%small.SlotBytes, uint64(i))
		if next := i + small.Slots; next < messages {
			require.Equal(t, next, <-ready)
		}
	}
}

// room: as many messages as Free says can be sent while nobody receives.
func (s suite) room(t *testing.T) {
	send, recv := s.pair(t, small)
	queue, ok := send.(transport.FreeSlots)
	if !ok {
		t.Skip("not implemented, as it may")
	}
	require.Equal(t, small.Slots, queue.Free(), "of a new queue")
	sent, received := 0, 0
	for round := range 20 {
		free := queue.Free()
		require.LessOrEqual(t, free, small.Slots)
		for range free {
			put(t, send, 100, uint64(sent))
			sent++
		}
		if !s.Loose {
			require.Zero(t, queue.Free(), "all was sent")
			require.Equal(t, small.Slots, sent-received)
		}
		for range min(1+round%small.Slots, sent-received) {
			get(t, recv, 100, uint64(received))
			received++
		}
		if !s.Loose {
			require.Equal(t, 1+round%small.Slots, queue.Free(), "what was released")
		}
	}
}

// misuse: calls out of order are errors and do no harm.
func (s suite) misuse(t *testing.T) {
	send, recv := s.pair(t, small)
	require.Error(t, send.Publish(transport.Stamp{}), "publish without reserve")
	require.Error(t, recv.Release(), "release without next")
	put(t, send, 8, 1)
	require.Error(t, send.Publish(transport.Stamp{}), "publish twice")
	get(t, recv, 8, 1)
	require.Error(t, recv.Release(), "release twice")
	put(t, send, 8, 2)
	get(t, recv, 8, 2)
}

// self: a rank may be its own peer.
func (s suite) self(t *testing.T) {
	r := s.ranks(t, 1, small)[0]
	send, recv := conntest.Connect(t, r, r)
	for i := range 3 * small.Slots {
		put(t, send, 200, uint64(i))
		get(t, recv, 200, uint64(i))
	}
}

// manyPairs: all ranks talk to all at once, both ways, two connections a pair.
func (s suite) manyPairs(t *testing.T) {
	messages := s.many(200)
	ranks := s.ranks(t, 4, small)
	var pairs errgroup.Group
	for _, a := range ranks {
		for _, b := range ranks {
			for range 2 {
				send, recv := conntest.Connect(t, a, b)
				first := 1000 * (16*a.Config.Self.Rank + b.Config.Self.Rank)
				size := func(i int) int { return i - first }
				pairs.Go(func() error {
					return conntest.Run(send, recv, func() error { return conntest.PutAll(send, first, first+messages, size) },
						func() error { return conntest.GetAll(recv, first, first+messages, size) })
				})
			}
		}
	}
	require.NoError(t, pairs.Wait())
}

// into: a receiver with Into moves a payload straight to the caller's memory.
func (s suite) into(t *testing.T) {
	send, recv := s.pair(t, small)
	into, ok := recv.(transport.Into)
	if !ok {
		t.Skip("not implemented, as it may")
	}
	for i, n := range []int{0, 1, 40, 41, small.SlotBytes} {
		put(t, send, n, uint64(i))
		dst := make([]byte, n)
		stamp, err := into.NextInto(mem.Host(dst))
		require.NoError(t, err)
		require.NoError(t, conntest.Verify(dst, stamp, n, uint64(i)))
	}
	put(t, send, 7, 1)
	stamp, err := into.NextInto(mem.Host(make([]byte, 9)))
	var length *transport.LengthError
	require.ErrorAs(t, err, &length)
	require.Equal(t, &transport.LengthError{Got: 7, Want: 9}, length)
	require.Equal(t, conntest.Stamp(7, 1), stamp, "of the slot that has another length")
}

// from: a sender with From sends payloads from the caller's memory, which may change
// again after Flush. Slots of Publish in between keep their order.
func (s suite) from(t *testing.T) {
	limits := transport.Limits{SlotBytes: 1 << 18, Slots: 4}
	send, recv := s.pair(t, limits)
	from, ok := send.(transport.From)
	if !ok {
		t.Skip("not implemented, as it may")
	}
	require.NoError(t, from.Flush(), "nothing was sent")
	require.Error(t, from.PublishFrom(mem.Host(make([]byte, limits.SlotBytes+1)), transport.Stamp{}), "more than a slot")
	sizes := []int{0, 1, 4096, 1 << 16, limits.SlotBytes}
	messages := s.many(200)
	require.NoError(t, conntest.Run(send, recv, func() error {
		src := make([]byte, limits.SlotBytes)
		for i := range messages {
			n := sizes[i%len(sizes)]
			if i%3 == 0 {
				if err := conntest.Put(send, n, uint64(i)); err != nil {
					return err
				}
				continue
			}
			payload.Fill(src[:n], uint64(i))
			if err := from.PublishFrom(mem.Host(src[:n]), conntest.Stamp(n, uint64(i))); err != nil {
				return err
			}
			if err := from.Flush(); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		return conntest.GetAll(recv, 0, messages, func(i int) int { return sizes[i%len(sizes)] })
	}))
}

// allocations: a message costs none, once the path is warm.
func (s suite) allocations(t *testing.T) {
	send, recv := s.pair(t, small)
	for _, n := range []int{8, small.SlotBytes} {
		message := func() {
			b, err := send.Reserve(n)
			if err != nil || b.Len() != n {
				t.Fatal(err)
			}
			if err := send.Publish(transport.Stamp{1, 2}); err != nil {
				t.Fatal(err)
			}
			if b, _, err = recv.Next(); err != nil || b.Len() != n {
				t.Fatal(err)
			}
			if err := recv.Release(); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			message()
		}
		require.LessOrEqual(t, testing.AllocsPerRun(200, message), s.Allocs, "allocations of a message of %d bytes", n)
	}
}
