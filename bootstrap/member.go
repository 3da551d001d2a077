package bootstrap

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A member is one rank's end of its group, whose coordinator is in this process (Local) or in the
// hub's.
type member struct {
	rank, size int
	key        []byte
	at         net.Addr                    // local address of its connection to the hub; nil if there is none, or it is the program's own
	up         func(message)               // to the coordinator; keeps order, does not block
	drop       func()                      // ends the connection without goodbye
	flush      func()                      // waits a moment until all messages sent up are on their way
	quits      func()                      // another member of this process may have its rank from now on
	hangUp     func()                      // ends the connection and all its goroutines, after bye
	feel       func(context.Context) error // finds out whether the hub lives, see joiner.feel; nil if that cannot be known
	patience   time.Duration               // for the coordinator to answer a rank that gives an AllGather up
	failed     chan struct{}               // closed when failure is set
	byed       chan struct{}               // closed when the coordinator has answered this rank's leave, or cannot
	closed     chan struct{}               // closed by Leave and Close

	order sync.Mutex // held while calling up, so that messages go up in order
	next  uint64     // under order

	mu        sync.Mutex // never held while calling up
	waits     map[uint64]chan result
	held      map[uint64]chan result     // AllGathers that have completed, whose result is on its way from the head
	withdrawn map[uint64]*WithdrawnError // AllGathers to which this rank has yet to come
	stops     *left                      // no AllGather from stops.Seq on can complete
	gone      map[int]bool               // ranks that have said goodbye
	hosts     []int                      // ranks here whose process serves the hub
	orphan    bool                       // all hosts left in order: the hub may end any time
	departed  []departure                // of hosts
	failure   *Failure
	onFailure []func(*Failure)
	locate    func() (Position, bool) // nil until Locate
	onHalt    func()                  // nil until OnHalt
	round     uint64                  // of Regroup
	regrouped chan *regrouped         // nil unless a Regroup waits

	silent []int // see Silent

	head   int   // of this rank's machine, -1 if it has none
	giving *head // nil unless this rank is a head

	stays       bool          // has left by Leave, and waits for the others
	parted      int           // the last stage that all ranks have come to
	parting     chan struct{} // closed when parted grows
	here, there []int         // ranks of this rank's host and of the hub's, nil if not known
	witnesses   []heir
	witness     *witness // nil unless this rank is one
	// asks a witness, and tells it that this rank's host has lost the hub; false: the witness's host answers nothing
	ask     func(ctx context.Context, address string, home int, lost bool) (s statement, lives bool)
	knock   func(ctx context.Context, address string) bool // reports whether a host answers
	silence atomic.Bool                                    // the connection to the hub has ended in silence

	ended   chan struct{} // closed when the way to the coordinator has ended
	mourned chan struct{} // closed when the reason for ended is known, as far as possible
	hubDied bool          // the process that serves the hub has died
	estate  estate

	failOnce, leaveOnce, closeOnce, byeOnce, mournOnce sync.Once
}

type result struct {
	data [][]byte
	err  error
}

func newMember(rank, size int, key []byte, hosts []int) *member {
	nothing := func() {}
	return &member{
		rank: rank, size: size, key: key, hosts: slices.Clone(hosts),
		drop: nothing, flush: nothing, quits: nothing, hangUp: nothing, patience: goodbyeTime,
		failed: make(chan struct{}), byed: make(chan struct{}), closed: make(chan struct{}),
		parting: make(chan struct{}), ended: make(chan struct{}), mourned: make(chan struct{}),
		head: -1, waits: map[uint64]chan result{}, gone: map[int]bool{}, held: map[uint64]chan result{},
		withdrawn: map[uint64]*WithdrawnError{},
	}
}

func (m *member) Rank() int               { return m.rank }
func (m *member) Size() int               { return m.size }
func (m *member) Key() []byte             { return m.key }
func (m *member) Failed() <-chan struct{} { return m.failed }

func (m *member) Failure() *Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failure
}

// refuse is why AllGather seq cannot complete, nil if it may, as far as is known. Under mu.
func (m *member) refuse(seq uint64) error {
	select {
	case <-m.closed:
		return ErrClosed
	default:
	}
	switch {
	case m.failure != nil:
		return m.failure
	case m.stops != nil && seq >= m.stops.Seq:
		return &LeftError{m.stops.Rank}
	}
	return nil
}

// hear takes a message of the coordinator.
func (m *member) hear(msg message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch msg := msg.(type) {
	case *gathered:
		m.settle(msg.Seq, result{data: msg.Data})
		if m.giving != nil {
			m.giving.keep(msg)
		}
	case *held:
		if done, ok := m.waits[msg.Seq]; ok { // a failure must not end it any more
			delete(m.waits, msg.Seq)
			m.held[msg.Seq] = done
			go m.fetch(msg.Seq)
		}
	case *withdrawn:
		w := &WithdrawnError{Rank: msg.Rank, Missing: slices.Clone(msg.Missing), Reason: msg.Reason}
		if isClosed(m.closed) { // Leave gives up
			w.Err = ErrClosed
		}
		if !m.settle(msg.Seq, result{err: w}) {
			m.withdrawn[msg.Seq] = w
		}
	case *failed:
		m.fail(&msg.Failure)
	case *left:
		m.gone[msg.Rank] = true
		m.hearLeft(msg)
	case *silent:
		m.silent = msg.Ranks
	case *where:
		go m.answer() // the coordinator may be locked while it asks
	case *knock:
		go m.knocks(msg)
	case *halt:
		if m.onHalt != nil {
			go m.onHalt()
		}
	case *regrouped:
		if m.regrouped != nil && msg.Round == m.round {
			m.regrouped <- msg
			m.regrouped = nil
		}
	case *parted:
		m.hearParted(msg.Stage)
	case *bye:
		m.byeOnce.Do(func() { close(m.byed) })
	}
}

// settle ends the wait for AllGather seq, and reports whether anyone waits. Under mu.
func (m *member) settle(seq uint64, r result) bool {
	done, ok := m.waits[seq]
	if !ok {
		done, ok = m.held[seq]
	}
	if ok {
		delete(m.waits, seq)
		delete(m.held, seq)
		done <- r
	}
	return ok
}

// fetch gets the result of AllGather seq from the head, or else from the hub.
func (m *member) fetch(seq uint64) {
	g, err := fetch(m.key, m.head, seq)
	if err != nil {
		m.say(&resend{held{seq}})
		return
	}
	m.hear(g)
}

// fail makes f the failure of this group, if it is the first. Under mu.
func (m *member) fail(f *Failure) {
	if m.failure != nil {
		return
	}
	m.failure = f
	close(m.failed)
	for _, hear := range m.onFailure {
		go hear(f)
	}
	m.settleAll(f)
}

func (m *member) OnFailure(f func(*Failure)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onFailure = append(m.onFailure, f)
	if m.failure != nil {
		go f(m.failure)
	}
}

// settleAll ends all waits. Under mu.
func (m *member) settleAll(err error) {
	for seq := range m.waits {
		m.settle(seq, result{err: err})
	}
}

// hearLeft notes another rank's goodbye. Under mu.
func (m *member) hearLeft(l *left) {
	if m.stops == nil || l.Seq < m.stops.Seq {
		m.stops = l
	}
	for seq := range m.waits {
		if seq >= l.Seq {
			m.settle(seq, result{err: &LeftError{l.Rank}})
		}
	}
	if i := slices.Index(m.hosts, l.Rank); i >= 0 {
		m.hosts = slices.Delete(m.hosts, i, i+1)
		m.departed = append(m.departed, departure{l.Rank, l.Last})
		m.orphan = len(m.hosts) == 0
	}
}

var (
	errEnded = errors.New("the rendezvous has ended")
)

// lost is called when the way to the coordinator has ended.
func (m *member) lost(why string) {
	defer m.mournOnce.Do(func() { close(m.mourned) })
	if m.parts() {
		return
	}
	f := m.mourn(why)
	if m.silence.Load() { // it may arrive, and says why this process ends
		m.say(&fail{Reason: f.Error(), Culprits: []int{m.rank}, Broken: true, Silent: true})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if isClosed(m.closed) {
		m.settleAll(ErrClosed)
		return
	}
	m.fail(f)
}

// parts notes that the way to the coordinator has ended, and reports whether that is no failure.
func (m *member) parts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byeOnce.Do(func() { close(m.byed) })
	if !isClosed(m.ended) {
		close(m.ended)
	}
	m.quits()
	for seq := range m.held {
		m.settle(seq, result{err: errEnded})
	}
	switch {
	case isClosed(m.closed):
		m.settleAll(ErrClosed)
	case m.orphan: // the hub may end then: only AllGather cannot go on
		m.hearLeft(&left{Rank: m.stops.Rank, Last: unsaid})
	default:
		return false
	}
	return true
}

func (m *member) Fail(reason string, culprits ...int) {
	m.failBy(&fail{Reason: reason, Culprits: culprits})
}

func (m *member) FailWith(reason string, peer int, silent bool) {
	m.failBy(&fail{Reason: reason, Culprits: []int{min(m.rank, peer), max(m.rank, peer)}, Broken: true, Silent: silent})
}

func (m *member) failBy(f *fail) {
	m.failOnce.Do(func() {
		if isClosed(m.closed) {
			return
		}
		m.send(f)
		m.flush()
	})
}

func (m *member) Close() error {
	m.closeOnce.Do(func() {
		m.leave(false)
		if m.stays { // otherwise the goodbye has told that
			m.send(&parted{Apart})
		}
		m.hangUp()
		if m.giving != nil {
			m.giving.end(m.rank)
		}
	})
	return nil
}

func (m *member) Locate(f func() (Position, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locate = f
}

func (m *member) Inquire(p Position) {
	m.say(&inquire{p.recent()})
	if isClosed(m.ended) {
		m.judge(p.waitsIn())
	}
}

// judge takes the hub's place after the hub has ended because all ranks that served it left: it finds out whether this
// rank waits in collective n for one of these.
func (m *member) judge(n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.departed {
		if d.last < n {
			m.fail(d.failure())
		}
	}
}

func (m *member) Late(p Position) { m.say(&late{p.recent()}) }

func (m *member) OnHalt(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onHalt = f
}

func (m *member) Hub() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.hosts)
}

func (m *member) Left(rank int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[rank]
}

func (m *member) Silent() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.silent)
}

// answer sends the coordinator this rank's position, or that it is not known now.
func (m *member) answer() { m.say(&position{m.position()}) }

func (m *member) position() known {
	m.mu.Lock()
	locate := m.locate
	m.mu.Unlock()
	if locate == nil {
		return known{}
	}
	p, ok := locate()
	if !ok {
		return known{}
	}
	return known{true, p.recent()}
}

// knocks answers a knock.
func (m *member) knocks(k *knock) {
	ctx, cancel := m.whileOpen(knockTime)
	defer cancel()
	answer := &knocked{Stage: k.Stage}
	if m.knock != nil && len(k.At) > 0 { // else it cannot know
		answer.Heard = make([]bool, len(k.At))
	}
	var all sync.WaitGroup
	for i := range answer.Heard {
		if at := k.At[i]; at != "" {
			all.Go(func() { answer.Heard[i] = m.knock(ctx, at) })
		}
	}
	all.Wait()
	m.say(answer)
}

// whileOpen is a context that ends after d, or when this rank leaves.
func (m *member) whileOpen(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	go func() {
		select {
		case <-m.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// send sends the coordinator a message, in order.
func (m *member) send(msg message) {
	m.order.Lock()
	defer m.order.Unlock()
	m.up(msg)
}

// say sends the coordinator a message, unless the goodbye was sent.
func (m *member) say(msg message) {
	m.order.Lock()
	defer m.order.Unlock()
	if !isClosed(m.closed) {
		m.up(msg)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
