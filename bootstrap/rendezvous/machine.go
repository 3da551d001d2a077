package rendezvous

import (
	"maps"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// A Config is what a machine has to know of a group that begins.
type Config struct {
	Size   int
	Hosts  []int      // ranks whose process serves the hub
	Heads  []int      // by rank: the head of its machine, -1 if it has none; nil: nobody has
	Land   Land       // where the ranks are
	Homes  [][]string // by rank, twice: the names of its machine and of its process, "" if not known
	Failed Paths      // paths that have failed once in groups before
}

// A Machine decides what events mean for a group that is complete.
type Machine struct {
	now     time.Time
	outbox  outbox
	ranks   ranks
	land    Land
	gathers gathers
	stages  stages
	calls   *callLog
	cuts    cuts
	awaits  map[int][]int // by rank: the peers whose connection it waits for

	pending   *pending
	failure   *Failure // the first one announced; no AllGather completes after it
	inquiry   *inquiry // nil until an operation has run out of time
	inquest   *inquest // nil while there is none
	stage     uint64   // of the last inquest
	unreached []int    // ranks whose hosts have answered nothing
	round     *round   // the last, nil until ranks want to go on after a failure
	number    uint64   // of the last round
	meeting   map[uint64]*round
}

// New makes the machine of a group.
func New(c Config) *Machine {
	m := &Machine{ranks: newRanks(c.Size, c.Hosts), land: c.Land, calls: newCallLog(c.Size), awaits: map[int][]int{},
		meeting: map[uint64]*round{}}
	m.gathers = newGathers(&m.ranks, &m.outbox, c.Heads)
	m.stages = newStages(c.Size, &m.outbox)
	m.cuts = cuts{ranks: &m.ranks, homes: c.Homes, failed: c.Failed}
	return m
}

// Step takes an event of a time that does not go back, and says what to do. The actions are valid until the next Step.
func (m *Machine) Step(now time.Time, e Event) []Action {
	m.now = now
	m.outbox.actions = m.outbox.actions[:0]
	switch e := e.(type) {
	case Said:
		if !m.said(e.Rank, e.Message) {
			m.outbox.do(Refuse{e.Rank})
		}
	case Lost:
		m.lost(e.Rank, e.Why)
	case Unheard:
		m.unheard(e.Rank, e.Why)
	case Fired:
		m.fired(e.Timer)
	case Met:
		if t := m.meeting[e.Number]; t != nil {
			delete(m.meeting, e.Number)
			t.tell(e)
		}
	case Acknowledged:
		if q := m.inquest; q != nil && q.phase == looks {
			m.close(q, q.surveyed(e.Ranks))
		}
	case Reached:
		if q := m.inquest; q != nil {
			m.close(q, q.reached(e))
		}
	}
	return m.outbox.actions
}

// Settling reports whether a failure is pending.
func (m *Machine) Settling() bool { return m.pending != nil }

// Gone reports whether a rank has left or died.
func (m *Machine) Gone(rank int) bool { return m.ranks.gone[rank] }

// Here are the ranks that have neither left nor died.
func (m *Machine) Here() []int { return m.ranks.all() }

// said takes a message of a rank. It returns false if the rank broke the protocol.
func (m *Machine) said(rank int, msg Message) bool {
	if m.ranks.gone[rank] {
		p, ok := msg.(*Parted)
		if ok {
			m.stages.reach(rank, p.Stage)
		}
		return ok
	}
	m.calls.answered(rank)
	switch msg := msg.(type) {
	case *Part:
		return m.gathers.part(rank, msg, m.failure)
	case *Resend:
		return m.gathers.resend(rank, msg)
	case *Withdraw:
		return m.gathers.withdraw(rank, msg)
	case *Fail:
		if !msg.valid(rank, m.ranks.size) {
			return false
		}
		m.complain(rank, msg)
	case *Leave:
		m.leaves(rank, msg)
	case *There:
		m.there(rank, msg)
	case *Inquire:
		m.inquire(rank, msg)
	case *Late:
		m.late(rank, msg.Position)
	case *Regroup:
		m.regroup(rank, msg)
	case *Knocked:
		if q := m.inquest; q != nil {
			m.close(q, q.answered(rank, msg))
		}
	case *GiveUp: // crossed with the start: the rank goes on with that
	default:
		return false
	}
	return true
}

// fired goes on where a timer has run out.
func (m *Machine) fired(t Timer) {
	switch t.Of {
	case Settle:
		m.settled()
	case Inquiry:
		m.conclude()
	case Inquest:
		if q := m.inquest; q != nil {
			m.close(q, q.end())
		}
	case Round:
		if m.round != nil {
			m.goOn()
		}
	case Quitter:
		if m.round != nil && !m.round.over && !m.ranks.gone[t.Rank] {
			m.outbox.tell([]int{t.Rank}, &Where{})
		}
	}
}

// lost notes that a rank's connection has ended.
func (m *Machine) lost(rank int, why string) {
	defer m.stages.end(rank)
	if m.ranks.gone[rank] {
		return
	}
	m.depart(rank)
	if m.round != nil {
		m.round.missed(rank, why)
	}
	if m.inquest != nil && !m.inquest.explains(rank) { // it ends because of what the inquest is about
		return
	}
	if !m.ranks.failing[rank] { // else the rank's own reason settles or was told
		m.drop()
		m.announce(&Failure{Rank: rank, Culprits: []int{rank}, Died: true, Reason: why})
		m.forget() // this death is the cause of the complaint
	}
}

func (m *Machine) unheard(rank int, why string) {
	if m.ranks.gone[rank] || !m.land.far(rank) {
		m.lost(rank, why)
		return
	}
	defer m.stages.end(rank)
	m.depart(rank)
	if m.round != nil {
		m.round.missed(rank, why)
	}
	m.unreached = append(m.unreached, rank)
	m.investigate(func(q *inquest) { q.lost[rank] = why })
}

// depart notes that a rank is not here any more.
func (m *Machine) depart(rank int) {
	m.ranks.gone[rank] = true
	if m.ranks.here--; m.ranks.here == 0 {
		m.forget()
	}
	m.goOnIfAll()
}

// complain takes a rank's Fail.
func (m *Machine) complain(rank int, f *Fail) {
	r := &m.ranks
	if r.failing[rank] {
		return
	}
	r.failing[rank], r.quit[rank] = true, len(f.Culprits) == 0
	p, explains := complaint(rank, f)
	switch q := m.inquest; {
	case r.allKnow():
	case m.failure != nil: // all others know of it
		if !r.told[rank] && !r.quit[rank] {
			r.told[rank] = true
			m.outbox.tell([]int{rank}, &Failed{*m.failure})
		}
	case f.Broken && q != nil:
		q.losses = append(q.losses, p.losses...)
	case f.Broken && m.pending != nil && m.pending.losses != nil:
		m.pending.losses = append(m.pending.losses, p.losses...)
	case m.pending != nil || q != nil:
	default:
		if last, left := m.calls.ends[explains]; left { // all get the same failure
			p.Failure, p.losses = *(&Departure{explains, last}).Failure(), nil
		}
		m.await(p)
	}
}

// await has a failure settle.
func (m *Machine) await(p *pending) {
	m.pending = p
	m.outbox.do(Begin{Timer{Of: Settle}, SettleTime})
}

// settled announces the pending failure, unless more has to be known.
func (m *Machine) settled() {
	p := m.pending
	if p == nil {
		return
	}
	if ask := p.undecided(m.calls, m.ranks.all()); len(ask) > 0 {
		m.outbox.tell(ask, &Where{})
		m.outbox.do(Begin{Timer{Of: Settle}, SettleTime})
		return
	}
	if m.land.apart(p.losses) {
		m.investigate(func(q *inquest) { q.losses, q.reason = p.losses, p.Reason })
		return
	}
	m.announce(&p.Failure)
	m.forget()
}

// forget drops the pending failure, if there is one.
func (m *Machine) forget() {
	p := m.pending
	if p == nil {
		return
	}
	m.pending = nil
	m.outbox.do(End{Timer{Of: Settle}})
	if p.leaving && !m.ranks.gone[p.from] {
		m.leave(p.from)
	}
}

// announce tells f to all who know of no failure yet, and gives up all AllGathers.
func (m *Machine) announce(f *Failure) {
	if m.failure == nil {
		m.failure = f
		m.outbox.do(Announce{*f})
	}
	r := &m.ranks
	to := slices.DeleteFunc(r.audience(), func(q int) bool { // who has complained of itself knows
		return slices.Equal(f.Culprits, []int{q}) && q == f.Rank && !f.Died
	})
	for _, q := range m.unreached { // they may hear it later
		if !r.told[q] {
			to = append(to, q)
		}
	}
	for _, q := range to {
		r.told[q] = true
	}
	m.outbox.tell(to, &Failed{*f})
	m.gathers.giveUpAll(1<<64-1, f.Rank, f.Error()) // a rank that has failed itself may still wait
	m.goOnIfAll()
}

// leaves takes a rank's goodbye, with its position. A rank that has failed before is not blamed for leaving.
func (m *Machine) leaves(rank int, msg *Leave) {
	if msg.Known.Known {
		m.calls.note(rank, msg.Position, m.now)
		if !m.ranks.failing[rank] {
			m.calls.left(rank, msg.Position)
		}
		m.judge()
	}
	m.stages.stays[rank] = msg.Stays
	m.leave(rank)
}

func (m *Machine) leave(rank int) {
	if p := m.pending; p != nil && p.from == rank {
		p.leaving = true // its complaint is announced first
		return
	}
	stops := m.gathers.leave(rank)
	m.depart(rank)
	m.ranks.left[rank] = true
	if stops || slices.Contains(m.ranks.hosts, rank) {
		m.outbox.tell(m.ranks.all(), m.farewell(rank))
	} else {
		for _, q := range slices.Sorted(maps.Keys(m.awaits)) {
			if !m.ranks.gone[q] && slices.Contains(m.awaits[q], rank) {
				m.outbox.tell([]int{q}, m.farewell(rank))
			}
		}
	}
	m.outbox.tell([]int{rank}, &Bye{})
	if m.stages.stays[rank] {
		m.stages.reach(rank, Left)
	} else {
		m.stages.reach(rank, Apart)
	}
}

// farewell is the message that a rank has left.
func (m *Machine) farewell(rank int) *Gone {
	return &Gone{Rank: rank, Seq: m.gathers.next[rank], Last: m.calls.end(rank)}
}

// there takes a rank's answer to Where.
func (m *Machine) there(rank int, msg *There) {
	if msg.Known.Known {
		m.calls.note(rank, msg.Position, m.now)
		m.judge()
	}
	if m.round != nil && m.round.shown(rank) {
		m.goOnIfAll()
	}
}

// inquire takes the position of a rank that has waited long. If the known positions
// agree, the other ranks are asked for theirs (the roll call).
func (m *Machine) inquire(rank int, msg *Inquire) {
	m.calls.note(rank, msg.Position, m.now)
	m.awaited(rank, msg.Awaits)
	judged := m.judge()
	if judged && m.calls.disagree == nil {
		return
	}
	// Where two ranks disagree, the positions of the others show which call most ranks make.
	// Thousands inquire every second, so the ranks are listed only when a roll call is due.
	if m.calls.due(m.now) {
		m.outbox.tell(m.calls.missing(m.ranks.others(rank), m.now), &Where{})
	}
	if !judged {
		var quiet []int
		if m.calls.open > 0 {
			quiet = m.calls.silent(m.ranks.others(rank), m.now)
		}
		m.outbox.tell([]int{rank}, &Silent{quiet})
	}
}

// awaited notes the peers whose connection a rank waits for. The rank hears at once which of these have left, and later
// which leave.
func (m *Machine) awaited(rank int, peers []int) {
	delete(m.awaits, rank)
	if len(peers) > 0 {
		m.awaits[rank] = peers
	}
	for _, peer := range peers {
		if peer >= 0 && peer < m.ranks.size && m.ranks.left[peer] {
			m.outbox.tell([]int{rank}, m.farewell(peer))
		}
	}
}

// judge reports whether the positions show that the ranks cannot go on. If so, all
// will hear of that failure: it settles as a complaint does, and replaces one.
func (m *Machine) judge() bool {
	v := m.calls.verdict()
	switch {
	case v == nil:
		return false
	case m.ranks.allKnow():
	case m.pending != nil:
		m.pending.Failure, m.pending.losses = *v, nil
	default:
		m.await(&pending{Failure: *v, from: -1})
	}
	return true
}

// late notes where a rank was stopped. The first call begins an inquiry, and stops all others.
func (m *Machine) late(rank int, p Position) {
	if m.inquiry == nil {
		if m.ranks.allKnow() {
			return
		}
		m.inquiry = &inquiry{said: map[int]Position{}}
		m.outbox.do(Begin{Timer{Of: Inquiry}, TrialTime})
		m.outbox.tell(m.ranks.others(rank), &Halt{})
	}
	if m.inquiry.over {
		return
	}
	m.calls.note(rank, p, m.now)
	m.inquiry.said[rank] = p
	for _, q := range m.ranks.all() {
		if _, ok := m.inquiry.said[q]; !ok {
			return
		}
	}
	m.conclude()
}

// conclude ends an inquiry, and tells all ranks which are to blame.
func (m *Machine) conclude() {
	t := m.inquiry
	if t == nil || t.over {
		return
	}
	t.over = true
	m.outbox.do(End{Timer{Of: Inquiry}})
	if m.judge() || m.ranks.allKnow() {
		return
	}
	f := verdictOf(m.ranks.size, t.said, m.ranks.gone)
	switch {
	case m.inquest != nil:
	case f.Late.Reason == judge.Silent && slices.ContainsFunc(f.Culprits, m.land.far):
		m.investigate(func(q *inquest) { q.late = f })
	default:
		m.announce(f)
		m.forget() // complaints are consequences
	}
}

// investigate begins an inquest, or adds to the one that is under way.
func (m *Machine) investigate(add func(q *inquest)) {
	q := m.inquest
	if q != nil {
		add(q)
		return
	}
	if m.ranks.allKnow() {
		m.forget()
		return
	}
	q = &inquest{ranks: &m.ranks, land: &m.land, out: &m.outbox, stage: m.stage, lost: map[int]string{},
		heard: map[int]bool{}, back: map[int]bool{}}
	m.inquest = q
	add(q)
	m.close(q, q.begin())
}

// close ends the inquest if it is over, and tells all ranks which are to blame.
func (m *Machine) close(q *inquest, over bool) {
	if !over {
		return
	}
	m.drop()
	if p := m.pending; p != nil && p.losses == nil { // the positions show more, see judge
		m.announce(&p.Failure)
	} else {
		m.announce(q.found())
	}
	m.forget()
}

// drop ends the inquest without a result.
func (m *Machine) drop() {
	if m.inquest != nil {
		m.stage, m.inquest = m.inquest.stage, nil
		m.outbox.do(End{Timer{Of: Inquest}})
	}
}

// regroup takes a rank that wants to go on. A rank that was told of a new group may ask again if that group has failed
// too, and a rank that has given up waiting may come again.
func (m *Machine) regroup(rank int, msg *Regroup) {
	t := m.round
	switch {
	case msg.Round == 0:
		if t != nil {
			t.giveUp(rank)
		}
		return
	case m.cuts.out[rank]:
		m.outbox.tell([]int{rank}, &Regrouped{Round: msg.Round, Reason: m.cuts.why})
		return
	}
	if t != nil && t.over {
		if _, member := t.come[rank]; !member {
			m.outbox.tell([]int{rank}, &Regrouped{Round: msg.Round})
			return
		}
		t = nil
	}
	if t == nil {
		m.number++
		t = &round{number: m.number, ranks: &m.ranks, cuts: &m.cuts, out: &m.outbox, come: map[int]uint64{},
			quits: map[int]int{}}
		m.round = t
		m.outbox.do(Regrouping{})
	}
	t.await(m.now, msg.Wait)
	t.come[rank] = msg.Round
	m.goOnIfAll()
}

// goOnIfAll ends the round if all ranks have come that can.
func (m *Machine) goOnIfAll() {
	if t := m.round; t != nil && !t.over && t.complete(m.silent) {
		m.goOn()
	}
}

// silent reports whether the failure is that this rank answered nothing.
func (m *Machine) silent(rank int) bool {
	f := m.failure
	return f != nil && f.Late != nil && f.Late.Reason == judge.Silent && slices.Contains(f.Culprits, rank)
}

// goOn ends the round, and tells all ranks which go on.
func (m *Machine) goOn() {
	t := m.round
	if t.over {
		return
	}
	m.outbox.do(End{Timer{Of: Round}})
	if len(t.come) == 0 { // all have given up: that excludes nobody
		m.round = nil
		m.outbox.do(Regrouping{[]int{}})
		return
	}
	f := m.failure
	if f == nil && m.pending != nil {
		f = &m.pending.Failure
	}
	if t.finish(f) {
		m.meeting[t.number] = t
	}
}
