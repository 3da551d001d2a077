// The pulse: how a rank whose connection to the hub has ended finds out which side has failed.

package bootstrap

import (
	"context"
	"log/slog"
	"net"
	"runtime/pprof"
	"sync"
)

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

// openPulse opens the pulse at a hub's address, or shares it, until end is called. The port is 0 if there is none.
func openPulse(hub net.Addr, log *slog.Logger) (port int, end func()) {
	at, ok := hub.(*net.TCPAddr)
	if !ok {
		return 0, func() {}
	}
	at = &net.TCPAddr{IP: at.IP, Zone: at.Zone}
	pulses.Lock()
	defer pulses.Unlock()
	p := pulses.m[at.String()]
	if p == nil {
		ln, err := net.ListenTCP("tcp", at)
		if err != nil {
			log.Debug("rendezvous: no second port", "err", err)
			return 0, func() {}
		}
		p = &pulse{ln: ln, ended: make(chan struct{})}
		pulses.m[at.String()] = p
		go p.beat()
	}
	p.hubs++
	return p.ln.Addr().(*net.TCPAddr).Port, sync.OnceFunc(func() {
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
