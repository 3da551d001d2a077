package auth

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Pending holds the connections of listeners that have not proved themselves yet.
// Their number and their time are bounded. When there are too many, Serve takes no
// more until one has proved itself, or the oldest has had its grace and is closed. An
// honest handshake takes a round trip, so it is never the oldest for long: silent
// strangers cannot keep others out, and thousands of ranks that come at once do not
// push each other out. Where the system says whose process called (Unix sockets on
// Linux), other users' connections are counted apart and cannot push out those of
// this user. The methods may be called from any goroutine.
type Pending struct {
	max  int
	time time.Duration
	log  *Log

	mu      sync.Mutex
	conns   [2][]guest    // of others, of this user; each oldest first
	vacancy chan struct{} // gets a value when a connection goes
	closed  bool
}

type guest struct {
	net.Conn
	since time.Time
}

// grace is the time that every connection has before it may be closed to make room.
const grace = 250 * time.Millisecond

// NewPending is for at most limit connections, each for at most d. Failures to accept
// one go to log.
func NewPending(limit int, d time.Duration, log *Log) *Pending {
	return &Pending{max: limit, time: d, log: log, vacancy: make(chan struct{}, 1)}
}

// Serve hands each connection that l accepts to handle, on a goroutine of its own,
// with a deadline. If handle returns without having called Trust, the connection
// is closed. Serve returns when l is closed and all handlers have returned.
func (p *Pending) Serve(l net.Listener, handle func(net.Conn)) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or reset before we took it
			p.log.Warn("listener: accept", "addr", l.Addr(), "err", err)
			p.evict()
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !p.enter(c) {
			c.Close()
			continue
		}
		work.Go(func() {
			handle(c)
			if p.leave(c) {
				c.Close()
			}
		})
	}
}

func (p *Pending) enter(c net.Conn) bool {
	class := &p.conns[0]
	if sameUser(c) {
		class = &p.conns[1]
	}
	p.await(class)
	now := time.Now()
	c.SetDeadline(now.Add(p.time))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if len(*class) >= p.max {
		(*class)[0].Close() // its handler fails and goes
		*class = slices.Delete(*class, 0, 1)
	}
	*class = append(*class, guest{c, now})
	return true
}

// await returns when there is room in a class, or when its oldest has had its grace.
func (p *Pending) await(class *[]guest) {
	for {
		p.mu.Lock()
		var left time.Duration
		if len(*class) >= p.max && !p.closed {
			left = grace - time.Since((*class)[0].since)
		}
		p.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-p.vacancy:
		case <-time.After(left):
		}
	}
}

// evict closes the oldest of the larger class, to have its descriptor back.
func (p *Pending) evict() {
	p.mu.Lock()
	defer p.mu.Unlock()
	class := &p.conns[0]
	if len(p.conns[1]) > len(*class) {
		class = &p.conns[1]
	}
	if len(*class) > 0 {
		(*class)[0].Close()
		*class = slices.Delete(*class, 0, 1)
	}
}

func (p *Pending) leave(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, class := range p.conns {
		if k := slices.IndexFunc(class, func(g guest) bool { return g.Conn == c }); k >= 0 {
			p.conns[i] = slices.Delete(class, k, k+1)
			p.vacate()
			return true
		}
	}
	return false
}

// vacate wakes await.
func (p *Pending) vacate() {
	select {
	case p.vacancy <- struct{}{}:
	default:
	}
}

// Trust notes that c has proved itself: c has no deadline any more and belongs to
// the handler. False means that c was closed in the meantime and must not be used.
// A handler calls Trust before it answers, so that no caller with an answer is closed.
func (p *Pending) Trust(c net.Conn) bool {
	if !p.leave(c) {
		return false
	}
	c.SetDeadline(time.Time{})
	return true
}

// Close closes the connections that have not proved themselves, and lets no more
// in. It does not wait for their handlers; Serve does.
func (p *Pending) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.vacate()
	for i, class := range p.conns {
		for _, c := range class {
			c.Close()
		}
		p.conns[i] = nil
	}
}

// Closed reports whether Close was called.
func (p *Pending) Closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
