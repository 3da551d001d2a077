// Witnesses: how a rank to which the hub answers nothing finds out which of the two is cut off.

package bootstrap

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
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

	turn chan struct{} // full while the hub is asked; guards at and seen
	at   time.Time
	seen sight

	losers sync.Mutex
	lost   map[int]bool // under losers; by home, hosts that have said that they have lost the hub
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

// witnesses fills in who is a witness: the first rank with such a port of each host but the hub's, and for whom: all
// others there.
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
			if p != g.hub && h.Rank != rank {
				starts[rank].Witnesses = append(starts[rank].Witnesses, h)
			}
		}
	}
}

// observe gives the member what it needs to find out about the hub, and serves if it is a witness.
func (j *joiner) observe(m *member, s *start) {
	m.here, m.there, m.witnesses = s.Here, s.There, s.Witnesses
	m.ask = func(ctx context.Context, address string, home int, lost bool) (s statement, lives bool) {
		conn, err := j.dial(ctx, address)
		if err != nil {
			return s, answers(nil, err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		answer, err := auth.Call(conn, m.key, witnessProtocol, appendFlag(appendU32(nil, home), lost))
		f := fields{b: answer}
		if s = (statement{sight(f.u8()), f.ranks()}); err != nil || f.end() != nil {
			return statement{}, true // its host has answered
		}
		return s, true
	}
	m.knock = func(ctx context.Context, address string) bool { return answers(j.dial(ctx, address)) }
	if j.eye == nil {
		return
	}
	if !s.Witness {
		j.eye.Close()
		return
	}
	w := &witness{ln: j.eye, guests: auth.NewPending(maxAskers, witnessTime+handshakeTime, nil),
		ended: make(chan struct{}), turn: make(chan struct{}, 1)}
	m.witness = w
	go func() {
		defer close(w.ended)
		w.guests.Serve(w.ln, func(conn net.Conn) {
			auth.Answer(conn, m.key, witnessProtocol, func(body []byte) []byte {
				f := fields{b: body}
				home, lost := f.rank(), f.flag()
				if f.end() == nil && lost {
					w.tell(home)
				}
				return appendRanks([]byte{byte(w.look(m))}, w.told())
			})
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
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if time.Since(w.at) > pulseTime/3 {
		w.seen = m.sees()
		w.at = time.Now()
	}
	return w.seen
}

// tell notes that a host has lost the hub.
func (w *witness) tell(home int) {
	w.losers.Lock()
	defer w.losers.Unlock()
	if w.lost == nil {
		w.lost = map[int]bool{}
	}
	if len(w.lost) < maxTargets {
		w.lost[home] = true
	}
}

// told are the hosts that have lost the hub, as they have said.
func (w *witness) told() []int {
	w.losers.Lock()
	defer w.losers.Unlock()
	return slices.Sorted(maps.Keys(w.lost))
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
	if answered(m.feel(ctx)) {
		return hears
	}
	return missing
}

// A statement is what a rank says of the hub, and which hosts have told it that they have lost the hub. Hosts are named
// by the rank of home.
type statement struct {
	seen sight
	told []int
}

// home is the rank that stands for this rank's host.
func (m *member) home() int {
	for _, w := range m.witnesses {
		if slices.Contains(m.here, w.Rank) {
			return w.Rank
		}
	}
	if m.witness != nil || len(m.here) == 0 {
		return m.rank
	}
	return m.here[0]
}

// hubPlace is the place of the hub for judge.Losses; hosts are the ranks that stand for them.
const hubPlace = -1

// testify asks all witnesses, and judges by what they say. lost is that the hub is or was silent, which they are told.
// again asks the hub once more.
func (m *member) testify(ctx context.Context, why string, lost bool, again func() bool) *Failure {
	home := m.home()
	own := judge.Testimony{From: home, Lost: []int{hubPlace}}
	all := []judge.Testimony{own}
	var mu sync.Mutex
	note := func(from int, seen sight, told []int) { // from is a host that lives, as home knows
		mu.Lock()
		defer mu.Unlock()
		t := judge.Testimony{From: from}
		if from != home {
			all[0].Hears = append(all[0].Hears, from)
		}
		switch {
		case from == home:
		case seen == hears:
			t.Hears = []int{hubPlace}
		case seen == missing:
			t.Lost = []int{hubPlace}
		}
		for _, other := range told {
			if !slices.Contains(m.there, other) {
				t.Hears = append(t.Hears, other)
				all = append(all, judge.Testimony{From: other, Lost: []int{hubPlace}})
			}
		}
		all = append(all, t)
	}
	if m.witness != nil {
		note(home, unseen, m.witness.told())
	}
	var asked sync.WaitGroup
	for _, w := range m.witnesses {
		asked.Go(func() {
			if s, lives := m.ask(ctx, w.Addr, home, lost); lives {
				note(w.Rank, s.seen, s.told)
			} else if w.Rank != home {
				mu.Lock()
				defer mu.Unlock()
				all[0].Lost = append(all[0].Lost, w.Rank)
			}
		})
	}
	asked.Wait()
	slices.Sort(all[0].Lost)
	l := judge.Losses(all)
	if l.Path && (again == nil || again()) { // what was cut works again
		l = judge.Loss{Candidates: l.Culprits}
	}
	ranks := func(places []int) (ranks []int) {
		for _, p := range places {
			switch p {
			case hubPlace:
				ranks = append(append(ranks, m.there...), m.Hub()...)
			case home:
				ranks = append(append(ranks, m.here...), m.rank)
			default:
				ranks = append(ranks, p)
			}
		}
		slices.Sort(ranks)
		return slices.Compact(ranks)
	}
	f := &Failure{Rank: -1, Reason: "the rendezvous answers nothing: " + why}
	switch {
	case slices.Equal(l.Culprits, []int{hubPlace}):
		f.Culprits, f.Died = ranks(l.Culprits), true
		f.Reason = why + ", and it answers no other host: it is down or cut off"
		if len(f.Culprits) > 0 {
			f.Rank = f.Culprits[0]
		}
	case l.Path:
		if there := ranks([]int{hubPlace}); len(there) > 0 {
			f.Culprits, f.Path = []int{there[0], ranks([]int{home})[0]}, true
			slices.Sort(f.Culprits)
			break
		}
		f.Candidates = ranks([]int{home})[:1]
	default:
		f.Candidates = ranks(append(l.Culprits, l.Candidates...))
	}
	return f
}

// Seek finds out by itself why the hub does not answer, and makes that the Failure. If the hub lives it waits for the
// hub's word, at most InquestTime.
func (m *member) Seek() {
	ctx, cancel := m.whileOpen(InquestTime)
	defer cancel()
	var f *Failure
	if m.feel != nil && !isClosed(m.failed) && !isClosed(m.ended) {
		f = m.absent(ctx, "it has not answered in time", false)
	}
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
