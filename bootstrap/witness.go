// Witnesses: ranks that say whether they hear the hub, for others that do not.

package bootstrap

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

const (
	witnessProtocol = "ringo witness 1"
	witnessTime     = pulseTime + time.Second // for a witness to answer
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

// claimWitness opens the port of a rank that may be a witness, at the address of its successor's port. It returns the
// number of the port, 0 if there is none.
func (j *joiner) claimWitness() int {
	if j.port == nil {
		return 0
	}
	if j.witness == nil {
		at := j.port.Addr().(*net.TCPAddr)
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: at.IP, Zone: at.Zone})
		if err != nil {
			return 0
		}
		j.witness = ln
	}
	return j.witness.Addr().(*net.TCPAddr).Port
}

// appointWitnesses fills in who is a witness: the first rank with such a port of each host but the hub's, and for whom:
// all others there.
func (l *lobby) appointWitnesses(land *rendezvous.Land, starts []rendezvous.Start) {
	if !land.Several() {
		return
	}
	var all []rendezvous.RankAddr
	at := map[int][]int{} // by place, the lowest maxNamed ranks
	for rank, p := range land.Places {
		if s := l.seats[rank]; p != land.Hub && s.Witness > 0 && len(all) < rendezvous.MaxWitnesses &&
			!slices.ContainsFunc(all, func(h rendezvous.RankAddr) bool { return land.Places[h.Rank] == p }) {
			host, _, _ := net.SplitHostPort(s.from)
			all = append(all, rendezvous.RankAddr{Rank: rank, Addr: net.JoinHostPort(host, strconv.Itoa(s.Witness))})
			starts[rank].Witness = true
		}
		if len(at[p]) < maxNamed {
			at[p] = append(at[p], rank)
		}
	}
	for rank, p := range land.Places {
		starts[rank].Here, starts[rank].There = at[p], at[land.Hub]
		for _, h := range all {
			if p != land.Hub && h.Rank != rank {
				starts[rank].Witnesses = append(starts[rank].Witnesses, h)
			}
		}
	}
}

// observe gives a member's lookout what it needs to find out about the hub, and serves if the rank is a witness.
func (j *joiner) observe(m *member, s *rendezvous.Start) {
	o := &m.lookout
	o.here, o.there, o.witnesses = s.Here, s.There, s.Witnesses
	o.ask = func(ctx context.Context, address string, a rendezvous.Ask) (s rendezvous.Statement, lives bool) {
		conn, err := j.dial(ctx, address)
		if err != nil {
			return s, answers(nil, err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		answer, err := auth.Call(conn, m.key, witnessProtocol, rendezvous.Append(nil, &a))
		if err != nil || rendezvous.Parse(answer, &s) != nil {
			return rendezvous.Statement{}, true // its host has answered
		}
		return s, true
	}
	o.knock = func(ctx context.Context, address string) bool { return answers(j.dial(ctx, address)) }
	if j.witness == nil {
		return
	}
	if !s.Witness {
		j.witness.Close()
		return
	}
	w := &witness{ln: j.witness, turn: make(chan struct{}, 1),
		pending: auth.NewPending(maxAskers, witnessTime+handshakeTime, nil)}
	o.witness = w
	w.tasks.Go(func() {
		w.pending.Serve(w.ln, func(conn net.Conn) {
			auth.Answer(conn, m.key, witnessProtocol, func(body []byte) []byte {
				var a rendezvous.Ask
				if rendezvous.Parse(body, &a) == nil {
					w.tell(a)
				}
				return rendezvous.Append(nil, w.look(m))
			})
		})
	})
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
func (w *witness) look(m *member) *rendezvous.Statement {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if time.Since(w.at) > pulseTime/3 {
		w.seen = m.lookout.sees(m.uplink.open)
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
