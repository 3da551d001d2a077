// The pulse: how a rank whose connection to the hub has ended finds out which side has failed.

package bootstrap

import (
	"context"
	"errors"
	"net"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const pulseTime = 3 * time.Second // for a rank to find out whether the hub lives

// A pulse is a second port of this process, open while the process serves hubs at an address. It sends each caller a
// byte: a process that is being killed may still have the port, but answers nothing. All hubs at the address share the
// pulse, so that one more hub costs nothing.
type pulse struct {
	ln    net.Listener
	hubs  int // guarded by pulses
	ended chan struct{}
}

var pulses = struct {
	sync.Mutex
	m map[string]*pulse // by address
}{m: map[string]*pulse{}}

// openPulse opens the pulse at the hub's address, or shares it, until closePulse.
func (h *hub) openPulse() {
	at, ok := h.ln.Addr().(*net.TCPAddr)
	if !ok || h.opt.shared != nil { // the way to the caller's own Listener is not known here
		return
	}
	at = &net.TCPAddr{IP: at.IP, Zone: at.Zone}
	pulses.Lock()
	defer pulses.Unlock()
	p := pulses.m[at.String()]
	if p == nil {
		ln, err := net.ListenTCP("tcp", at)
		if err != nil {
			h.log.Debug("rendezvous: no second port", "err", err)
			return
		}
		p = &pulse{ln: ln, ended: make(chan struct{})}
		pulses.m[at.String()] = p
		go p.beat()
	}
	p.hubs++
	h.pulsePort = p.ln.Addr().(*net.TCPAddr).Port
	h.closePulse = sync.OnceFunc(func() {
		pulses.Lock()
		defer pulses.Unlock()
		if p.hubs--; p.hubs == 0 {
			delete(pulses.m, at.String())
			p.ln.Close()
			<-p.ended
		}
	})
}

func (p *pulse) beat() {
	// A name of its own, not the labels of the first hub's goroutine: it may live longer.
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("ringo", "pulse")))
	defer close(p.ended)
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		c.Write([]byte{1})
		c.Close()
	}
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

// errStalled is that a process takes no connections, and its host does.
var errStalled = errors.New("the process answers nothing, and its host does")

// mourn is the failure of a rank whose connection to the hub has ended.
func (m *member) mourn(why string) *Failure {
	ctx, cancel := m.whileOpen(2*pulseTime + witnessTime)
	defer cancel()
	if f := m.absent(ctx, why, m.silence.Load() || m.far()); f != nil {
		return f
	}
	return &Failure{Rank: m.rank, Culprits: []int{m.rank},
		Reason: "its connection to the rendezvous is lost (" + why + ")"}
}

// answered reports whether the hub's host has answered, by what feel returns.
func answered(err error) bool {
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, errStalled)
}

// far reports whether the hub is known to be on another host.
func (m *member) far() bool { return m.here != nil && !slices.Equal(m.here, m.there) }

// absent finds out why the hub answers nothing. If it answers now the result is nil, unless it was cut off before.
func (m *member) absent(ctx context.Context, why string, cut bool) *Failure {
	hosts := m.Hub()
	f := &Failure{Rank: -1, Culprits: hosts, Died: true, Reason: why + " (connection to the rendezvous)"}
	if len(hosts) > 0 {
		f.Rank = hosts[0]
	}
	if m.feel == nil && m.silence.Load() {
		return m.testify(ctx, why, true, nil)
	}
	if m.feel == nil {
		return f
	}
	feel := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return m.feel(ctx)
	}
	switch err := feel(pulseTime); {
	case err == nil && !cut:
		return nil
	case err == nil:
		return m.testify(ctx, why, m.silence.Load(), nil)
	case (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)) && !isClosed(m.ended):
		return nil // the connection tells, and perhaps why
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		f.Reason = "its process ended without goodbye"
		m.mu.Lock()
		m.hubDied = true
		m.mu.Unlock()
		if m.silence.Load() { // before, and perhaps for that reason
			return m.testify(ctx, why, true, nil)
		}
	case errors.Is(err, errStalled):
		f.Died, f.Reason = false, why+": its process answers nothing, and its host does: is it stopped?"
	default:
		return m.testify(ctx, why, true, func() bool { return answered(feel(againTime)) })
	}
	return f
}
