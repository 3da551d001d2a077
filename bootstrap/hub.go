// The hub: the listener of a group, the handshake with each rank, and the messages afterwards.

package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

// A hub is the centre of one group. It listens, checks connections and gives ranks their slots
// in the join set. When all are admitted it carries messages between them and the coordinator.
type hub struct {
	id     ID
	opt    ListenOptions
	again  bool // another hub follows this one; under the lock of hubs
	log    *slog.Logger
	warn   *auth.Log // for events that strangers can cause
	entry  entry
	self   identity
	linger time.Duration
	wg     sync.WaitGroup // every goroutine of the hub

	mu          sync.Mutex
	joined      joinSet
	verdict     *rendezvous.Refusal // why the group will never start
	coordinator *coordinator        // nil until the group has started
	began       time.Time           // when the group started
	later       []func()            // what ranks of this process are yet to hear, nil mostly; under mu of the coordinator
	ended       map[int]string      // by rank: how its process has ended; see Gone
	heard       chan struct{}       // closed and replaced when ended grows
	open        int                 // connections of ranks that are open
	moved       int                 // ranks that talk without a connection; see move
	foreign     int                 // connections that had another key
	rival       string              // what to say of another hub of this ID that was met
	timer       *time.Timer
	stopped     bool
}

// An entry is where ranks come to a hub.
type entry struct {
	ln         net.Listener
	inner      *inner
	unproven   *auth.Pending
	pulsePort  int // 0 if there is none
	closePulse func()
}

// close stops listening.
func (e *entry) close() {
	e.ln.Close()
	e.inner.Close()
	e.unproven.Close()
}

func newHub(id ID, ln net.Listener, o ListenOptions, ended map[int]string) *hub {
	h := &hub{id: id, opt: o, again: o.Again, ended: ended, heard: make(chan struct{}), log: o.logger(),
		linger: lingerTime, warn: auth.NewLog(o.logger()),
		self: identity{auth.NewNonce(), uint64(time.Now().UnixNano()), func() {}}}
	h.entry = entry{ln, newInner(), auth.NewPending(maxUnproven, handshakeTime, h.warn), 0, func() {}}
	if o.shared == nil { // the way to the caller's own Listener is not known here
		h.entry.pulsePort, h.entry.closePulse = openPulse(ln.Addr(), h.log)
	}
	h.timer = time.AfterFunc(o.timeout(), h.abandoned)
	if o.known {
		h.findRivals()
	}
	for _, ln := range []net.Listener{ln, h.entry.inner} {
		h.wg.Go(func() { h.entry.unproven.Serve(ln, h.serve) })
	}
	return h
}

// abandoned ends a hub to which no rank has come.
func (h *hub) abandoned() {
	h.mu.Lock()
	came := h.joined.slots != nil
	h.mu.Unlock()
	if !came {
		h.log.Warn("rendezvous closed: no rank came", "addr", h.id.Addr())
		h.stop()
	}
}

// serve is the life of one connection.
func (h *hub) serve(conn net.Conn) {
	s, err := h.greet(conn)
	if err != nil {
		h.warn.Warn("rendezvous: stranger dropped", "from", conn.RemoteAddr(), "err", err)
		return
	}
	if len(s.Rival) > 0 {
		h.visited(&s.Claim)
		return
	}
	if !h.admit(s) {
		s.link.flush(flushTime)
		s.link.close()
		return
	}
	why, silent := h.listen(s)
	if r := h.started(); silent && r != nil && !h.hasMoved(s) { // the link stays: what is sent may arrive later
		r.feed(rendezvous.Unheard{Rank: s.Rank, Why: why})
	} else {
		defer s.link.close()
	}
	if !h.hasMoved(s) {
		if r := h.started(); r != nil {
			switch how := h.outcome(r, s.Rank); how {
			case "":
			case EndedWell: // its program is done, and has left without a goodbye
				r.hear(s.Rank, &rendezvous.Leave{})
			default:
				why = "its process ended without goodbye: " + how
			}
		}
		h.release(s, why)
	}
}

// greet has both sides prove that they know the key, the rank first.
func (h *hub) greet(below net.Conn) (*slot, error) {
	s := &slot{from: below.RemoteAddr().String()}
	conn, sealed, err := h.opt.TLS.Either(below)
	if err != nil {
		return s, err
	}
	s.sealed = sealed
	var refused error
	err = auth.Answer(conn, h.id.key(), protocol, func(claim []byte) []byte {
		refused = rendezvous.Parse(claim, &s.Claim)
		if refused == nil && len(s.Rival) > 0 {
			return rendezvous.Append(nil, h.hail())
		}
		if refused == nil && h.entry.unproven.Trust(below) {
			s.link = newLink(conn)
		}
		return nil
	})
	err = cmp.Or(err, refused)
	switch {
	case err == nil && s.link == nil && len(s.Rival) == 0:
		err = errors.New("closed to make room for others")
	case errors.Is(err, auth.ErrKey):
		h.mu.Lock()
		h.foreign++
		h.mu.Unlock()
		err = fmt.Errorf("%w (another job, RINGO_COMM_SECRET or number of ranks)", err)
	case err != nil && s.link != nil:
		s.link.close()
	}
	return s, err
}

// admit gives a rank its slot, or refuses it. A conflict before the start ends the group for all, since
// the group can never start. A hub that has ended answers nothing: the rank tries again, and
// may find the next hub.
func (h *hub) admit(s *slot) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	if h.verdict != nil {
		s.link.send(h.verdict)
		return false
	}
	if h.coordinator != nil && h.joined.partial {
		s.link.send(h.late(s))
		return false
	}
	if h.coordinator != nil && s.Rank < h.joined.size {
		if here, gone := h.coordinator.without(s.Rank); gone {
			s.link.send(busy(here))
			return false
		}
	}
	no := h.tooMany(s.Size)
	if no == nil {
		no = h.joined.add(s)
	}
	if no == nil && h.joined.full() && !s.sealed && h.opt.TLS != nil { // no rank's connection is sealed
		no = conflict("the ranks come without TLS, and what serves the ID has TLS (%v): set RINGO_TLS, and RINGO_TLS_CERT, "+
			"_KEY and _CA if it is by certificates, for both or for neither", h.opt.TLS)
	}
	if no != nil {
		if h.coordinator == nil {
			h.refuseAll(no)
		} else {
			h.warn.Warn("rendezvous: late comer refused", "reason", no.Reason)
		}
		s.link.send(no)
		return false
	}
	h.open++
	s.link.send(&rendezvous.Welcome{})
	if h.joined.full() {
		h.start()
	} else {
		h.missing()
	}
	return true
}

// wordTime is how long a launcher may take to tell how a process has ended, after its connection has.
const wordTime = 200 * time.Millisecond

// outcome is how the process of a rank ended that had neither closed its group nor failed, as told by the launcher;
// empty if it was not told.
func (h *hub) outcome(r *coordinator, rank int) string {
	if _, gone := r.without(rank); gone || !h.opt.Launched || h.opt.members != nil { // it counts ranks of the first group
		return ""
	}
	late := time.NewTimer(wordTime)
	defer late.Stop()
	for {
		h.mu.Lock()
		how, ok := h.ended[rank]
		heard := h.heard
		h.mu.Unlock()
		if ok {
			return how
		}
		select {
		case <-heard:
		case <-late.C:
			return ""
		}
	}
}

// spareFiles is how many descriptors a process needs beside those of ranks.
const spareFiles = 32

// tooMany is the refusal of more ranks than this process can have connections, else nil.
func (h *hub) tooMany(size int) *rendezvous.Refusal {
	if h.opt.files == 0 {
		h.opt.files = descriptors()
	}
	if size <= h.opt.files-spareFiles {
		return nil
	}
	return conflict("%d ranks need as many connections to the rendezvous, whose process may have %d files open: raise "+
		"its limit (ulimit -n) where rank 0 or the launcher runs", size, h.opt.files)
}

// gone notes that a rank's process has ended. Under the lock of hubs.
func (h *hub) gone(rank int, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[rank] = why
	close(h.heard)
	h.heard = make(chan struct{})
	if h.coordinator == nil && h.verdict == nil {
		h.missing()
	}
}

// missing ends a group in which ranks wait for one that cannot come. A partial group it may start. Under mu.
func (h *hub) missing() {
	if h.joined.partial {
		if h.joined.allHere(h.ended) {
			h.start()
		}
		return
	}
	for _, rank := range slices.Sorted(maps.Keys(h.ended)) {
		if rank < h.joined.size && h.joined.slots[rank] == nil {
			h.refuseAll(h.joined.ended(rank, h.ended[rank]))
			return
		}
	}
}

// start gives the group of the join set a coordinator. Under mu.
func (h *hub) start() {
	roster := h.joined.settle(h.ended)
	hosts := h.joined.hosts()
	h.began = time.Now()
	starts := h.joined.starts(auth.NewNonce(), hosts)
	land, successors := h.joined.land(cmp.Or(h.opt.machine, machineID())), h.joined.successors()
	h.joined.appointWitnesses(&land, starts)
	heads := make([]int, h.joined.size)
	for rank := range starts {
		heads[rank] = starts[rank].Head
		starts[rank].Pulse, starts[rank].Successors = h.entry.pulsePort, successors
	}
	h.coordinator = newCoordinator(rendezvous.Config{Size: h.joined.size, Hosts: hosts, Heads: heads, Land: land,
		Homes: h.joined.homes(), Failed: h.opt.failed}, h)
	for rank := range starts {
		if roster != nil {
			h.tell([]int{rank}, roster)
		}
		h.tell([]int{rank}, &starts[rank])
	}
	if roster != nil && len(roster.Away) > 0 { // late comers are refused as long as the group lives
		h.timer.Stop()
		return
	}
	h.endLater(h.closeListener)
}

// refuseAll ends a group that can never start. Under mu.
func (h *hub) refuseAll(v *rendezvous.Refusal) {
	h.log.Warn("rendezvous: " + v.Reason)
	h.verdict = v
	for _, s := range h.joined.slots {
		s.link.send(v)
	}
	h.endLater(h.stop)
}

func (h *hub) endLater(f func()) {
	h.timer.Stop()
	h.timer = time.AfterFunc(h.linger, f)
}

// listen reads a rank's messages until its connection ends. why is the reason; silent is that the other host answers
// nothing.
func (h *hub) listen(s *slot) (why string, silent bool) {
	for {
		m, err := s.link.receive(rendezvous.MaxBlob + 64)
		if err != nil {
			return explain(err), IsSilence(err)
		}
		r := h.started()
		if r == nil {
			h.wait(s, m)
			continue
		}
		if !r.hear(s.Rank, m) {
			return fmt.Sprintf("it sent what it must not: %T", m), false
		}
		if l, ok := m.(*rendezvous.Leave); ok && !l.Stays {
			s.link.conn.SetReadDeadline(time.Now().Add(goodbyeTime))
		}
	}
}

// begun reports whether the group has started, or never can.
func (h *hub) begun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.coordinator != nil || h.verdict != nil
}

// reached is the address of this process to which ranks of other processes have come, nil if there is none that all
// hosts may reach. The group has started.
func (h *hub) reached() net.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.joined.size {
		at, ok := h.joined.slots[r].link.conn.LocalAddr().(*net.TCPAddr)
		if ok && at.IP.IsGlobalUnicast() {
			return at
		}
	}
	return nil
}

// started is the coordinator of a group that has started, else nil.
func (h *hub) started() *coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.coordinator
}

// wait takes a message that a rank may send before the start.
func (h *hub) wait(s *slot, m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, ok := m.(*rendezvous.GiveUp)
	if !ok || h.verdict != nil || h.coordinator != nil { // the start crossed the message, and counts
		return
	}
	if h.joined.partial && g.Timeout {
		h.start()
		return
	}
	if h.joined.partial {
		const why = "it was cancelled while it waited for the others"
		s.link.send(&rendezvous.Refusal{Cause: rendezvous.Cancelled, Rank: s.Rank, Reason: why})
		h.vacate(s, why)
		return
	}
	strangers := ""
	if h.foreign > 0 {
		strangers = fmt.Sprintf("; %d connections with another key were turned away", h.foreign)
	} else if len(h.joined.hosts()) == len(h.joined.slots) && !isLoopback(h.id.Addr()) {
		strangers = fmt.Sprintf("; no other process has come to %s: is that an address of %s, and may the others connect to "+
			"it?", h.id.Addr(), hostname())
	}
	h.refuseAll(h.joined.gaveUp(s.Rank, g, strangers+h.rival))
}

// move lets a rank of this process and the coordinator talk without a connection from now on. Earlier
// messages are still in the connection, which then ends. False means that the hub has ended.
func (h *hub) move(m *member) (*slot, bool) {
	h.mu.Lock()
	s, r := h.joined.slots[m.rank], h.coordinator
	ok := !h.stopped
	if ok {
		s.moved = m
		if h.moved++; h.moved == h.joined.size { // all ranks are in this process: nobody will ask at the pulse's port
			h.entry.closePulse()
		}
	}
	h.mu.Unlock()
	if !ok {
		return nil, false
	}
	r.mu.Lock()
	s.direct = m.hear
	r.mu.Unlock()
	s.link.closeWrite()
	return s, true
}

func (h *hub) hasMoved(s *slot) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.moved != nil
}

// release notes once that a rank's connection has ended, and why.
func (h *hub) release(s *slot, why string) {
	if s.released.Swap(true) {
		return
	}
	h.mu.Lock()
	r := h.coordinator
	switch waits := r == nil && h.verdict == nil && h.joined.slots[s.Rank] == s; {
	case h.stopped: // by this process, which has ended the connections itself
	case waits && h.joined.partial:
		h.vacate(s, "it died while it waited for the others: "+why)
	case waits:
		h.refuseAll(h.joined.died(s.Rank, why))
	}
	h.open--
	last := r != nil && h.open == 0
	h.mu.Unlock()
	if r != nil {
		r.lost(s.Rank, why)
	}
	if last {
		h.stop()
	}
}

// flush waits, at most flushTime, until the last messages to all ranks are with the kernel.
// The group has started: neither coordinator nor slots change any more.
func (h *hub) flush() {
	h.started().waitSettled()
	h.flushLinks()
}

// flushLinks is flush without what is pending.
func (h *hub) flushLinks() {
	end := time.Now().Add(flushTime)
	for _, s := range h.joined.slots {
		s.link.flush(max(time.Until(end), 0))
	}
}

// part waits, at most flushTime, until those that were refused have been told why.
func (h *hub) part() {
	h.mu.Lock()
	refused, slots := h.verdict != nil, maps.Clone(h.joined.slots)
	h.mu.Unlock()
	end := time.Now().Add(flushTime)
	for _, s := range slots {
		if refused {
			s.link.flush(max(time.Until(end), 0))
		}
	}
}

// closeListener stops listening; the next job may take the port. The caller's own listener stays open until the
// hub ends: the ranks that are left after a failure may meet there (regroup).
func (h *hub) closeListener() {
	if h.opt.shared == nil {
		h.entry.close()
	}
}

// stop ends everything. It does not wait for the goroutines.
func (h *hub) stop() {
	h.closeListener()
	succeed(h)
	h.entry.close()
	h.entry.closePulse()
	h.self.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.timer.Stop()
	if h.coordinator != nil {
		h.coordinator.end()
	}
	for _, s := range h.joined.slots {
		s.link.close()
		if s.moved != nil {
			s.moved.lost("the rendezvous was stopped")
		}
	}
}

// late refuses a rank that comes after a partial group has begun. Under mu.
func (h *hub) late(s *slot) *rendezvous.Refusal {
	if i, came := slices.BinarySearch(h.joined.came, s.Rank); came {
		if here, gone := h.coordinator.without(i); gone {
			return busy(here)
		}
	}
	h.warn.Warn("rendezvous: late comer refused", "rank", s.Rank, "from", s)
	return &rendezvous.Refusal{Cause: rendezvous.TooLate, Rank: s.Rank,
		Reason: fmt.Sprintf("rank %d, %v, comes too late: the others began without it %s ago", s.Rank, s,
			rendezvous.Spell(time.Since(h.began)))}
}

// vacate takes a rank out of a partial join set. Under mu.
func (h *hub) vacate(s *slot, why string) {
	delete(h.joined.slots, s.Rank)
	h.joined.away[s.Rank] = why
	for h.joined.first = range h.joined.slots { // any rank that is left
	}
	if len(h.joined.slots) == 0 && !h.stopped {
		h.joined = joinSet{}
		h.timer.Reset(h.opt.timeout())
	}
}
