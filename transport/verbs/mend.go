package verbs

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A rail that was given up is tried again after firstWait, and after each failure the wait doubles, up to longestWait.
// When its port comes up again it is tried at once.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 10 * time.Second
)

// fail gives a rail up and makes the peer do the same; remote says that the peer has done so first. Any goroutine may
// call it.
func (c *conn) fail(r *rail, reason string, remote bool) {
	e := railBroke
	if remote {
		e = peerGaveUp
	}
	r.mu.Lock()
	r.reason = reason
	before := c.happenLocked(r, e)
	r.mu.Unlock()
	if before != railUp {
		return
	}
	err := &LinkError{Port: r.port.String(), Peer: r.peer.Port, Remote: remote, Reason: reason}
	c.failure.Store(&failure{err, fifo.Now()})
	if c.over.Load() == nil && c.state.Load()&stateClosed == 0 {
		c.t.log.Warn("ib: a rail has failed", "rank", c.t.cfg.Self.Rank, "peer", c.peer, "port", err.Port, "reason", reason)
	}
}

// happen applies an event to a rail's phase, and does the actions that follow.
func (c *conn) happen(r *rail, e railEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.happenLocked(r, e)
}

// happenLocked is happen for a caller that holds the rail's mu, so that messages leave in the order of the events.
func (c *conn) happenLocked(r *rail, e railEvent) (before phase) {
	before = r.phase()
	next, a := before.step(e, c.dials)
	if next == before {
		return before
	}
	now := fifo.Now()
	r.since.Store(now)
	if r.life.Store(uint32(next)); a.kill {
		r.wait = min(max(2*r.wait, firstWait), longestWait)
		if before == railUp {
			r.wait = firstWait
		}
		r.tryAt.Store(now + int64(r.wait))
		r.kill()
	}
	switch a.say {
	case 0:
	case again:
		c.control.say(message{kind: again, rail: r.index,
			text: string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, r.qp.Num), r.psn))})
	default:
		// told is read after the rail is down, and a credit is posted after told is set: so the
		// peer hears of every credit, here or over a rail that is up.
		c.control.say(message{kind: a.say, rail: r.index, count: c.told.Load(), text: r.reason})
	}
	if next == railUp {
		c.t.log.Info("ib: a rail is up again", "rank", c.t.cfg.Self.Rank, "peer", c.peer, "port", r.port.String())
	}
	return before
}

// called notes the peer's new queue pair, which text describes.
func (c *conn) called(r *rail, text string) {
	if len(text) != 8 {
		c.fail(r, fmt.Sprintf("malformed call of %d bytes", len(text)), false)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peer.QPN, r.peer.PSN = binary.BigEndian.Uint32([]byte(text)), binary.BigEndian.Uint32([]byte(text[4:]))
	c.happenLocked(r, peerCalls)
}

// mend calls back a rail that is down and has no work under way, if its port is up. The caller is inside.
func (c *sendConn) mend(r *rail) {
	if fifo.Now() < r.tryAt.Load() || c.ended() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait = min(2*r.wait, longestWait)
	r.tryAt.Store(fifo.Now() + int64(r.wait))
	if r.port.active() && r.remake(&c.t.opt) == nil {
		r.retired = false
		c.happenLocked(r, railMade)
	}
}

// rejoin connects the sender's new queue pair to the peer's, and sends a write of 0 bytes, which the peer's device has
// to acknowledge. The caller is inside.
func (c *sendConn) rejoin(r *rail) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase() != railCalled {
		return
	}
	err := r.port.lead(r.qp, r.psn, r.peer, &c.t.opt)
	if err == nil {
		err = r.probe()
	}
	c.joined(r, err)
}

// rejoin makes the receiver's new queue pair and connects it to the sender's, after the old one has given back all
// posted receives: slots that came over it count. The caller is inside.
func (c *recvConn) rejoin(r *rail) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase() != railCalled || r.used < r.depth && fifo.Now()-r.since.Load() < int64(drainTime) {
		return
	}
	var err error
	if !r.port.active() {
		err = fmt.Errorf("%v", ibverbs.EventPortErr)
	}
	if err == nil {
		err = r.remake(&c.t.opt)
	}
	if err == nil {
		err = r.port.lead(r.qp, r.psn, r.peer, &c.t.opt)
	}
	if err == nil && c.readBack && r.loop == nil {
		err = r.loopback(&c.t.opt)
	}
	c.joined(r, err)
}

// joined applies the result of an attempt to rejoin to the rail's phase. The caller holds the rail's mu.
func (c *conn) joined(r *rail, err error) {
	if err != nil {
		r.reason = err.Error()
		c.happenLocked(r, railBroke)
		return
	}
	c.happenLocked(r, railJoined)
}

// remake makes a new queue pair in place of one that is dead. Its number tells its completions from those of the old
// one.
func (r *rail) remake(o *Options) error {
	v := r.port.dev.verbs
	if r.qp != nil {
		_ = v.DestroyQP(r.qp)
		r.qp = nil
	}
	q, err := r.port.queuePair(r.cq, r.sends, r.depth, ibverbs.AccessRemoteWrite, o)
	if err != nil {
		return err
	}
	var psn [4]byte
	rand.Read(psn[:])
	r.qp, r.psn = q, binary.LittleEndian.Uint32(psn[:])&0xffffff
	r.posted, r.used = 0, r.depth
	r.portDown.Store(0)
	return r.restock()
}

// probe posts a write of 0 bytes to the peer.
func (r *rail) probe() error {
	w := r.fill(0, probeID, piece{})
	w.Then(nil)
	w.Opcode = ibverbs.OpRDMAWrite
	if err := r.port.dev.verbs.PostSend(r.qp, w); err != nil {
		return err
	}
	r.posted++
	return nil
}
