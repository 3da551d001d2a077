// The pulse: how a rank whose connection to the hub has ended finds out which side has failed.

package bootstrap

import (
	"context"
	"errors"
	"net"
	"runtime/pprof"
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
