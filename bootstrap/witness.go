// Witnesses: how a rank to which the hub answers nothing finds out which of the two is cut off.

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/trace/judge"
)

const (
	witnessProtocol = "ringo witness 1"
	witnessTime     = pulseTime + time.Second // for a witness to answer
	maxAskers       = 1024
)

// A sight is what a rank knows of the process that serves the hub.
type sight byte

const (
	unseen  sight = iota // nothing
	hears                // it answers, or its host does
	missing              // it has answered nothing
)

// A witness answers other ranks of its group that ask whether it hears the hub.
type witness struct {
	ln     net.Listener
	guests *auth.Pending
	ended  chan struct{}

	mu   sync.Mutex // held while the hub is asked
	at   time.Time
	seen sight
}

// claimWitness opens the port of a rank that may be a witness, at the address of its heir's port. It returns the number
// of the port, 0 if there is none.
func (j *joiner) claimWitness() int {
	if j.port == nil {
		return 0
	}
	if j.eye == nil {
		at := j.port.Addr().(*net.TCPAddr)
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: at.IP, Zone: at.Zone})
		if err != nil {
			return 0
		}
		j.eye = ln
	}
	return j.eye.Addr().(*net.TCPAddr).Port
}

// witnesses fills in who is a witness: the first rank with such a port of each host but the hub's, and for whom: ranks
// of yet other hosts.
func (g *geography) witnesses(seats map[int]*seat, starts []start) {
	if !g.several() {
		return
	}
	var all []heir
	at := map[int][]int{} // by place, the lowest maxNamed ranks
	for rank, p := range g.places {
		if s := seats[rank]; p != g.hub && s.Witness > 0 && len(all) < maxWitnesses &&
			!slices.ContainsFunc(all, func(h heir) bool { return g.places[h.Rank] == p }) {
			host, _, _ := net.SplitHostPort(s.from)
			all = append(all, heir{rank, net.JoinHostPort(host, strconv.Itoa(s.Witness))})
			starts[rank].Witness = true
		}
		if len(at[p]) < maxNamed {
			at[p] = append(at[p], rank)
		}
	}
	for rank, p := range g.places {
		starts[rank].Here, starts[rank].There = at[p], at[g.hub]
		for _, h := range all {
			if p != g.hub && g.places[h.Rank] != p {
				starts[rank].Witnesses = append(starts[rank].Witnesses, h)
			}
		}
	}
}

// observe gives the member what it needs to find out about the hub, and serves if it is a witness.
func (j *joiner) observe(m *member, s *start) {
	m.here, m.there, m.witnesses = s.Here, s.There, s.Witnesses
	m.ask = func(ctx context.Context, address string) (sight, bool) {
		conn, err := j.dial(ctx, address)
		if err != nil {
			return unseen, answers(nil, err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		answer, err := auth.Call(conn, m.key, witnessProtocol, nil)
		if err != nil || len(answer) != 1 {
			return unseen, true // its host has answered
		}
		return sight(answer[0]), true
	}
	m.knock = func(ctx context.Context, address string) bool { return answers(j.dial(ctx, address)) }
	if j.eye == nil {
		return
	}
	if !s.Witness {
		j.eye.Close()
		return
	}
	w := &witness{ln: j.eye, guests: auth.NewPending(maxAskers, witnessTime+handshakeTime, nil), ended: make(chan struct{})}
	m.witness = w
	go func() {
		defer close(w.ended)
		w.guests.Serve(w.ln, func(conn net.Conn) {
			auth.Answer(conn, m.key, witnessProtocol, func([]byte) []byte { return []byte{byte(w.look(m))} })
		})
	}()
}

func (w *witness) close() {
	if w != nil {
		w.ln.Close()
		w.guests.Close()
		<-w.ended
	}
}

// look is what a witness sees now; many that ask at once get one answer.
func (w *witness) look(m *member) sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.at) > pulseTime/3 {
		w.seen = m.sees()
		w.at = time.Now()
	}
	return w.seen
}

// sees is what this rank knows of the hub. A connection to it that has ended in silence counts, although the hub may
// answer again.
func (m *member) sees() sight {
	if m.silence.Load() {
		return missing
	}
	if m.feel == nil {
		return unseen
	}
	ctx, cancel := m.whileOpen(pulseTime)
	defer cancel()
	switch err := m.feel(ctx); {
	case err == nil, errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, errStalled):
		return hears
	}
	return missing
}

// Places for judge.Losses: those of the hub, of this rank, and from firstWitness on of the witnesses.
const (
	hubPlace = iota
	ownPlace
	firstWitness
)

// testify asks all witnesses, and judges by what they say. again asks the hub once more.
func (m *member) testify(ctx context.Context, why string, again func() bool) *Failure {
	own := judge.Testimony{From: ownPlace, Lost: []int{hubPlace}}
	said := make([]judge.Testimony, len(m.witnesses))
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, w := range m.witnesses {
		all.Go(func() {
			seen, lives := m.ask(ctx, w.Addr)
			mu.Lock()
			defer mu.Unlock()
			place := firstWitness + i
			said[i].From = place
			switch {
			case !lives:
				own.Lost = append(own.Lost, place)
				return
			case seen == hears:
				said[i].Hears = []int{hubPlace}
			case seen == missing:
				said[i].Lost = []int{hubPlace}
			}
			own.Hears = append(own.Hears, place)
		})
	}
	all.Wait()
	slices.Sort(own.Lost)
	l := judge.Losses(append(said, own))
	if l.Path && (again == nil || again()) { // what was cut works again
		l = judge.Loss{Candidates: l.Culprits}
	}
	ranks := func(places []int) (ranks []int) {
		for _, p := range places {
			switch p {
			case hubPlace:
				ranks = append(append(ranks, m.there...), m.Hub()...)
			case ownPlace:
				ranks = append(append(ranks, m.here...), m.rank)
			default:
				ranks = append(ranks, m.witnesses[p-firstWitness].Rank)
			}
		}
		slices.Sort(ranks)
		return slices.Compact(ranks)
	}
	f := &Failure{Rank: -1, Reason: "the rendezvous answers nothing: " + why}
	switch {
	case slices.Equal(l.Culprits, []int{hubPlace}):
		f.Culprits, f.Died = ranks(l.Culprits), true
		f.Reason = fmt.Sprintf("%s, and answers rank %d on another host as little: it is down or cut off", why,
			m.witnesses[slices.IndexFunc(said, func(t judge.Testimony) bool { return len(t.Lost) > 0 })].Rank)
		if len(f.Culprits) > 0 {
			f.Rank = f.Culprits[0]
		}
	case l.Path:
		if there := ranks([]int{hubPlace}); len(there) > 0 {
			f.Culprits, f.Path = []int{there[0], ranks([]int{ownPlace})[0]}, true
			slices.Sort(f.Culprits)
			break
		}
		f.Candidates = ranks([]int{ownPlace})[:1]
	default:
		f.Candidates = ranks(append(l.Culprits, l.Candidates...))
	}
	return f
}

// Seek finds out by itself why the hub does not answer, and makes that the Failure. If the hub lives it waits for the
// hub's word, at most InquestTime.
func (m *member) Seek() {
	if m.feel == nil || isClosed(m.failed) || isClosed(m.ended) {
		return
	}
	ctx, cancel := m.whileOpen(InquestTime)
	defer cancel()
	f := m.absent(ctx, "it has not answered in time", false)
	if f == nil {
		select {
		case <-m.failed:
		case <-ctx.Done():
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !isClosed(m.closed) {
		m.fail(f)
	}
}
