package verbs

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport/internal/listen"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A conn is the part that is common to both ends of a connection.
//
// One goroutine at a time is inside of a conn, between enter and leave: the one that
// sends or receives, or for a moment the Transport's (tend). The goroutine that closes
// the conn calls side.finish, or the one inside does when it leaves.
type conn struct {
	t        *Transport
	side     side
	dials    bool // this is the sending end
	peer     int  // rank
	shape    shape
	area     *area
	payloads mem.Region // of a placed connection; at the receiving end set by AcceptPlaced
	rails    []*rail
	active   int // number of rails that slots take by turns; the others stand by
	control  *control
	done     chan struct{} // closed when all is given back, except the area if the caller has a slot
	users    atomic.Int32  // of the area: the connection, and a caller who has a slot
	freed    sync.Once     // the area

	state   atomic.Uint32
	over    atomic.Pointer[error]   // the peer has closed or has gone
	failure atomic.Pointer[failure] // the last rail that failed
	told    atomic.Uint64           // slots that this end has told the peer it released
	sleeper sleeper
	lame    []lame // until limp
}

// A lame rail could not be connected.
type lame struct {
	rail *rail
	why  error
}

// A failure is the failure of a rail, at a time of fifo.Now.
type failure struct {
	err *LinkError
	at  int64
}

const (
	stateInside uint32 = 1 << iota
	stateClosed
)

const (
	// graceTime is how long an end waits for the peer's goodbye or death, which may be the
	// real reason why the last rail has failed.
	graceTime = 500 * time.Millisecond
	// answerTime is how long the peer may take to give up a rail that has failed here.
	answerTime = 5 * time.Second
	// drainTime is how long a dead queue pair may take to give its work back.
	drainTime = 2 * time.Second
)

// A side is the part in which the two ends differ.
type side interface {
	// progress takes completions. It is called inside.
	progress()
	// finish ends a connection that was closed. It is called once, and does not wait.
	finish()
}

// enter is an error if the end was closed.
func (c *conn) enter() error {
	for !c.state.CompareAndSwap(0, stateInside) {
		if c.state.Load()&stateClosed != 0 {
			return fifo.ErrClosed
		}
		runtime.Gosched()
	}
	return nil
}

// leave ends what enter began, and finishes the end if it was closed meanwhile.
func (c *conn) leave() {
	if !c.state.CompareAndSwap(stateInside, 0) {
		c.side.finish()
	}
}

// tend makes progress if no goroutine is inside.
func (c *conn) tend() {
	if c.state.CompareAndSwap(0, stateInside) {
		c.side.progress()
		c.leave()
	}
}

// Close ends the connection and tells the peer so; slots that were published before still reach the peer.
func (c *conn) Close() error {
	if c.state.Or(stateClosed) == 0 {
		c.side.finish()
	}
	return nil
}

// stopped is why this end does nothing any more, nil if it still works.
func (c *conn) stopped() error {
	if c.state.Load()&stateClosed != 0 {
		return fifo.ErrClosed
	}
	return c.t.cfg.Guard.Aborted()
}

// ended is why nothing is sent or received any more, nil if the connection still works.
func (c *conn) ended() error {
	if err := c.stopped(); err != nil {
		return err
	}
	if p := c.over.Load(); p != nil {
		return *p
	}
	return nil
}

// live is the rail for slot number n: of the rails that are up the first ones, active in number,
// take turns. It is nil if none is up.
func (c *conn) live(n uint64) (first *rail) {
	preferred := int(n % uint64(c.active))
	up := 0
	for _, r := range c.rails {
		if r.phase() != railUp {
			continue
		}
		if up == preferred {
			return r
		}
		if first == nil {
			first = r
		}
		up++
	}
	return first
}

// link is the error of a connection that has no rail left, or whose peer does not answer; else nil.
func (c *conn) link() error {
	f := c.failure.Load()
	if f == nil {
		return nil
	}
	if c.over.Load() != nil {
		return nil // ended returns that
	}
	now, dead, known := fifo.Now(), true, true
	for _, r := range c.rails {
		late := now-r.since.Load() > int64(answerTime)
		switch r.phase() {
		case railUp:
			dead = false
		case railFailing:
			if known = false; late {
				return f.err
			}
		case railAsked, railCalled, railTried: // the rail may come back
			dead = dead && late
		}
	}
	if dead && (known || now-f.at > int64(graceTime)) {
		return f.err
	}
	return nil
}

// event takes an event of a rail's port. While a port is down the device sends packets
// again, so the rail is given up at once only if another rail is up.
func (c *conn) event(r *rail, e ibverbs.EventType) {
	switch e {
	case ibverbs.EventDeviceFatal:
		c.fail(r, e.String(), false)
	case ibverbs.EventPortActive:
		r.portDown.Store(0)
		r.tryAt.Store(0)
	case ibverbs.EventPortErr:
		for _, o := range c.rails {
			if o != r && o.phase() == railUp && o.portDown.Load() == 0 {
				c.fail(r, e.String(), false)
				return
			}
		}
		r.portDown.Store(fifo.Now())
		c.t.log.Warn("ib: "+e.String(), "rank", c.t.cfg.Self.Rank, "peer", c.peer, "port", r.port.String())
	}
}

// checkPorts gives up rails whose ports have been down for longer than retryTime. A sender's
// device reports that by itself; a device that only receives cannot.
func (c *conn) checkPorts() {
	for _, r := range c.rails {
		if at := r.portDown.Load(); at != 0 && fifo.Now()-at > int64(c.t.opt.retryTime()) {
			c.fail(r, ibverbs.EventPortErr.String(), false)
		}
	}
}

// watch reads the peer's messages until the line is closed or breaks. It calls said with
// goodbyes, and with the peer's count for a rail that is down.
func (c *conn) watch(said func(m message)) {
	defer close(c.control.done)
	for {
		m, err := c.control.hear()
		if err != nil {
			err = gone(err)
			c.over.CompareAndSwap(nil, &err)
			return
		}
		said(m)
		if m.rail >= len(c.rails) {
			continue
		}
		switch r := c.rails[m.rail]; m.kind {
		case down:
			c.fail(r, m.text, true)
		case again:
			c.called(r, m.text)
		case proved:
			c.happen(r, peerHasProof)
		}
	}
}

// begin starts the background work of a connection.
func (c *conn) begin(said func(m message)) {
	for _, r := range c.rails {
		c.sleeper.add(r.cq.FD)
		r.port.dev.listen(r, func(e ibverbs.EventType) { c.event(r, e) })
	}
	listen.KeepAlive(c.control.conn)
	go c.watch(said)
}

// arm makes completions wake sleep. It returns true if they did not do so before: then the
// caller has to look for completions once more before it sleeps.
func (c *conn) arm() (again bool) {
	for _, r := range c.rails {
		if !r.armed {
			again, r.armed = true, true
			if err := r.port.dev.verbs.ReqNotifyCQ(r.cq); err != nil {
				c.fail(r, err.Error(), false)
			}
		}
	}
	return again
}

// sleep waits for a completion, pace.Patience at most.
func (c *conn) sleep() {
	c.sleeper.sleep(pace.Patience)
	for i, r := range c.rails {
		if c.sleeper.readable(i) && r.port.dev.verbs.GetCQEvent(r.cq) {
			r.armed = false
		}
	}
}

// unuse gives the area back when the last user calls it: a caller who has a slot keeps the area, even
// if the connection is closed.
func (c *conn) unuse() {
	if c.users.Add(-1) == 0 {
		c.free()
	}
}

// free gives the area back. No caller may use a slot any more.
func (c *conn) free() {
	c.freed.Do(func() { areas.give(c.area) })
	c.t.ends.Forget(c)
}

// destroy gives everything back: the rails, the line, and the connection's use of the area.
func (c *conn) destroy() {
	for _, r := range c.rails {
		r.port.dev.unlisten(r)
		r.destroy()
	}
	c.control.close()
	c.unuse()
	close(c.done)
}
