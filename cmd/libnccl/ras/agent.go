// Package ras answers the questions of NCCL's RAS about the communicators of a job: ncclras, detectors of hangs, and
// ringo why ask on port 28028. It is part of libnccl.so.2, and nothing here is promised to other modules.
//
// An Agent answers for a process, from its first communicator to its last. Ranks send each other a Card when they open
// a communicator, so each process knows where the other agents are. The agent that takes a client asks all others
// (survey.go), and learns from them of further communicators. The answer to a client has NCCL's form: the members, how
// many of five kinds of collectives each rank has called, its state, and the ranks that do not answer (json.go,
// text.go, monitor.go).
//
// The port belongs to the first process of the job on its machine that gets it. That process hands the listening socket
// itself to the others of its job (door_linux.go), so each of them takes clients, and a rank that is stopped keeps
// nobody from an answer. A process without the port answers the other agents all the same. An agent costs operations
// no time: it reads counters that exist anyway, when somebody asks.
//
// The trap: a child of fork inherits the sockets. While the child outlives its parent the port is taken and nobody
// answers there.
package ras

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ringo-go/ringo/internal/secure"
)

// Addr is where clients ask by default.
const Addr = "localhost:28028"

// Options are an agent's settings.
type Options struct {
	Addr    string         // where clients ask, Addr if ""
	Version int            // version of NCCL in answers, 22809 for 2.28.9
	Driver  func() int     // the version of the CUDA driver, 0 if none is loaded
	TLS     *secure.Config // between machines; nil for none
	Factor  int            // how many times as long as usual agents wait for each other, 1 if 0
	Log     *slog.Logger
}

// An Agent answers for the communicators of a process. Its methods may be called from any goroutine.
type Agent struct {
	o Options

	mu     sync.Mutex
	leases int     // guarded by mu
	serves *server // guarded by mu; nil while there are no leases
}

// New is an agent that does nothing before its first lease.
func New(o Options) *Agent {
	o.Addr, o.Factor = cmp.Or(o.Addr, Addr), max(1, o.Factor)
	return &Agent{o: o}
}

// A Lease keeps the agent serving for one communicator. The agent serves from the first lease to the last.
type Lease struct {
	agent  *Agent
	end    sync.Once
	server *server
}

// Lease begins a communicator's time. near is an address of the job, "host:port", by which the process finds which of
// its own addresses others reach; "" if none is known. The cost is that of three listening sockets, once.
func (a *Agent) Lease(near string) *Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leases++; a.serves == nil {
		a.serves = serve(a.o, near)
	}
	return &Lease{agent: a, server: a.serves}
}

// Card is the card of a rank of the communicator, which the rank sends to the others.
func (l *Lease) Card(device, nvml int) Card {
	c := l.server.card
	c.Device, c.NVML = device, nvml
	return c
}

// Serve has the agent answer for a rank of a communicator until End.
func (l *Lease) Serve(m *Member) { l.server.add(l, m) }

// End ends the communicator's time. The last lease's End gives everything back: sockets, connections, goroutines.
func (l *Lease) End() {
	if l == nil { // of an agent that is switched off
		return
	}
	l.end.Do(func() {
		l.server.remove(l)
		a := l.agent
		a.mu.Lock()
		var last *server
		if a.leases--; a.leases == 0 {
			last, a.serves = a.serves, nil
		}
		a.mu.Unlock()
		if last != nil {
			last.close()
		}
	})
}

// Kinds are the collectives that are counted, as NCCL names and orders them.
var Kinds = [...]string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// A Member is one rank of a communicator.
type Member struct {
	Comm       string // the same on all ranks, and of no other communicator of the job
	Rank, Size int
	Cards      [][]byte // by rank; a rank without a card is not asked
	Now        func() Now
}

// A Now is the state of a rank at the moment of a question.
type Now struct {
	Async     int // an ncclResult_t
	Finalized bool
	Destroyed bool
	Aborted   bool
	Counts    [len(Kinds)]uint64 // of collectives that the rank has called
	Died      []int              // ranks that the communicator knows to have died
}

// A server is an agent at work.
type server struct {
	o       Options
	card    Card
	began   context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	closers []func()
	news    chan struct{} // holds one value after a communicator was added

	mu      sync.Mutex
	members map[*Lease]*Member // guarded by mu
	door    net.Listener       // guarded by mu; the listener for clients, nil until the process has one
	closed  bool               // guarded by mu
	conns   map[net.Conn]bool  // guarded by mu; of clients and agents
	clients int                // guarded by mu
	slow    map[string]bool    // guarded by mu; processes that did not answer last time

	turn sync.Mutex // of surveys
	last *Survey    // guarded by turn
}

// serve begins to serve.
func serve(o Options, near string) *server {
	s := &server{o: o, members: map[*Lease]*Member{}, conns: map[net.Conn]bool{}, slow: map[string]bool{},
		news: make(chan struct{}, 1)}
	s.began, s.stop = context.WithCancel(context.Background())
	s.card = Card{Host: ownAddress(near), Machine: machine(), Pid: os.Getpid()}
	rand.Read(s.card.Key[:])
	s.listenToAgents()
	if l, err := net.Listen("tcp", s.o.Addr); err == nil {
		s.opened(l)
	} else {
		s.work.Go(s.seekDoor)
	}
	return s
}

// ownAddress is this machine's address on the way to another one, which nothing is sent to.
func ownAddress(near string) string {
	for _, to := range []string{near, "192.0.2.1:1"} { // of no host, by RFC 5737: the address of the default route
		if c, err := net.DialTimeout("udp", to, time.Second); err == nil { // which may have to look a name up
			host, _, _ := net.SplitHostPort(c.LocalAddr().String())
			c.Close()
			return host
		}
	}
	return "127.0.0.1"
}

// seekDoor tries to get the listener for clients until it has one: by listening on the port, or from a process of the
// job on this machine. If another job has the port, that may end at any time, so seekDoor goes on, ever more rarely.
func (s *server) seekDoor() {
	said := false
	for pause := soonest; s.began.Err() == nil; pause = min(2*pause, rarest) {
		l, err := net.Listen("tcp", s.o.Addr)
		if err != nil {
			l = s.borrow(s.neighbours())
		}
		if l != nil {
			s.opened(l)
			return
		}
		select {
		case <-s.news: // a new communicator may have shown further processes of the job
			pause = soonest
			continue
		case <-s.began.Done():
			return
		case <-time.After(pause):
		}
		if pause == rarest && !said {
			said = true
			s.o.Log.Info("RAS: no process of this job has the port of clients; if another job has it, set NCCL_RAS_ADDR to "+
				"another one",
				"subsys", "INIT", "addr", s.o.Addr, "err", err)
		}
	}
}

// soonest and rarest are the times between two looks for the door.
const (
	soonest = 50 * time.Millisecond
	rarest  = 10 * time.Second
)

// opened has clients served.
func (s *server) opened(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.Close()
		return
	}
	s.door = l
	s.o.Log.Info("RAS listens for clients", "subsys", "INIT", "addr", l.Addr())
	s.work.Go(func() { s.takeClients(l) })
}

// borrow asks processes of this machine for their door; nil if none has it.
func (s *server) borrow(peers []Card) net.Listener {
	for i := range peers {
		if ended, stopped := alive(peers[i].Pid); ended || stopped {
			continue
		}
		ctx, cancel := context.WithTimeout(s.began, doorTime)
		l := s.askForDoor(ctx, &peers[i])
		cancel()
		if l != nil || s.began.Err() != nil {
			return l
		}
	}
	return nil
}

// doorTime is how long a process is asked for the door.
const doorTime = time.Second

// neighbours are the other processes of this machine in the communicators of this one.
func (s *server) neighbours() (list []Card) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{s.card.process(): true}
	for _, m := range s.members {
		for _, b := range m.Cards {
			if c, err := ParseCard(b); err == nil && c.Machine == s.card.Machine && !seen[c.process()] {
				seen[c.process()] = true
				list = append(list, c)
			}
		}
	}
	return list
}

func (s *server) add(l *Lease, m *Member) {
	s.mu.Lock()
	s.members[l] = m
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default: // there is a word already
	}
}

func (s *server) remove(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, l)
}

// enter notes a connection, for close to end. It reports whether the server still serves.
func (s *server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[c] = true
	}
	return !s.closed
}

func (s *server) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	c.Close()
}

// close gives everything back.
func (s *server) close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	if s.door != nil {
		s.door.Close()
	}
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	for _, f := range s.closers {
		f()
	}
	s.work.Wait()
}

// String names the process as answers do.
func (c *Card) String() string { return fmt.Sprintf("process %d on node %s", c.Pid, c.Host) }
