package ras

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/internal/auth"
)

// protocol names the protocol among agents, with its version.
const protocol = "ringo ras 1"

// Requests of an agent to another one.
const (
	wantReport = "report"
	wantDoor   = "door"
)

const (
	maxStrangers = 64               // connections of agents that have not proved themselves
	strangerTime = 5 * time.Second  // for the proof
	agentTime    = 10 * time.Second // for the exchange after the proof
	maxFrame     = 64 << 20         // bytes of a report: 100,000 communicators, or the cards of 500,000 ranks
)

// A request follows an agent's proof if it wants a report.
type request struct {
	Known []string // communicators whose cards the asking agent has
}

// A report is a process's answer about its communicators.
type report struct{ Ranks []entry }

// An entry is a rank of a communicator.
type entry struct {
	Comm       string
	Rank, Size int
	Cards      [][]byte `json:",omitempty"` // left out if the asking agent has them
	Now        Now
}

// report is this process's report for an agent that has the cards of some communicators.
func (s *server) report(known []string) (r report) {
	has := map[string]bool{}
	for _, id := range known {
		has[id] = true
	}
	s.mu.Lock()
	members := make([]*Member, 0, len(s.members))
	for _, m := range s.members {
		members = append(members, m)
	}
	s.mu.Unlock()
	for _, m := range members {
		e := entry{Comm: m.Comm, Rank: m.Rank, Size: m.Size, Now: m.Now()}
		if !has[m.Comm] {
			e.Cards = m.Cards
			has[m.Comm] = true
		}
		r.Ranks = append(r.Ranks, e)
	}
	return r
}

// listenToAgents opens the sockets for other processes of the job: one of the machine, and one for other machines where
// this one has an address that they reach.
func (s *server) listenToAgents() {
	pending := auth.NewPending(maxStrangers, strangerTime, auth.NewLog(s.o.Log.With("subsys", "NET")))
	s.closers = append(s.closers, pending.Close)
	open := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			s.o.Log.Info("RAS: other processes of the job cannot ask this one", "subsys", "INIT", "err", err)
			return nil
		}
		s.closers = append(s.closers, func() { l.Close() })
		s.work.Go(func() { pending.Serve(l, func(c net.Conn) { s.answer(pending, c) }) })
		return l
	}
	open("unix", s.card.socket())
	if ip := net.ParseIP(s.card.Host); ip == nil || ip.IsLoopback() {
		return
	}
	if l := open("tcp", net.JoinHostPort(s.card.Host, "0")); l != nil {
		s.card.Port = l.Addr().(*net.TCPAddr).Port
	}
}

// answer serves another agent.
func (s *server) answer(pending *auth.Pending, c net.Conn) {
	var rw net.Conn = c
	if _, local := c.(*net.UnixConn); !local && s.o.TLS != nil {
		sealed, err := s.o.TLS.Server(c)
		if err != nil {
			return
		}
		rw = sealed
	}
	want := ""
	err := auth.Answer(rw, s.card.Key[:], protocol, func(body []byte) []byte {
		if pending.Trust(c) {
			want = string(body)
		}
		return nil
	})
	if want == "" {
		return
	}
	if err != nil || !s.enter(c) {
		c.Close()
		return
	}
	defer s.leave(c)
	c.SetDeadline(time.Now().Add(agentTime))
	switch want {
	case wantDoor:
		s.giveDoor(c)
	case wantReport:
		var q request
		if read(rw, &q) == nil {
			_ = write(rw, s.report(q.Known))
		}
	}
}

// call connects to another agent.
func (s *server) call(ctx context.Context, to *Card, want string) (net.Conn, error) {
	network, address := "unix", to.socket()
	if to.Machine != s.card.Machine {
		if to.Port == 0 {
			return nil, fmt.Errorf("%v is reached from its own machine alone", to)
		}
		network, address = "tcp", net.JoinHostPort(to.Host, strconv.Itoa(to.Port))
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		c.SetDeadline(end)
	}
	var rw net.Conn = c
	if network == "tcp" && s.o.TLS != nil {
		sealed, err := s.o.TLS.Client(c)
		if err != nil {
			c.Close()
			return nil, err
		}
		rw = sealed
	}
	if _, err := auth.Call(rw, to.Key[:], protocol, []byte(want)); err != nil {
		c.Close()
		return nil, err
	}
	return rw, nil
}

// ask asks another agent for its report.
func (s *server) ask(ctx context.Context, to *Card, known []string) (r report, err error) {
	c, err := s.call(ctx, to, wantReport)
	if err != nil {
		return r, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err = write(c, request{known}); err == nil {
		err = read(c, &r)
	}
	return r, err
}

// refused reports whether an error means that nobody listens at the process's address any more.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// write and read move a value as JSON behind its length.
func write(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxFrame {
		return fmt.Errorf("ras: a report of %d bytes, at most %d", len(b), maxFrame)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func read(r io.Reader, v any) error {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(n[:])
	if length > maxFrame {
		return fmt.Errorf("ras: a report of %d bytes, at most %d", length, maxFrame)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(length)))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
