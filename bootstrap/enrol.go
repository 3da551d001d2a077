package bootstrap

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

// enrol makes the member that talks to the coordinator through l.
func (j *joiner) enrol(l *link, s *rendezvous.Start) Group {
	l.conn.SetReadDeadline(time.Time{})
	m := newMember(j.rank, j.size, groupKey(j.id.key(), s.Salt), s.Hosts)
	m.gathers.head = s.Head
	m.uplink.quits = enlist(slotOf{j.id, j.rank})
	h := hubOf(j.id) // nil unless this process serves it
	switch _, inside := l.conn.LocalAddr().(innerAddr); {
	case inside && j.opt.Source != nil:
		m.at = &net.TCPAddr{IP: j.opt.Source}
	case inside && h != nil:
		m.at = h.reached()
	case j.opt.Dial == nil:
		m.at = l.conn.LocalAddr()
	}
	if s.Takers > 0 {
		m.gathers.giving = newHead(m.key, j.rank, s.Takers, s.Apart)
	}
	if h != nil && !j.opt.apart && j.opt.Dial == nil && h.take(m, l) {
		return m
	}
	m.uplink.up = func(msg message) {
		if _, ok := msg.(*rendezvous.Fail); ok && h != nil { // directly to the coordinator: flush waits until it has settled
			h.started().hear(j.rank, msg)
			return
		}
		l.send(msg)
	}
	m.uplink.drop = func() {
		if port := m.takePort(); port != nil {
			port.Close()
		}
		m.lookout.witness.close()
		l.close()
	}
	m.lookout.feel = j.feel(l, s.Pulse)
	j.prepare(m, s)
	j.observe(m, s)
	m.uplink.flush = func() {
		l.flush(flushTime)
		if h != nil {
			h.flush()
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.lost(pump(l, m))
	}()
	m.uplink.hangUp = func() {
		m.uplink.awaitBye()
		if h != nil {
			h.flush() // the others hear of our leave before this process may end
		}
		m.uplink.drop()
		<-ended
	}
	return m
}

// take makes a member in the hub's own process talk to the coordinator directly, without connection l and without a
// goroutine. It returns false if the hub has ended.
func (h *hub) take(m *member, l *link) bool {
	r := h.started()
	s, ok := h.move(m)
	if !ok {
		return false
	}
	m.uplink.up = func(msg message) { r.hear(m.rank, msg) }
	m.uplink.flush = h.flush // the others hear of our leave, or failure, before this process may end
	m.uplink.drop = func() { h.release(s, "dropped out") }
	m.uplink.hangUp = func() {
		m.uplink.awaitBye()
		h.flush()
		h.release(s, "left")
	}
	l.conn.SetReadDeadline(time.Now().Add(goodbyeTime))
	pump(l, m) // messages that were sent before
	l.close()
	return true
}

// pump hands the coordinator's messages to m until the connection ends.
func pump(l *link, m *member) (why string) {
	for {
		msg, err := l.receive(rendezvous.MaxBody)
		if err != nil {
			m.lookout.silence.Store(IsSilence(err))
			return explain(err)
		}
		m.hear(msg)
	}
}

// claimPort opens the port of a rank that may be a successor, at the address near, which the hub can reach. It returns
// the number of the port, 0 if there is none.
func (j *joiner) claimPort(near net.Addr) int {
	at, ok := near.(*net.TCPAddr)
	if !ok || j.opt.Dial != nil || hubOf(j.id) != nil {
		return 0
	}
	for j.port == nil {
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: at.IP, Zone: at.Zone})
		if err != nil {
			return 0
		}
		if slices.Contains(j.opt.ports, portIn(ln.Addr().String())) {
			defer ln.Close() // after another was found
			continue
		}
		j.port = ln
	}
	return j.port.Addr().(*net.TCPAddr).Port
}

// portIn is the port of host:port.
func portIn(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (j *joiner) closePorts() {
	for _, ln := range []net.Listener{j.port, j.witness} {
		if ln != nil {
			ln.Close()
		}
	}
}

// claimWitness opens the port of a rank that may be a witness, at the address of its successor's port. It returns the
// number of the port, 0 if there is none.
func (j *joiner) claimWitness() int {
	if j.port == nil {
		return 0
	}
	if j.witness == nil {
		at := j.port.Addr().(*net.TCPAddr)
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: at.IP, Zone: at.Zone})
		if err != nil {
			return 0
		}
		j.witness = ln
	}
	return j.witness.Addr().(*net.TCPAddr).Port
}

// prepare gives the member its means to go on.
func (j *joiner) prepare(m *member, start *rendezvous.Start) {
	s := &m.succession
	s.successors, s.opt = start.Successors, j.opt
	s.opt.ports = []string{portIn(j.id.Addr()), strconv.Itoa(start.Pulse)}
	for _, h := range start.Successors {
		s.opt.ports = append(s.opt.ports, portIn(h.Addr))
	}
	if slices.ContainsFunc(start.Successors, func(h rendezvous.RankAddr) bool { return h.Rank == m.rank }) {
		s.port = j.port
	} else if j.port != nil {
		j.port.Close()
	}
}

// observe gives a member's lookout what it needs to find out about the hub, and serves if the rank is a witness.
func (j *joiner) observe(m *member, s *rendezvous.Start) {
	o := &m.lookout
	o.here, o.there, o.witnesses = s.Here, s.There, s.Witnesses
	o.ask = func(ctx context.Context, address string, a rendezvous.Ask) (s rendezvous.Statement, lives bool) {
		conn, err := j.dial(ctx, address)
		if err != nil {
			return s, answers(nil, err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		answer, err := auth.Call(conn, m.key, witnessProtocol, rendezvous.Append(nil, &a))
		if err != nil || rendezvous.Parse(answer, &s) != nil {
			return rendezvous.Statement{}, true // its host has answered
		}
		return s, true
	}
	o.knock = func(ctx context.Context, address string) bool { return answers(j.dial(ctx, address)) }
	if j.witness == nil {
		return
	}
	if !s.Witness {
		j.witness.Close()
		return
	}
	w := &witness{ln: j.witness, turn: make(chan struct{}, 1),
		pending: auth.NewPending(maxAskers, witnessTime+handshakeTime, nil)}
	o.witness = w
	w.tasks.Go(func() {
		w.pending.Serve(w.ln, func(conn net.Conn) {
			auth.Answer(conn, m.key, witnessProtocol, func(body []byte) []byte {
				var a rendezvous.Ask
				if rendezvous.Parse(body, &a) == nil {
					w.tell(a)
				}
				return rendezvous.Append(nil, w.look(func() rendezvous.Sight { return o.sees(m.uplink.open) }))
			})
		})
	})
}

// feel returns a function that finds out whether the hub at the other end of l lives: nil if it does, ECONNREFUSED or
// ECONNRESET if it has ended, and another error if nothing answers. Without a pulse feel is nil.
func (j *joiner) feel(l *link, port int) func(context.Context) error {
	host, _, err := net.SplitHostPort(l.conn.RemoteAddr().String())
	if j.opt.Dial != nil {
		host, _, err = net.SplitHostPort(j.id.Addr())
	}
	if port == 0 || err != nil {
		return nil
	}
	knock := func(ctx context.Context) error {
		c, err := j.dial(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		switch _, err = c.Read(make([]byte, 1)); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errors.Join(errStalled, context.Cause(ctx))
		}
		return errors.Join(err, syscall.ECONNREFUSED) // closed meanwhile
	}
	return func(ctx context.Context) error {
		for {
			// Linux forgets a connection that is being made while the other process is killed, and does not tell this side.
			once, cancel := context.WithTimeout(ctx, pulseTime/3)
			err := knock(once)
			late := once.Err() != nil && ctx.Err() == nil
			cancel()
			if err == nil || !late {
				return err
			}
		}
	}
}
