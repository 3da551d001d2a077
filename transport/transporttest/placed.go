package transporttest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// Slots is memory for the slots of placed connections, and its bytes as the host sees them.
type Slots struct {
	transport.Memory
	View []byte
}

// View is the bytes of memory that is exported by a file, until the test has ended.
func View(tb testing.TB, m transport.Memory) []byte {
	b, unmap, err := openBuffer(m)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, unmap()) })
	return b
}

// HostSlots is host memory that begins at a page.
func HostSlots(tb testing.TB, bytes int) Slots {
	const page = 4096
	b := make([]byte, bytes+page)
	at := int(-mem.Host(b).Ptr() & (page - 1))
	return Slots{transport.Memory{Region: mem.Host(b[at:][:bytes])}, b[at:][:bytes]}
}

// Placed checks a transport that is a transport.Placer, with slots in memory that memory makes:
// HostSlots, FileSlots, or a GPU's. The memory must last until the test has ended.
func Placed(t *testing.T, open Open, memory func(tb testing.TB, bytes int) Slots) {
	s := placedSuite{suite{open: open}, memory}
	runAll(t, []check{
		{"slots", s.slots},
		{"room", s.room},
		{"order", s.order},
		{"beside others", s.besides},
		{"misuse", s.misuse},
		{"strange memory", s.strange},
		{"close", s.close},
		{"ends", s.ends},
		{"allocations", s.allocations},
	})
}

type placedSuite struct {
	suite
	memory func(tb testing.TB, bytes int) Slots
}

// placedLimits are those of a kernel's queue.
var placedLimits = transport.Limits{SlotBytes: 4096, Slots: 4}

// A PlacedEnd is one end of a placed connection, and its slots.
type PlacedEnd struct {
	Send   transport.PlacedSendConn // or
	Recv   transport.PlacedRecvConn
	Limits transport.Limits
	Slots
}

// view is the bytes of slot n.
func (e *PlacedEnd) view(n int) []byte {
	return e.View[n%e.Limits.Slots*e.Limits.SlotBytes:][:e.Limits.SlotBytes]
}

// is reports whether a region is the first bytes of slot n.
func (e *PlacedEnd) is(r mem.Region, n, bytes int) bool {
	return r.Dev() == e.Dev() && r.Len() == bytes && r.Ptr() == e.Ptr()+uintptr(n%e.Limits.Slots*e.Limits.SlotBytes)
}

// pairs makes two ranks with placed connections from the first to the second.
func (s placedSuite) pairs(tb testing.TB, n int) (from, to *rank, ends [][2]*PlacedEnd) {
	tb.Helper()
	r := s.ranks(tb, 2, placedLimits)
	from, to = r[0], r[1]
	bytes := placedLimits.Slots * placedLimits.SlotBytes
	var all [2]Slots
	for i := range r {
		all[i] = s.memory(tb, n*bytes)
		_, err := r[i].Transport.(transport.Placer).Register(all[i].Memory)
		require.NoError(tb, err)
	}
	for k := range n {
		ends = append(ends, [2]*PlacedEnd{})
		for i := range r {
			m := all[i].Memory
			m.Region = m.Slice(k*bytes, bytes)
			ends[k][i] = &PlacedEnd{Limits: placedLimits, Slots: Slots{m, all[i].View[k*bytes:][:bytes]}}
		}
	}
	require.NoError(tb, conntest.Run(from.Transport, to.Transport, func() (err error) {
		for k := 0; k < n && err == nil; k++ {
			ends[k][0].Send, err = from.Transport.(transport.Placer).DialPlaced(to.Config.Self, to.Addr, ends[k][0].Region)
		}
		return err
	}, func() (err error) {
		for k := 0; k < n && err == nil; k++ {
			ends[k][1].Recv, err = to.Transport.(transport.Placer).AcceptPlaced(from.Config.Self, ends[k][1].Region)
		}
		return err
	}))
	return from, to, ends
}

// until waits for an effect of a device, twice patience at most.
func until(what string, holds func() bool) error {
	start := time.Now()
	for i := 0; !holds(); i++ {
		switch {
		case time.Since(start) > 2*patience:
			return fmt.Errorf("%s: not within %v", what, 2*patience)
		case i < 20:
			runtime.Gosched()
		default:
			time.Sleep(10 * time.Microsecond) // the device is a goroutine too
		}
	}
	return nil
}

// Put fills and publishes slot n, which is free.
func (e *PlacedEnd) Put(n, bytes int) error {
	payload.Fill(e.view(n)[:bytes], uint64(n))
	r, err := e.Send.Reserve(bytes)
	if err != nil {
		return err
	}
	if !e.is(r, n, bytes) {
		return fmt.Errorf("reserve gave %d bytes at %#x for %d of slot %d", r.Len(), r.Ptr(), bytes, n)
	}
	return e.Send.Publish(conntest.Stamp(bytes, uint64(n)))
}

// Get takes slot n, which has arrived.
func (e *PlacedEnd) Get(n, bytes int) error {
	r, stamp, err := e.Recv.Next()
	if err != nil {
		return err
	}
	if !e.is(r, n, r.Len()) {
		return fmt.Errorf("next gave %d bytes at %#x, not of slot %d", r.Len(), r.Ptr(), n)
	}
	return conntest.Verify(e.view(n)[:r.Len()], stamp, bytes, uint64(n))
}

// sizeOf is how many bytes slot n has in these tests.
func sizeOf(n int) int {
	return []int{0, 1, placedLimits.SlotBytes, 100, 4, placedLimits.SlotBytes - 1, 2048}[n%7]
}

// flow sends slots, filling each as soon as Free counts it, and has the receiver hold up to hold of
// them, which must not change meanwhile.
func flow(t *testing.T, from, to *PlacedEnd, slots, hold int) {
	t.Helper()
	require.NoError(t, conntest.Run(from.Send, to.Recv, func() error {
		for n := range slots {
			if err := until("a free slot", func() bool { return from.Send.Free() > 0 }); err != nil {
				return err
			}
			if err := from.Put(n, sizeOf(n)); err != nil {
				return err
			}
		}
		return until("all are free", func() bool { return from.Send.Free() == placedLimits.Slots })
	}, func() error {
		released := 0
		for n := range slots {
			if err := until("a slot", func() bool { return to.Recv.Arrived() > 0 }); err != nil {
				return err
			}
			if err := to.Get(n, sizeOf(n)); err != nil {
				return err
			}
			for n+1-released >= hold || n+1 == slots && released < slots {
				i := released
				size, number := sizeOf(i), uint64(i)
				err := conntest.Verify(to.view(i)[:size], conntest.Stamp(size, number), size, number)
				if err != nil {
					return fmt.Errorf("held back: %w", err)
				}
				if err := to.Recv.Release(); err != nil {
					return err
				}
				released++
			}
		}
		return nil
	}))
}

// slots: sent bytes lie in the slots of the receiver, until it releases them.
func (s placedSuite) slots(t *testing.T) {
	for hold := range placedLimits.Slots + 1 {
		_, _, ends := s.pairs(t, 1)
		flow(t, ends[0][0], ends[0][1], s.many(200), max(1, hold))
	}
}

// room: no call waits for slots that Free and Arrived count.
func (s placedSuite) room(t *testing.T) {
	_, _, ends := s.pairs(t, 1)
	from, to := ends[0][0], ends[0][1]
	for round := range 5 {
		first := round * placedLimits.Slots
		require.NoError(t, until("all are free", func() bool { return from.Send.Free() == placedLimits.Slots }))
		require.Zero(t, to.Recv.Arrived(), "nothing was sent")
		for i := range placedLimits.Slots {
			require.LessOrEqual(t, from.Send.Free(), placedLimits.Slots)
			require.NoError(t, from.Put(first+i, 100))
		}
		require.NoError(t, until("all have arrived", func() bool {
			_ = from.Send.Free()
			return to.Recv.Arrived() == placedLimits.Slots
		}))
		for i := range placedLimits.Slots {
			require.NoError(t, to.Get(first+i, 100))
			require.Equal(t, placedLimits.Slots-1-i, to.Recv.Arrived())
		}
		for range placedLimits.Slots {
			require.NoError(t, to.Recv.Release())
		}
	}
}

// order: connections are accepted in the order in which they were dialled.
func (s placedSuite) order(t *testing.T) {
	_, _, ends := s.pairs(t, 5)
	for k := range ends {
		payload.Fill(ends[k][0].view(0), uint64(1000+k))
		_, err := ends[k][0].Send.Reserve(50)
		require.NoError(t, err)
		require.NoError(t, ends[k][0].Send.Publish(conntest.Stamp(50, uint64(1000+k))))
	}
	for k := range ends {
		require.NoError(t, until("a slot", func() bool {
			_ = ends[k][0].Send.Free()
			return ends[k][1].Recv.Arrived() > 0
		}))
		_, stamp, err := ends[k][1].Recv.Next()
		require.NoError(t, err)
		require.NoError(t, conntest.Verify(ends[k][1].view(0)[:50], stamp, 50, uint64(1000+k)), "connection %d", k)
	}
}

// besides: the same ranks have other connections too, placed ones the other way among them.
func (s placedSuite) besides(t *testing.T) {
	from, to, ends := s.pairs(t, 2)
	send, recv := conntest.Connect(t, from, to)
	for n := range 50 {
		put(t, send, 100, uint64(n))
		get(t, recv, 100, uint64(n))
	}
	flow(t, ends[1][0], ends[1][1], 20, 1)
	flow(t, ends[0][0], ends[0][1], 20, 2)
}

// misuse: calls out of order are errors and do no harm.
func (s placedSuite) misuse(t *testing.T) {
	_, _, ends := s.pairs(t, 1)
	from, to := ends[0][0], ends[0][1]
	require.Error(t, from.Send.Publish(transport.Stamp{}), "publish without reserve")
	require.Error(t, to.Recv.Release(), "release without next")
	_, err := from.Send.Reserve(placedLimits.SlotBytes + 1)
	require.Error(t, err, "more than a slot")
	flow(t, from, to, 20, 2)
	require.Error(t, to.Recv.Release(), "release twice")
}

// strange: slots that were not registered, or of another length, are an error at once.
func (s placedSuite) strange(t *testing.T) {
	r := s.ranks(t, 2, placedLimits)
	bytes := placedLimits.Slots * placedLimits.SlotBytes
	m := s.memory(t, 2*bytes)
	p := r[0].Transport.(transport.Placer)
	_, err := p.DialPlaced(r[1].Config.Self, r[1].Addr, m.Slice(0, bytes))
	require.Error(t, err, "not registered")
	_, err = p.AcceptPlaced(r[1].Config.Self, m.Slice(0, bytes))
	require.Error(t, err, "not registered")
	release, err := p.Register(m.Memory)
	require.NoError(t, err)
	_, err = p.DialPlaced(r[1].Config.Self, r[1].Addr, m.Slice(0, bytes-1))
	require.Error(t, err, "too short")
	require.NoError(t, release())
	_, err = p.DialPlaced(r[1].Config.Self, r[1].Addr, m.Slice(0, bytes))
	require.Error(t, err, "no longer registered")
	require.NoError(t, release(), "again")
}

// close: what was published before the sender closes arrives.
func (s placedSuite) close(t *testing.T) {
	_, _, ends := s.pairs(t, 1)
	from, to := ends[0][0], ends[0][1]
	for n := range 3 {
		require.NoError(t, from.Put(n, 300))
	}
	require.NoError(t, from.Send.Close())
	require.NoError(t, from.Send.Close(), "again")
	for n := range 3 {
		require.NoError(t, until("a slot", func() bool { return to.Recv.Arrived() > 0 }))
		require.NoError(t, to.Get(n, 300))
	}
	require.NoError(t, until("the end", func() bool { return to.Recv.Arrived() > 0 }))
	_, _, err := to.Recv.Next()
	require.ErrorIs(t, err, transport.ErrClosed)
}

// ends: Free and Arrived of a connection that has ended are more than 0, and the next call returns the reason.
func (s placedSuite) ends(t *testing.T) {
	abort := errors.New("it was enough")
	for _, c := range []struct {
		name string
		end  func(from, to *rank, ends [2]*PlacedEnd) error
		send error // what the sender hears, nil: it is the one who ends
		recv error
	}{
		{"the sender closes", func(_, _ *rank, e [2]*PlacedEnd) error { return e[0].Send.Close() }, nil, fifo.ErrClosed},
		{"the receiver closes", func(_, _ *rank, e [2]*PlacedEnd) error { return e[1].Recv.Close() }, fifo.ErrClosed, nil},
		{"the sender's transport closes", func(a, _ *rank, _ [2]*PlacedEnd) error { return a.Transport.Close() },
			nil, fifo.ErrClosed},
		{"the receiver's transport closes", func(_, b *rank, _ [2]*PlacedEnd) error { return b.Transport.Close() },
			fifo.ErrClosed, nil},
		{"abort", func(a, b *rank, _ [2]*PlacedEnd) error {
			a.Config.Guard.Abort(abort)
			b.Config.Guard.Abort(abort)
			return nil
		}, abort, abort},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to, ends := s.pairs(t, 1)
			send, recv := ends[0][0], ends[0][1]
			flow(t, send, recv, 5, 1)
			require.NoError(t, c.end(from, to, ends[0]))
			if c.send != nil {
				var err error
				next := 5
				require.NoError(t, until("the sender hears", func() bool {
					if send.Send.Free() > 0 {
						err = send.Put(next, 10)
						next++
					}
					return err != nil
				}))
				require.ErrorIs(t, err, c.send)
				require.Equal(t, placedLimits.Slots, send.Send.Free(), "of a connection that has ended")
			}
			if c.recv != nil {
				require.NoError(t, until("the receiver hears", func() bool { return recv.Recv.Arrived() > 0 }))
				_, _, err := recv.Recv.Next()
				require.ErrorIs(t, err, c.recv)
			}
		})
	}
}

// allocations: a slot costs none.
func (s placedSuite) allocations(t *testing.T) {
	_, _, ends := s.pairs(t, 1)
	from, to := ends[0][0], ends[0][1]
	message := func() {
		for from.Send.Free() == 0 {
			runtime.Gosched()
		}
		if _, err := from.Send.Reserve(100); err != nil {
			t.Fatal(err)
		}
		if err := from.Send.Publish(transport.Stamp{1, 2}); err != nil {
			t.Fatal(err)
		}
		for to.Recv.Arrived() == 0 {
			_ = from.Send.Free()
		}
		if _, _, err := to.Recv.Next(); err != nil {
			t.Fatal(err)
		}
		if err := to.Recv.Release(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		message()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(200, message), s.Allocs)
}
