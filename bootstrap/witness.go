// Witnesses: ranks that say whether they hear the hub, for others that do not.

package bootstrap

import (
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

const (
	witnessProtocol = "ringo witness 1"
	maxAskers       = 1024
	maxNamed        = 64 // ranks of a host that are named to another host
)

// A witness answers other ranks of its group that ask whether it hears the hub.
type witness struct {
	ln      net.Listener
	pending *auth.Pending
	tasks   sync.WaitGroup

	turn chan struct{} // full while the hub is asked; guards at and seen
	at   time.Time
	seen rendezvous.Sight

	mu   sync.Mutex
	lost map[int]bool // by home, hosts that have said that they have lost the hub
}

// answers reports whether a host has answered a dial: one that refuses has.
func answers(c net.Conn, err error) bool {
	if err == nil {
		c.Close()
	}
	return err == nil || refused(err)
}

func (w *witness) close() {
	if w != nil {
		w.ln.Close()
		w.pending.Close()
		w.tasks.Wait()
	}
}

// look is what a witness sees now, and has been told; many that ask at once get one answer.
func (w *witness) look(sees func() rendezvous.Sight) *rendezvous.Statement {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if time.Since(w.at) > pulseTime/3 {
		w.seen = sees()
		w.at = time.Now()
	}
	return &rendezvous.Statement{Seen: w.seen, Told: w.told()}
}

// tell notes what a host has said of the hub.
func (w *witness) tell(a rendezvous.Ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil {
		w.lost = map[int]bool{}
	}
	if a.Lost && len(w.lost) < rendezvous.MaxTargets {
		w.lost[a.Home] = true
	}
}

// told are the hosts that have lost the hub, as they have said.
func (w *witness) told() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.lost))
}
