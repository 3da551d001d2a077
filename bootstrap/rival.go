// Rivals: two processes that serve one ID. The kernel deals callers out to the listeners of a port.

package bootstrap

import (
	"bytes"
	"cmp"
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

// An identity tells a hub from its rivals.
type identity struct {
	name auth.Nonce
	born uint64 // in ns since 1970
	stop func() // ends findRivals
}

// hail is this hub's answer to a claim.
func (h *hub) hail() *rendezvous.Hail {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &rendezvous.Hail{Name: h.self.name[:], Began: h.self.born, Pid: os.Getpid(), Host: hostname(),
		Waits: h.coordinator == nil && h.verdict == nil && !h.stopped}
}

// findRivals ends this hub if an older one in another process waits for ranks with the same ID.
func (h *hub) findRivals() {
	at, ok := h.entry.ln.Addr().(*net.TCPAddr)
	if !ok || h.opt.shared != nil { // nobody else has the caller's own Listener
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	h.self.stop = cancel
	for range hails {
		h.wg.Go(func() {
			if r, err := h.self.call(ctx, h.id, h.opt.TLS, at.String()); err == nil {
				h.met(r)
			}
		})
	}
}

// call asks which hub answers at an address.
func (i *identity) call(ctx context.Context, id ID, tls *TLS, at string) (*rendezvous.Hail, error) {
	below, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	defer below.Close()
	defer context.AfterFunc(ctx, func() { below.Close() })()
	conn := below
	if tls != nil {
		if conn, err = tls.Client(conn); err != nil {
			return nil, err
		}
	}
	me := &rendezvous.Claim{Size: 1, Pid: os.Getpid(), Host: hostname(), Rival: i.name[:]}
	answer, err := auth.Call(conn, id.key(), protocol, rendezvous.Append(nil, me))
	if err != nil {
		return nil, err
	}
	r := new(rendezvous.Hail)
	return r, rendezvous.Parse(answer, r)
}

// met notes which hub has answered: the older one of two goes on.
func (h *hub) met(r *rendezvous.Hail) {
	h.mu.Lock()
	defer h.mu.Unlock()
	older := cmp.Or(cmp.Compare(r.Began, h.self.born), bytes.Compare(r.Name, h.self.name[:])) < 0
	if !r.Waits || !older || h.coordinator != nil || h.verdict != nil || h.stopped {
		return
	}
	h.refuseAll(conflict("process %d on %s has served the meeting point %s of this job since %s, and waits for its "+
		"ranks: is it left over from an earlier try, or are these two jobs? end it, or give each job its own address "+
		"(RINGO_COMM_ID, MASTER_PORT)", r.Pid, r.Host, h.id.Addr(), time.Unix(0, int64(r.Began)).Format(time.TimeOnly)))
}

// visited notes a hub that has called this one.
func (h *hub) visited(c *rendezvous.Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !bytes.Equal(c.Rival, h.self.name[:]) {
		h.rival = fmt.Sprintf("; process %d on %s serves the same meeting point, and may have some of them", c.Pid, c.Host)
	}
}
