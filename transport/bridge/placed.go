package bridge

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// A lane is a connection with placed slots, and the queue of the kernel that fills or reads them.
// No call on a lane waits, so the polling goroutine serves all lanes.
//
// The first Slots slots of a connection are greetings: no bytes, but the lane's number. So the
// kernel's slot n, which is the connection's slot n + Slots, has the same memory for both.
type lane struct {
	peer   int
	number int
	q      Queue
	send   transport.PlacedSendConn // or
	recv   transport.PlacedRecvConn

	greeted int
	count   uint64 // slots published, or received
	back    uint64 // of these, the slots that the kernel, or the connection, has got back
}

// OutPlaced is Out for queues whose slots are placed. It dials a connection for each lane in turn.
func (b *Bridge) OutPlaced(peer int, queues []Queue, dial func(lane int) (transport.PlacedSendConn, error)) {
	b.work.Go(func() {
		trace.Name("bridge")
		for i, q := range queues {
			c, err := dial(i)
			if err == nil {
				err = b.add(c, &lane{peer: peer, number: i, q: q, send: c})
			}
			if err != nil {
				b.fail(peer, "send", err)
				return
			}
		}
	})
}

// InPlaced is In for queues whose slots are placed. It accepts a connection for each lane in turn.
func (b *Bridge) InPlaced(peer int, queues []Queue, accept func(lane int) (transport.PlacedRecvConn, error)) {
	b.work.Go(func() {
		trace.Name("bridge")
		for i, q := range queues {
			c, err := accept(i)
			if err == nil {
				err = b.add(c, &lane{peer: peer, number: i, q: q, recv: c})
			}
			if err != nil {
				b.fail(peer, "recv", err)
				return
			}
		}
	})
}

// add keeps the lane's connection and has poll move its slots.
func (b *Bridge) add(c interface{ Close() error }, l *lane) error {
	if err := b.keep(c); err != nil {
		return err
	}
	b.mu.Lock()
	b.lanes = append(slices.Clip(b.lanes), l)
	b.attend()
	b.mu.Unlock()
	b.Wake()
	return nil
}

// move moves what can be moved on all lanes. It reports whether there was anything.
func (b *Bridge) move(lanes []*lane) (moved bool) {
	for _, l := range lanes {
		some, phase, err := false, "send", error(nil)
		if l.send != nil {
			some, err = l.out()
		} else {
			phase = "recv"
			some, err = l.in()
		}
		moved = moved || some
		if err == nil {
			continue
		}
		b.mu.Lock()
		b.lanes = slices.DeleteFunc(slices.Clone(b.lanes), func(o *lane) bool { return o == l })
		b.mu.Unlock()
		b.fail(l.peer, phase, err)
	}
	return moved
}

// out publishes what the kernel has posted, and gives it back the slots that are free again.
func (l *lane) out() (moved bool, err error) {
	q, posted := &l.q, l.q.Posted.Load()
	if l.greeted == q.Slots && l.back == posted {
		return false, nil // nothing to send, and nothing on its way
	}
	free := l.send.Free()
	if back := int64(l.count) - int64(q.Slots-free); back > int64(l.back) {
		if free == q.Slots { // perhaps because the connection has ended
			if _, err := l.send.Reserve(0); err != nil {
				return false, err
			}
		}
		l.back, moved = uint64(back), true
		q.Seen.Store(l.back)
	}
	for ; free > 0; free-- {
		var h header
		greets := l.greeted < q.Slots
		switch {
		case greets:
			h.stamp[0] = uint64(l.number)
		case l.count == posted:
			return moved, nil
		default:
			h = *q.header(l.count)
		}
		if h.bytes > uint64(q.SlotBytes) {
			return moved, fmt.Errorf("slot %d has %d bytes of %d", l.count, h.bytes, q.SlotBytes)
		}
		if _, err := l.send.Reserve(int(h.bytes)); err != nil {
			return moved, err
		}
		if err := l.send.Publish(h.stamp); err != nil {
			return moved, err
		}
		if moved = true; greets {
			l.greeted++
		} else {
			l.count++
		}
	}
	return moved, nil
}

// in tells the kernel of what has arrived, and the connection of what the kernel has released.
func (l *lane) in() (moved bool, err error) {
	q := &l.q
	for posted := min(q.Posted.Load(), l.count); l.back < posted; l.back++ {
		if err := l.recv.Release(); err != nil {
			return moved, err
		}
		moved = true
	}
	for arrived := l.recv.Arrived(); arrived > 0 && l.count-l.back < uint64(q.Slots); arrived-- {
		r, stamp, err := l.recv.Next()
		if err != nil {
			return moved, err
		}
		moved = true
		if l.greeted < q.Slots {
			if stamp[0] != uint64(l.number) || r.Len() != 0 {
				return moved, fmt.Errorf("a connection for lane %d in place of lane %d", stamp[0], l.number)
			}
			if err := l.recv.Release(); err != nil {
				return moved, err
			}
			l.greeted++
			continue
		}
		if slot := q.Placed.Slice(int(l.count%uint64(q.Slots))*q.SlotBytes, q.SlotBytes); r.Len() > q.SlotBytes ||
			r.Len() > 0 && r.Ptr() != slot.Ptr() {
			return moved, fmt.Errorf("%d bytes came at %#x for slot %d of %d bytes at %#x", r.Len(), r.Ptr(), l.count,
				q.SlotBytes, slot.Ptr())
		}
		*q.header(l.count) = header{stamp: stamp, bytes: uint64(r.Len())}
		l.count++
		q.Seen.Store(l.count)
	}
	return moved, nil
}
