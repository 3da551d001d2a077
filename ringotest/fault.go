package ringotest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/internal/relay"
)

// Faults has ranks meet, and TCP connections go, through relays in the process of the rank that dials. So links can be
// made worse (Rank.Link, Rank.Partition), and ranks that are goroutines can be killed and stalled. Without Over, ranks
// are joined by TCP.
func Faults() Option { return func(o *options) { o.faults = true } }

// Kill ends this rank at once and without goodbye, as a crash does, and does not return. That does not fail the test;
// the other ranks get an error that names this one. A rank that is a process gets SIGKILL; the connections of a rank
// that is a goroutine are cut.
func (r *Rank) Kill() {
	r.trial.t.Helper()
	if r.phone != nil {
		r.phone.ask(message{Kind: killed})
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {}
	}
	r.wired("Kill")
	r.killed = true
	r.wires.close()
	runtime.Goexit()
}

// Stall stops this rank for d, as SIGSTOP does: it neither sends nor answers, and nobody hears that it has ended. With
// 0 it goes on when all other ranks have ended. A rank that is a process gets SIGSTOP, which stops all its goroutines.
// If the rank is a goroutine, its connections are held, and only that goroutine waits.
func (r *Rank) Stall(d time.Duration) {
	r.trial.t.Helper()
	if r.phone != nil {
		if !canStop {
			r.Fatalf("ringotest: this system does not stop processes: use Over(ringotest.TCP) and Faults()")
		}
		r.phone.ask(message{Kind: stalled, For: d})
		return
	}
	r.wired("Stall")
	r.hold(true)
	defer r.hold(false)
	if d > 0 {
		time.Sleep(d)
		return
	}
	for _, other := range r.trial.ranks {
		if other != r {
			<-other.ended
		}
	}
}

// Meet returns when all ranks that have not ended have called it. They meet in the test and not by the communicator, so
// that a fault can be set before any of them goes on.
func (r *Rank) Meet() {
	if r.phone != nil {
		r.phone.ask(message{Kind: meet})
		return
	}
	done := make(chan struct{})
	r.trial.meeting.come(func() { close(done) })
	<-done
}

// A meeting is where ranks wait for each other.
type meeting struct {
	mu      sync.Mutex
	away    int // ranks that have not ended, and do not wait
	waiting []func()
}

// come has f called when all are here. It does not wait.
func (m *meeting) come(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, f)
	m.left()
}

// leave is for a rank that has ended.
func (m *meeting) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left()
}

// left notes that there is one rank less to wait for. The caller holds mu.
func (m *meeting) left() {
	if m.away--; m.away > 0 {
		return
	}
	m.away = len(m.waiting)
	for _, f := range m.waiting {
		f()
	}
	m.waiting = nil
}

func (r *Rank) hold(held bool) {
	for peer := rendezvous; peer < r.trial.size; peer++ {
		r.wires.change(peer, func(c *relay.Condition) { c.Held = held })
	}
}

// wired ends the rank if it has no wires, which the fault needs.
func (r *Rank) wired(what string) {
	r.trial.t.Helper()
	if r.wires == nil {
		r.Fatalf("ringotest: %s needs the option Faults() where ranks are goroutines", what)
	}
}

// A Link is the TCP connections that this rank dialled to one peer, both directions. The connections that the peer
// dialled to this rank are the peer's Link.
type Link struct {
	wires *wires
	peer  int
}

// Link is the link to a rank. It needs the option Faults, and TCP or ProcessesTCP.
func (r *Rank) Link(peer int) *Link {
	r.trial.t.Helper()
	switch {
	case r.wires == nil:
		r.Fatalf("ringotest: Link needs the option Faults()")
	case !r.trial.setup.tcp():
		r.Fatalf("ringotest: over %s there is no Link: use Over(ringotest.TCP) or ProcessesTCP", r.trial.setup)
	case peer < 0 || peer >= r.trial.size || peer == r.rank:
		r.Fatalf("ringotest: no Link from rank %d to %d: there are %d ranks", r.rank, peer, r.trial.size)
	}
	return &Link{r.wires, peer}
}

// Delay delays each piece of up to 64 KiB by d.
func (l *Link) Delay(d time.Duration) {
	l.wires.change(l.peer, func(c *relay.Condition) { c.Delay = d })
}

// Slow bounds each connection to bytesPerSecond in each direction; 0 is no bound.
func (l *Link) Slow(bytesPerSecond int) {
	l.wires.change(l.peer, func(c *relay.Condition) { c.Rate = bytesPerSecond })
}

// Drop throws away all bytes that are sent from now on, and neither end is told. A stream that has lost bytes is of no
// use after Mend either.
func (l *Link) Drop() { l.wires.change(l.peer, func(c *relay.Condition) { c.Lost = true }) }

// Hold keeps all bytes back until Mend, which passes them on.
func (l *Link) Hold() { l.wires.change(l.peer, func(c *relay.Condition) { c.Held = true }) }

// Mend ends Delay, Slow, Drop and Hold.
func (l *Link) Mend() { l.wires.change(l.peer, func(c *relay.Condition) { *c = relay.Condition{} }) }

// Cut breaks the present connections, for both ends.
func (l *Link) Cut() { l.wires.each(l.peer, func(x *wire) { x.Cut() }) }

// Corrupt changes one bit of the bytes that are sent next. Without Config.TLS nobody notices a changed payload.
func (l *Link) Corrupt() { l.wires.each(l.peer, func(x *wire) { x.Corrupt() }) }

// Partition holds this rank's Links to ranks outside its group; without groups it mends all Links. All ranks have to
// call it. The rendezvous stays reachable; Stall cuts a rank off from that too.
func (r *Rank) Partition(groups ...[]int) {
	r.trial.t.Helper()
	var mine []int
	for _, g := range groups {
		if slices.Contains(g, r.rank) {
			mine = g
		}
	}
	if len(groups) > 0 && mine == nil {
		r.Fatalf("ringotest: rank %d is in none of the groups %v", r.rank, fmt.Sprint(groups))
	}
	for peer := range r.trial.size {
		switch {
		case peer == r.rank:
		case len(groups) > 0 && !slices.Contains(mine, peer):
			r.Link(peer).Hold()
		default:
			r.Link(peer).Mend()
		}
	}
}
