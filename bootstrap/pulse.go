// The pulse: how a rank whose connection to the hub has ended finds out which side has failed.

package bootstrap

import (
	"context"
	"log/slog"
	"net"
	"runtime/pprof"
	"sync"

	"github.com/ringo-go/ringo/internal/process"
)

// A pulse is a second port of this process, open while the process serves hubs at an address. It sends each caller a
// byte: a process that is being killed may still have the port, but answers nothing. All hubs at the address share the
// pulse, so that one more hub costs nothing.
type pulse struct {
	ln    net.Listener
	ended chan struct{}
}

var pulses = process.NewShared[string]((*pulse).close) // by address

// openPulse opens the pulse at a hub's address, or shares it, until end is called. The port is 0 if there is none.
func openPulse(hub net.Addr, log *slog.Logger) (port int, end func()) {
	at, ok := hub.(*net.TCPAddr)
	if !ok {
		return 0, func() {}
	}
	at = &net.TCPAddr{IP: at.IP, Zone: at.Zone}
	p, err := pulses.Open(nil, at.String(), func() (*pulse, error) {
		ln, err := net.ListenTCP("tcp", at)
		if err != nil {
			return nil, err
		}
		p := &pulse{ln: ln, ended: make(chan struct{})}
		go p.beat()
		return p, nil
	})
	if err != nil {
		log.Debug("rendezvous: no second port", "err", err)
		return 0, func() {}
	}
	return p.ln.Addr().(*net.TCPAddr).Port, sync.OnceFunc(func() { pulses.Leave(nil, at.String()) })
}

func (p *pulse) close() error {
	err := p.ln.Close()
	<-p.ended
	return err
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
