package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	handshakeTime = 5 * time.Second        // for a connection to prove itself
	maxGuests     = 1024                   // connections that have not yet
	lingerTime    = 2 * time.Second        // for late comers to be told why they are late
	goodbyeTime   = time.Second            // for bye, and for a rank to close after it
	flushTime     = 400 * time.Millisecond // for last words to be written
)

// A hub is the centre of one group: it listens, believes, seats and, when all
// are seated, carries the room's messages.
type hub struct {
	id     ID
	log    *slog.Logger
	limit  *limiter
	ln     net.Listener
	linger time.Duration
	wg     sync.WaitGroup // every goroutine of the hub

	mu      sync.Mutex
	guests  []net.Conn // not yet proved, oldest first
	lobby   lobby
	verdict *refusal // why the group will not come together
	room    *room    // once it has
	seated  int      // connections of ranks that are open
	foreign int      // connections that spoke our protocol with another key
	timer   *time.Timer
	stopped bool
}

func newHub(id ID, ln net.Listener, o ListenOptions) *hub {
	h := &hub{id: id, ln: ln, log: o.logger(), limit: &limiter{}, linger: lingerTime}
	h.timer = time.AfterFunc(o.timeout(), h.abandoned)
	h.wg.Add(1)
	go h.accept()
	return h
}

// abandoned ends a hub that no rank has come to.
func (h *hub) abandoned() {
	h.mu.Lock()
	came := h.lobby.seats != nil
	h.mu.Unlock()
	if !came {
		h.log.Warn("rendezvous closed: no rank came", "addr", h.id.Addr())
		h.stop()
	}
}

func (h *hub) accept() {
	defer h.wg.Done()
	for {
		conn, err := h.ln.Accept()
		switch {
		case err == nil:
			h.wg.Add(1)
			go h.serve(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // interrupted, out of descriptors, reset before we took it
			h.warn("rendezvous: accept", "err", err)
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// serve is the life of one connection.
func (h *hub) serve(conn net.Conn) {
	defer h.wg.Done()
	defer conn.Close()
	if !h.admit(conn) {
		return
	}
	l := newLink(conn)
	c, err := h.greet(l)
	h.dismiss(conn)
	if err != nil {
		h.warn("rendezvous: stranger dropped", "from", conn.RemoteAddr(), "err", err)
		return
	}
	s := &seat{claim: *c, from: conn.RemoteAddr().String(), link: l}
	if !h.sit(s) {
		l.flush(flushTime)
		return
	}
	why := h.listen(s)
	h.rise(s, why)
	l.close()
}

// greet makes both sides prove that they know the key.
func (h *hub) greet(l *link) (*claim, error) {
	l.conn.SetDeadline(time.Now().Add(handshakeTime))
	defer l.conn.SetDeadline(time.Time{})
	m, err := l.receive(maxGreeting)
	if err != nil {
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	hi, ok := m.(*hello)
	if !ok {
		return nil, fmt.Errorf("%w: no greeting", errMalformed)
	}
	if hi.Version != version {
		l.send(&refusal{Cause: causeVersion, Rank: -1, Reason: fmt.Sprintf("the rendezvous speaks version %d, this rank %d: use one version of ringo everywhere", version, hi.Version)})
		l.flush(flushTime)
		return nil, fmt.Errorf("speaks version %d, not %d", hi.Version, version)
	}
	ours := randomNonce()
	l.send(&challenge{Nonce: ours, Proof: prove(h.id.key(), "hub", hi.Nonce, ours, nil)})
	m, err = l.receive(maxGreeting)
	if err == io.EOF { // it found our proof wrong, or was only curious
		h.mu.Lock()
		h.foreign++
		h.mu.Unlock()
		return nil, errors.New("it has another key (another job, or another RINGO_COMM_SECRET)")
	}
	if err != nil {
		return nil, fmt.Errorf("no proof: %w", err)
	}
	c, ok := m.(*claim)
	if !ok || !same(c.Proof, prove(h.id.key(), "rank", ours, hi.Nonce, c.body(nil))) {
		return nil, errors.New("wrong proof")
	}
	return c, nil
}

// sit seats a rank, or refuses it. A conflict before the start ends the group
// for all: it cannot come together any more.
func (h *hub) sit(s *seat) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.verdict != nil {
		s.link.send(h.verdict)
		return false
	}
	if no := h.lobby.sit(s); no != nil {
		if h.room == nil {
			h.refuseAll(no)
		} else {
			h.warn("rendezvous: late comer refused", "reason", no.Reason)
		}
		s.link.send(no)
		return false
	}
	h.seated++
	s.link.send(&welcome{})
	if h.lobby.full() {
		h.start()
	}
	return true
}

// start turns the lobby into a room. Under mu.
func (h *hub) start() {
	h.room = newRoom(h.lobby.size, func(to []int, m message) {
		frame := encode(m)
		for _, rank := range to {
			h.lobby.seats[rank].link.sendFrame(frame)
		}
	})
	begin := &start{Salt: randomNonce(), Hosts: h.lobby.hosts()}
	h.room.tell(h.room.others(-1), begin)
	h.endLater(h.closeDoor)
}

// refuseAll ends a group that cannot come together. Under mu.
func (h *hub) refuseAll(v *refusal) {
	h.log.Warn("rendezvous: " + v.Reason)
	h.verdict = v
	for _, s := range h.lobby.seats {
		s.link.send(v)
	}
	h.endLater(h.stop)
}

func (h *hub) endLater(f func()) {
	h.timer.Stop()
	h.timer = time.AfterFunc(h.linger, f)
}

// listen reads a rank's messages until its connection ends, and says why.
func (h *hub) listen(s *seat) (why string) {
	for {
		m, err := s.link.receive(maxBlob + 64)
		if err != nil {
			return explain(err)
		}
		r := h.together()
		if r == nil {
			h.wait(s, m)
			continue
		}
		if !r.hear(s.Rank, m) {
			return fmt.Sprintf("it sent what it must not: %T", m)
		}
		if _, ok := m.(*leave); ok {
			s.link.conn.SetReadDeadline(time.Now().Add(goodbyeTime))
		}
	}
}

// together is the room of a group that has come together, else nil.
func (h *hub) together() *room {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.room
}

// wait takes what a rank may say before the start.
func (h *hub) wait(s *seat, m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, ok := m.(*giveUp)
	if !ok || h.verdict != nil || h.room != nil { // a start just now is taken
		return
	}
	strangers := ""
	if h.foreign > 0 {
		strangers = fmt.Sprintf("; %d connections with another key were turned away", h.foreign)
	}
	h.refuseAll(h.lobby.gaveUp(s.Rank, g, strangers))
}

// rise notes the end of a rank's connection.
func (h *hub) rise(s *seat, why string) {
	h.mu.Lock()
	r := h.room
	if r == nil && h.verdict == nil {
		h.refuseAll(h.lobby.died(s.Rank, why))
	}
	h.seated--
	last := r != nil && h.seated == 0
	h.mu.Unlock()
	if r != nil {
		r.lost(s.Rank, why)
	}
	if last {
		h.stop()
	}
}

// flush waits a moment until the ranks' connections have taken the last words.
// The group has come together: neither room nor seats change any more.
func (h *hub) flush() {
	h.together().waitSettled()
	end := time.Now().Add(flushTime)
	for _, s := range h.lobby.seats {
		s.link.flush(max(time.Until(end), 0))
	}
}

// admit counts a connection that has yet to prove itself. When there are too
// many, the oldest goes: a rank needs milliseconds, so it is not a rank.
func (h *hub) admit(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	h.guests = append(h.guests, conn)
	if len(h.guests) > maxGuests {
		h.guests[0].Close()
		h.guests = h.guests[1:]
	}
	return true
}

func (h *hub) dismiss(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.guests, conn); i >= 0 {
		h.guests = slices.Delete(h.guests, i, i+1)
	}
}

// closeDoor lets nobody in any more; the next job may take the port.
func (h *hub) closeDoor() {
	h.ln.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.guests {
		g.Close()
	}
}

// stop ends everything. It does not wait for the goroutines.
func (h *hub) stop() {
	h.closeDoor()
	forget(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.timer.Stop()
	for _, s := range h.lobby.seats {
		s.link.close()
	}
}

func (h *hub) warn(msg string, args ...any) {
	if more, ok := h.limit.allow(time.Now()); ok {
		if more > 0 {
			args = append(args, "suppressed", more)
		}
		h.log.Warn(msg, args...)
	}
}
