// Rivals: two processes that serve one ID. The kernel deals callers out to the listeners of a port.

package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

// hails is how often a new hub calls its own address: the kernel chooses who answers.
const hails = 16

// hail is this hub's answer to a claim.
func (h *hub) hail() *rendezvous.Hail {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &rendezvous.Hail{Name: h.name[:], Began: h.born, Waits: h.coordinator == nil && h.verdict == nil && !h.stopped,
		Pid: os.Getpid(), Host: hostname()}
}

// findRivals ends this hub if an older one in another process waits for ranks with the same ID.
func (h *hub) findRivals() {
	at, ok := h.ln.Addr().(*net.TCPAddr)
	if !ok || h.opt.shared != nil { // nobody else has the caller's own Listener
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	h.closeCalls = cancel
	for range hails {
		h.wg.Go(func() {
			if r, err := h.call(ctx, at.String()); err == nil {
				h.met(r)
			}
		})
	}
}

// call asks which hub answers at an address.
func (h *hub) call(ctx context.Context, at string) (*rendezvous.Hail, error) {
	j := &joiner{id: h.id, opt: JoinOptions{TLS: h.opt.TLS}}
	below, err := j.dial(ctx, at)
	if err != nil {
		return nil, err
	}
	defer below.Close()
	defer context.AfterFunc(ctx, func() { below.Close() })()
	conn := below
	if h.opt.TLS != nil {
		if conn, err = h.opt.TLS.Client(conn); err != nil {
			return nil, err
		}
	}
	me := &rendezvous.Claim{Size: 1, Pid: os.Getpid(), Host: hostname(), Rival: h.name[:]}
	answer, err := auth.Call(conn, h.id.key(), protocol, rendezvous.Append(nil, me))
	if err != nil {
		return nil, err
	}
	r := new(rendezvous.Hail)
	return r, rendezvous.Parse(answer, r)
}

// met notes which hub has answered.
func (h *hub) met(r *rendezvous.Hail) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.Waits || !h.after(r) || h.coordinator != nil || h.verdict != nil || h.stopped {
		return
	}
	h.refuseAll(conflict("process %d on %s has served the meeting point %s of this job since %s, and waits for its "+
		"ranks: is it left over from an earlier try, or are these two jobs? end it, or give each job its own address "+
		"(RINGO_COMM_ID, MASTER_PORT)", r.Pid, r.Host, h.id.Addr(), time.Unix(0, int64(r.Began)).Format(time.TimeOnly)))
}

// after reports whether the hub that has answered is the older one.
func (h *hub) after(r *rendezvous.Hail) bool {
	return r.Began < h.born || r.Began == h.born && bytes.Compare(r.Name, h.name[:]) < 0
}

// visited notes a hub that has called this one.
func (h *hub) visited(c *rendezvous.Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !bytes.Equal(c.Rival, h.name[:]) {
		h.rival = fmt.Sprintf("; process %d on %s serves the same meeting point, and may have some of them", c.Pid, c.Host)
	}
}

// hostname is the name of this host, for messages.
func hostname() string {
	host, _ := os.Hostname()
	return host[:min(len(host), 255)]
}
