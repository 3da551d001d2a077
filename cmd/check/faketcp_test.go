package check

import (
	"bytes"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"time"
)

// What TCP does, as this model has it: packets of fakePacket bytes of data, or fewer, and fakeHeader more; a window
// that begins with ten of them, grows while no queue stands, and shrinks at a loss; a packet that is sent again comes a
// round trip after the lost one if others have followed that, else after fakeRepeat, twice as long each time.
const (
	fakePacket = 1448
	fakeHeader = 52
	fakeWindow = 256 << 10 // at most
	fakeChunk  = 64 << 10  // that is sent as one
	fakeQueue  = 20 * time.Millisecond
	fakeRepeat = 200 * time.Millisecond
	fakeMoment = 50 * time.Microsecond // of what comes within one, a card tells at once
)

// A fakeConn is one end of a connection.
type fakeConn struct {
	in, out       *fakeStream
	host          byte
	here, there   net.Addr
	closed        bool
	reads, writes time.Time // deadlines
}

// A fakeStream is one direction of a connection. The net's mutex guards its state and that of its ends.
type fakeStream struct {
	net      *fakeNet
	from, to byte
	pace     float64       // part of the link's rate
	packet   int           // bytes of data in a packet at most
	flight   []*fakeParcel // that are not acknowledged, nor known to be lost for ever
	queue    []*fakeParcel // that are not read
	window   float64
	slow     float64   // window from which on it grows slowly
	shrunk   time.Time // when it did last
	stalled  time.Time // since when nothing passes
	heard    time.Time // when the last acknowledgement came
	total    int       // bytes
	count    segments
	wake     chan struct{}
}

// A fakeParcel is what is sent at once; without data it is the end of the stream.
type fakeParcel struct {
	data       []byte
	size       int
	due, acked time.Time // zero is never
	queued     bool      // behind others, for long
	alone      bool      // it was lost, and nothing has followed
}

func (n *fakeNet) connect(a, b byte, from string, to *net.TCPAddr, packet int) (near, far *fakeConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	stream := func(a, b byte) *fakeStream {
		return &fakeStream{net: n, from: a, to: b, pace: 1 - n.link(a, b).varies*n.way(a, b).random.Float64(),
			packet: packet, window: 10 * float64(packet), slow: fakeWindow, wake: make(chan struct{})}
	}
	there, back := stream(a, b), stream(b, a)
	at := &net.TCPAddr{IP: net.ParseIP(from)}
	near = &fakeConn{in: back, out: there, host: a, here: at, there: to}
	far = &fakeConn{in: there, out: back, host: b, here: to, there: at}
	n.conns = append(n.conns, near, far)
	return near, far
}

// rouse has all that wait for the stream look again.
func (s *fakeStream) rouse() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// await waits, without the mutex, until something changes or a time comes; a zero time never does.
func (s *fakeStream) await(times ...time.Time) {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	var comes <-chan time.Time
	if !first.IsZero() {
		timer := time.NewTimer(time.Until(first))
		defer timer.Stop()
		comes = timer.C
	}
	wake := s.wake
	s.net.mu.Unlock()
	select {
	case <-wake:
	case <-comes:
	}
	s.net.mu.Lock()
}

// passed reports whether a time has come; zero never does.
func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (c *fakeConn) Read(b []byte) (int, error) {
	s := c.in
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	for {
		switch stopped := s.net.stops(c.host); {
		case c.closed:
			return 0, net.ErrClosed
		case stopped:
			s.await()
		case passed(c.reads):
			return 0, os.ErrDeadlineExceeded
		case len(s.queue) == 0:
			s.await(c.reads)
		case !passed(s.queue[0].due):
			s.await(c.reads, s.queue[0].due)
		case s.queue[0].size == 0:
			return 0, io.EOF
		default:
			return s.take(b), nil
		}
	}
}

// take reads what has come.
func (s *fakeStream) take(b []byte) (n int) {
	for n < len(b) && len(s.queue) > 0 && s.queue[0].size > 0 && passed(s.queue[0].due) {
		p := s.queue[0]
		k := copy(b[n:], p.data)
		n += k
		if p.data = p.data[k:]; len(p.data) == 0 {
			s.queue = s.queue[1:]
		}
	}
	return n
}

func (c *fakeConn) Write(b []byte) (n int, err error) {
	s := c.out
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	for n < len(b) {
		room, next := s.room()
		least := min(len(b)-n, s.packet)
		switch stopped := s.net.stops(c.host); {
		case c.closed:
			return n, net.ErrClosed
		case stopped:
			s.await()
		case passed(c.writes):
			return n, os.ErrDeadlineExceeded
		case len(c.in.queue) > 0 && c.in.queue[0].size == 0 && passed(c.in.queue[0].due):
			return n, syscall.EPIPE
		case room < least:
			s.await(c.writes, next)
		default:
			k := min(len(b)-n, room, fakeChunk)
			if k > s.packet && k < len(b)-n {
				k -= k % s.packet
			}
			s.send(bytes.Clone(b[n:n+k]), k)
			n += k
		}
	}
	return n, nil
}

// room is how much the window has room for, and when it may have more.
func (s *fakeStream) room() (room int, next time.Time) {
	in := 0
	for len(s.flight) > 0 && passed(s.flight[0].acked) {
		p := s.flight[0]
		s.flight, s.heard = s.flight[1:], p.acked
		switch {
		case p.queued:
		case s.window < s.slow:
			s.window += float64(p.size)
		default:
			s.window += float64(s.packet*p.size) / s.window
		}
	}
	s.window = min(s.window, fakeWindow)
	for _, p := range s.flight {
		in += p.size
	}
	if len(s.flight) > 0 {
		next = s.flight[0].acked
	}
	return int(s.window) - in, next
}

// send puts a parcel on its way.
func (s *fakeStream) send(data []byte, size int) {
	l, w := s.net.link(s.from, s.to), s.net.way(s.from, s.to)
	if s.from == s.to {
		l = fakeLink{rate: 1e9}
	}
	now, p := time.Now(), &fakeParcel{data: data, size: size}
	packets := max(1, (size+s.packet-1)/s.packet)
	if l.flip && s.total/(1<<20) != (s.total+size)/(1<<20) {
		data[size/2] ^= 4
	}
	s.total += size
	s.count.Sent += packets
	s.flight, s.queue = append(s.flight, p), append(s.queue, p)
	if len(s.queue) == 1 {
		defer s.rouse()
	}
	if l.gone || l.longest > 0 && min(size, s.packet)+fakeHeader > l.longest || l.cut > 0 && s.total > l.cut ||
		!s.stalled.IsZero() {
		if s.stalled.IsZero() {
			s.stalled = now
		}
		return
	}
	bytes := float64(size+fakeHeader*packets) * (1 + l.twice)
	w.free = later(w.free, now).Add(seconds(bytes / (l.rate * s.pace)))
	leaves := w.free
	if u := l.uplink; u != nil {
		u.free = later(u.free, now).Add(seconds(bytes / u.rate))
		leaves = later(leaves, u.free)
	}
	back := s.net.link(s.to, s.from)
	trip := l.delay + back.delay + (l.jitter+back.jitter)/2
	p.queued = leaves.Sub(now) > fakeQueue
	jitter := w.upTo(l.jitter)
	if jitter > fakeQueue/4 { // which TCP takes for a queue
		s.slow = min(s.slow, s.window)
	}
	p.due = leaves.Add(l.delay + jitter)
	s.lose(p, packets, l.loss, trip)
	p.acked = p.due.Add(back.delay)
	if w.chance(0.25) {
		p.due = p.due.Add(w.upTo(l.busy))
	}
	p.due = p.due.Add(fakeMoment).Truncate(fakeMoment)
}

// lose has packets of a parcel be lost and repeated.
func (s *fakeStream) lose(p *fakeParcel, packets int, loss float64, trip time.Duration) {
	w, lost, worst := s.net.way(s.from, s.to), 0, 0
	for range packets {
		times := 0
		for w.chance(loss) {
			times++
		}
		lost, worst = lost+times, max(worst, times)
	}
	if lost == 0 {
		for _, q := range s.flight { // this parcel tells of those that were lost before it
			if q.alone && q.due.After(p.due.Add(trip)) {
				q.due, q.alone = p.due.Add(trip), false
				q.acked = q.due.Add(trip / 2)
				s.rouse()
			}
		}
		return
	}
	s.count.Again += lost
	s.count.Sent += lost
	repeat := fakeRepeat + trip
	if packets > 3 {
		p.due = p.due.Add(trip)
		worst--
	} else {
		p.alone = true
	}
	for ; worst > 0; worst-- {
		p.due = p.due.Add(repeat)
		repeat *= 2
		s.window = float64(s.packet)
	}
	if time.Since(s.shrunk) > trip {
		s.shrunk = time.Now()
		s.window = max(s.window*0.7, 2*float64(s.packet))
		s.slow = s.window
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// segments are what the host's kernel counts.
func (c *fakeConn) segments() segments {
	s := c.out
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	count := s.count
	if !s.stalled.IsZero() {
		again := int(math.Log2(1 + float64(time.Since(s.stalled))/float64(fakeRepeat)))
		count.Sent, count.Again = count.Sent+again, count.Again+again
	}
	return count
}

func (c *fakeConn) acknowledges(late time.Duration) bool {
	s := c.out
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.room()
	return len(s.flight) == 0 || time.Since(s.heard) < late
}

func (c *fakeConn) Close() error {
	s := c.out
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if !c.closed {
		c.closed = true
		s.send(nil, 0)
		c.in.rouse()
	}
	return nil
}

func (c *fakeConn) LocalAddr() net.Addr  { return c.here }
func (c *fakeConn) RemoteAddr() net.Addr { return c.there }

func (c *fakeConn) SetDeadline(t time.Time) error {
	return c.set(func() { c.reads, c.writes = t, t })
}
func (c *fakeConn) SetReadDeadline(t time.Time) error  { return c.set(func() { c.reads = t }) }
func (c *fakeConn) SetWriteDeadline(t time.Time) error { return c.set(func() { c.writes = t }) }

func (c *fakeConn) set(change func()) error {
	c.in.net.mu.Lock()
	defer c.in.net.mu.Unlock()
	change()
	c.in.rouse()
	c.out.rouse()
	return nil
}
