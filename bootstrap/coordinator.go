package bootstrap

import (
	"math"
	"slices"
	"sync"
	"time"
)

// settle is how long a rank's complaint waits before the others hear it. When
// a rank dies, its neighbours may see their data connections break, and complain,
// before the hub sees the death. Then all should hear of the death instead.
const settle = 100 * time.Millisecond

// A coordinator is the state machine of a group that is complete: it takes the messages of the
// ranks and decides the answers. It knows no network.
type coordinator struct {
	size int
	tell func(to []int, m message) // called with mu held; must not block

	mu      sync.Mutex
	next    []uint64 // by rank: AllGathers it took part in
	gathers map[uint64]*gather
	gone    []bool        // by rank: left or died
	bye     map[int]bool  // by rank: has left
	awaits  map[int][]int // by rank: the peers whose connection it waits for
	parting parting
	heads   []int  // by rank: the head of its machine, -1 if it has none
	kept    newest // results that heads give to others
	hosts   []int  // ranks whose process serves the hub
	stops   uint64 // number of the earliest AllGather that cannot complete, as all have been told
	failing []bool // by rank: has called Fail
	quit    []bool // by rank: has called Fail and blames nobody else
	told    []bool // by rank: knows of a failure that is not its own
	pending *complaint
	failure *Failure // the first one announced; no AllGather completes after it
	ledger  *ledger
	trial   *trial                 // nil until an operation has run out of time
	musters *muster                // the last, nil until ranks want to go on after a failure
	meet    func(*regrouped) error // sets where the members of a new group meet
	// called with nil when ranks begin to wait for a new group, then with its members; must not block
	regrouping func(members []int)
	failed     func(Failure) // called with the first failure; must not block
	severed    severed
	land       geography
	inquest    *inquest // nil while there is none
	unreached  []int    // ranks whose hosts have answered nothing
	here       int
	settled    *sync.Cond // pending became nil
}

// A complaint is a failure that settles.
type complaint struct {
	Failure
	from    int // the rank that complains; -1 is the coordinator itself
	timer   *time.Timer
	leaving bool   // from waits to leave
	losses  []loss // if it is of connections that broke: the first, and those of which others complain meanwhile
	polls   int    // see undecided
}

func newCoordinator(size int, hosts []int, tell func([]int, message)) *coordinator {
	r := &coordinator{
		size: size, tell: tell, here: size, hosts: hosts, stops: math.MaxUint64,
		next: make([]uint64, size), gathers: map[uint64]*gather{},
		gone: make([]bool, size), bye: map[int]bool{}, awaits: map[int][]int{}, parting: newParting(size),
		failing: make([]bool, size), quit: make([]bool, size), told: make([]bool, size),
		regrouping: func([]int) {}, failed: func(Failure) {}, ledger: newLedger(size),
		heads: slices.Repeat([]int{-1}, size), kept: newest{},
	}
	r.settled = sync.NewCond(&r.mu)
	return r
}

// hear takes a message of a rank. It returns false if the rank broke the protocol.
func (r *coordinator) hear(rank int, m message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[rank] {
		p, ok := m.(*parted)
		if ok {
			r.part(rank, p.Stage)
		}
		return ok
	}
	r.ledger.answered(rank)
	switch m := m.(type) {
	case *part:
		return r.addPart(rank, m)
	case *resend:
		return r.resend(rank, m)
	case *withdraw:
		return r.withdraw(rank, m)
	case *fail:
		if slices.ContainsFunc(m.Culprits, func(q int) bool { return q < 0 || q >= r.size }) ||
			m.Broken && (!slices.Contains(m.Culprits, rank) || len(m.Culprits) == 2 && m.Culprits[0] == m.Culprits[1]) {
			return false
		}
		r.complain(rank, m)
	case *leave:
		r.locate(rank, m)
		r.parting.stays[rank] = m.Stays
		r.leave(rank)
	case *position:
		if m.Known {
			r.ledger.note(rank, m.Position, time.Now())
			r.judge()
		}
		r.shown(rank)
	case *inquire:
		r.inquire(rank, m)
	case *late:
		r.late(rank, m.Position)
	case *regroup:
		r.regroup(rank, m)
	case *knocked:
		r.knocked(rank, m)
	case *giveUp: // crossed with the start: the rank goes on with that
	default:
		return false
	}
	return true
}

// lost notes that a rank's connection has ended, which is its death unless it has
// left before.
func (r *coordinator) lost(rank int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.part(rank, Apart)
	if r.gone[rank] {
		return
	}
	r.depart(rank)
	r.musters.deserted(rank, why)
	if r.inquest != nil && !r.inquest.concerns(rank) { // it ends because of what the inquest is about
		return
	}
	if !r.failing[rank] { // else the rank's own reason settles or was told
		r.inquest = nil
		r.announce(&Failure{Rank: rank, Culprits: []int{rank}, Died: true, Reason: why})
		r.forget() // this death is the cause of the complaint
	}
}

// unheard notes that a rank's connection has ended because its host answers nothing. Either of the two hosts may be cut
// off, or the path between them.
func (r *coordinator) unheard(rank int, why string) {
	r.mu.Lock()
	if !r.land.several() || r.gone[rank] || r.land.places[rank] == r.land.hub {
		r.mu.Unlock()
		r.lost(rank, why)
		return
	}
	defer r.mu.Unlock()
	defer r.part(rank, Apart)
	r.depart(rank)
	r.musters.deserted(rank, why)
	r.unreached = append(r.unreached, rank)
	r.investigate(func(q *inquest) { q.lost[rank] = why })
}

func (r *coordinator) complain(rank int, m *fail) {
	if r.failing[rank] {
		return
	}
	r.failing[rank], r.quit[rank] = true, len(m.Culprits) == 0
	culprit := rank // who may have left, which explains all
	if m.Broken && len(m.Culprits) == 1 {
		culprit = -1
	} else if m.Broken {
		culprit = m.Culprits[0] + m.Culprits[1] - rank
	} else if len(m.Culprits) == 1 {
		culprit = m.Culprits[0]
	}
	switch p, q := r.pending, r.inquest; {
	case len(r.audience(-1)) == 0:
		return
	case r.failure != nil: // all others know of it
		if !r.told[rank] && !r.quit[rank] {
			r.told[rank] = true
			r.tell([]int{rank}, &failed{*r.failure})
		}
		return
	case m.Broken && q != nil:
		q.losses = append(q.losses, loss{rank, culprit, m.Silent})
		return
	case m.Broken && p != nil && p.losses != nil:
		p.losses = append(p.losses, loss{rank, culprit, m.Silent})
		return
	case p != nil || q != nil:
		return
	}
	p := &complaint{Failure: Failure{Rank: rank, Culprits: m.Culprits, Reason: m.Reason}, from: rank}
	p.Path = len(m.Culprits) == 2 && m.Broken
	if m.Broken {
		p.losses = []loss{{rank, culprit, m.Silent}}
	} else if len(m.Culprits) == 0 {
		p.Culprits = []int{rank}
	}
	if last, left := r.ledger.ends[culprit]; left { // all get the same failure
		p.Failure, p.losses = *(&departure{culprit, last}).failure(), nil
	}
	r.await(p)
}

// await announces a complaint after settle, unless it is forgotten before.
func (r *coordinator) await(p *complaint) {
	p.timer = time.AfterFunc(settle, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pending != p {
			return
		}
		if late := r.undecided(p); len(late) > 0 {
			r.tell(late, &where{})
			p.timer.Reset(settle)
			return
		}
		if r.apart(p.losses) {
			r.investigate(func(q *inquest) { q.losses, q.reason = p.losses, p.Reason })
			return
		}
		r.announce(&p.Failure)
		r.forget()
	})
	r.pending = p
}

// maxPolls is how often ranks that have not yet begun the disputed Number are asked for their positions.
const maxPolls = 4

// undecided are the ranks that may yet show which of two calls most ranks make; none if that is known, or
// after maxPolls.
func (r *coordinator) undecided(p *complaint) []int {
	d := p.Disagree
	if d == nil || p.polls == maxPolls || !r.ledger.tied(d) {
		return nil
	}
	p.polls++
	return slices.DeleteFunc(r.others(-1), func(q int) bool { return r.ledger.last[q] >= d.Number })
}

// inquire takes the position of a rank that has waited long. If the known positions
// agree, the coordinator asks the other ranks for theirs (the roll call).
func (r *coordinator) inquire(rank int, m *inquire) {
	now := time.Now()
	r.ledger.note(rank, m.Position, now)
	r.awaited(rank, m.Awaits)
	judged := r.judge()
	if judged && r.ledger.disagree == nil {
		return
	}
	// Where two ranks disagree, the positions of the others show which call most ranks make.
	// Thousands inquire every second, so the ranks are listed only when a roll call is due.
	if r.ledger.due(now) {
		if ask := r.ledger.missing(r.others(rank), now); len(ask) > 0 {
			r.tell(ask, &where{})
		}
	}
	if !judged {
		var quiet []int
		if r.ledger.open > 0 {
			quiet = r.ledger.silent(r.others(rank), now)
		}
		r.tell([]int{rank}, &silent{quiet})
	}
}

// awaited notes the peers whose connection a rank waits for. The rank hears at once which of these have left, and later
// which leave.
func (r *coordinator) awaited(rank int, peers []int) {
	delete(r.awaits, rank)
	if len(peers) > 0 {
		r.awaits[rank] = peers
	}
	for _, peer := range peers {
		if r.bye[peer] {
			r.tell([]int{rank}, r.farewell(peer))
		}
	}
}

// farewell is the message that a rank has left.
func (r *coordinator) farewell(rank int) *left {
	return &left{Rank: rank, Seq: r.next[rank], Last: r.ledger.end(rank)}
}

// locate notes the position of a rank that leaves. A rank that has failed before is not blamed for leaving.
func (r *coordinator) locate(rank int, m *leave) {
	if !m.Known {
		return
	}
	r.ledger.note(rank, m.Position, time.Now())
	if !r.failing[rank] {
		r.ledger.left(rank, m.Position)
	}
	r.judge()
}

// judge reports whether the positions show that the ranks cannot go on. If so, all
// will hear of that failure: it settles as a complaint does, and replaces one.
func (r *coordinator) judge() bool {
	v := r.ledger.verdict()
	switch {
	case v == nil:
		return false
	case len(r.audience(-1)) == 0:
	case r.pending != nil:
		r.pending.Failure, r.pending.losses = *v, nil
	default:
		r.await(&complaint{Failure: *v, from: -1})
	}
	return true
}

// forget drops the complaint that settles, if there is one.
func (r *coordinator) forget() {
	p := r.pending
	if p == nil {
		return
	}
	p.timer.Stop()
	r.pending = nil
	r.settled.Broadcast()
	if p.leaving && !r.gone[p.from] {
		r.leave(p.from)
	}
}

// announce tells f to its audience, and gives up all AllGathers.
func (r *coordinator) announce(f *Failure) {
	if r.failure == nil {
		r.failure = f
		r.failed(*f)
	}
	to := slices.DeleteFunc(r.audience(-1), func(q int) bool { return slices.Equal(f.Culprits, []int{q}) && q == f.Rank })
	for _, q := range r.unreached { // they may hear it later
		if !r.told[q] {
			to = append(to, q)
		}
	}
	for _, q := range to {
		r.told[q] = true
	}
	if len(to) > 0 {
		r.tell(to, &failed{*f})
	}
	for seq, g := range r.gathers {
		if !g.withdrawn { // a rank that has failed itself may still wait
			r.giveUp(g, seq, f.Rank, f.Error())
		}
	}
	r.mustered()
}

// audience are all ranks but one, and but those that know of a failure already.
func (r *coordinator) audience(rank int) []int {
	return slices.DeleteFunc(r.others(rank), func(q int) bool { return r.told[q] })
}

func (r *coordinator) leave(rank int) {
	if p := r.pending; p != nil && p.from == rank {
		p.leaving = true // its complaint is announced first
		return
	}
	r.withdrawAll(rank, "it left the group")
	r.depart(rank)
	r.bye[rank] = true
	// A rank that leaves at the same AllGather as another, or later, is no news, and thousands leave at once.
	if r.next[rank] < r.stops || slices.Contains(r.hosts, rank) {
		r.stops = min(r.stops, r.next[rank])
		r.tell(r.others(rank), r.farewell(rank))
	} else {
		for _, q := range r.others(rank) {
			if slices.Contains(r.awaits[q], rank) {
				r.tell([]int{q}, r.farewell(rank))
			}
		}
	}
	r.tell([]int{rank}, &bye{})
	if r.parting.stays[rank] {
		r.part(rank, Left)
	} else {
		r.part(rank, Apart)
	}
}

func (r *coordinator) depart(rank int) {
	r.gone[rank] = true
	if r.here--; r.here == 0 {
		r.forget()
	}
	r.mustered()
}

// without reports whether rank has gone, and if so returns the ranks that are here.
func (r *coordinator) without(rank int) (here []int, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gone[rank] {
		return nil, false
	}
	return r.others(rank), true
}

// others are the ranks that are here, without rank.
func (r *coordinator) others(rank int) []int {
	all := make([]int, 0, r.here)
	for q := range r.size {
		if q != rank && !r.gone[q] {
			all = append(all, q)
		}
	}
	return all
}

// waitSettled returns when no complaint settles.
func (r *coordinator) waitSettled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.pending != nil {
		r.settled.Wait()
	}
}
