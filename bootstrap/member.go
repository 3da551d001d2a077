package bootstrap

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// A member is one rank's end of its group. Its parts are under its lock.
type member struct {
	rank, size int
	key        []byte
	at         net.Addr      // local address of its connection to the hub; nil if there is none, or it is the program's own
	patience   time.Duration // for the coordinator to answer a rank that gives an AllGather up
	uplink     uplink
	lookout    lookout
	failed     chan struct{}   // closed when failure is set
	tasks      sync.WaitGroup  // what Close waits for
	over       context.Context // ended by Close under mu: no task begins any more
	finish     context.CancelFunc

	mu         sync.Mutex // never held while calling uplink.up
	gathers    gathers
	peers      peers
	shutdown   shutdown
	succession succession
	regroup    chan *rendezvous.Regrouped // nil unless a Regroup waits
	round      uint64                     // of the last Regroup
	failure    *Failure
	onFailure  []func(*Failure)
	locate     func() (Position, bool) // nil until Locate
	onHalt     func()                  // nil until OnHalt

	failOnce, closeOnce sync.Once
}

func newMember(rank, size int, key []byte, hosts []int) *member {
	m := &member{rank: rank, size: size, key: key, patience: goodbyeTime, failed: make(chan struct{}),
		gathers: newGathers(), peers: peers{hosts: slices.Clone(hosts), gone: map[int]bool{}},
		shutdown: shutdown{heard: make(chan struct{})}, succession: succession{known: make(chan struct{})}}
	m.over, m.finish = context.WithCancel(context.Background())
	m.uplink.init()
	m.lookout.rank = rank
	return m
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

// start begins a task, for which Close waits. Under mu.
func (m *member) start(f func()) {
	if m.over.Err() == nil {
		m.tasks.Go(f)
	}
}

// hear takes a message of the coordinator.
func (m *member) hear(msg message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch msg := msg.(type) {
	case *rendezvous.Gathered:
		m.gathers.end(msg.Seq, result{data: msg.Data})
		if m.gathers.giving != nil {
			m.gathers.giving.keep(msg)
		}
	case *rendezvous.Held:
		if m.gathers.hold(msg.Seq) {
			m.start(func() { m.fetch(msg.Seq) })
		}
	case *rendezvous.Withdrawn:
		w := &WithdrawnError{Rank: msg.Rank, Missing: slices.Clone(msg.Missing), Reason: msg.Reason}
		if m.uplink.closed() { // Leave gives up
			w.Err = ErrClosed
		}
		m.gathers.withdraw(msg.Seq, w)
	case *rendezvous.Failed:
		m.fail(&msg.Failure)
	case *rendezvous.Gone:
		m.gathers.stop(msg)
		m.peers.note(msg)
	case *rendezvous.Silent:
		m.peers.silent = msg.Ranks
	case *rendezvous.Where:
		m.start(func() { m.uplink.say(&rendezvous.There{Known: m.position()}) })
	case *rendezvous.Knock:
		m.start(func() { m.uplink.say(m.lookout.knocked(m.uplink.open, msg)) })
	case *rendezvous.Halt:
		if m.onHalt != nil {
			m.start(m.onHalt)
		}
	case *rendezvous.Regrouped:
		if m.regroup != nil && msg.Round == m.round {
			m.regroup <- msg
			m.regroup = nil
		}
	case *rendezvous.Parted:
		m.shutdown.reach(msg.Stage)
	case *rendezvous.Bye:
		m.uplink.bye()
	}
}

// fail makes f the failure of this group, if it is the first. Under mu.
func (m *member) fail(f *Failure) {
	if m.failure != nil {
		return
	}
	m.failure = f
	close(m.failed)
	for _, hear := range m.onFailure {
		m.start(func() { hear(f) })
	}
	m.gathers.endAll(f)
}

func (m *member) OnFailure(f func(*Failure)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onFailure = append(m.onFailure, f)
	if failure := m.failure; failure != nil {
		m.start(func() { f(failure) })
	}
}

var errEnded = errors.New("the rendezvous has ended")

// lost is called when the way to the coordinator has ended.
func (m *member) lost(why string) {
	defer m.succession.tell()
	if m.endsWell() {
		return
	}
	f, died := m.lookout.whyLost(m.uplink.open, m.Hub(), why)
	if m.lookout.silence.Load() { // it may arrive, and says why this process ends
		m.uplink.say(&rendezvous.Fail{Reason: f.Error(), Culprits: []int{m.rank}, Broken: true, Silent: true})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.succession.hubDied = died
	if m.uplink.closed() {
		m.gathers.endAll(ErrClosed)
		return
	}
	m.fail(f)
}

// endsWell notes that the way to the coordinator has ended, and reports whether that is no failure.
func (m *member) endsWell() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uplink.end()
	m.uplink.quits()
	m.gathers.endHeld(errEnded)
	switch {
	case m.uplink.closed():
		m.gathers.endAll(ErrClosed)
	case m.peers.orphan: // the hub may end then: only AllGather cannot go on
		m.gathers.stop(&rendezvous.Gone{Rank: m.gathers.stops.Rank, Last: rendezvous.Unsaid})
	default:
		return false
	}
	return true
}

func (m *member) Fail(reason string, culprits ...int) {
	m.failBy(&rendezvous.Fail{Reason: reason, Culprits: culprits})
}

func (m *member) FailWith(reason string, peer int, silent bool) {
	m.failBy(&rendezvous.Fail{Reason: reason, Culprits: []int{min(m.rank, peer), max(m.rank, peer)}, Broken: true,
		Silent: silent})
}

func (m *member) failBy(f *rendezvous.Fail) {
	m.failOnce.Do(func() {
		if !m.uplink.closed() {
			m.uplink.send(f)
			m.uplink.flush()
		}
	})
}

func (m *member) Close() error {
	m.closeOnce.Do(func() {
		m.leave(false)
		if m.shutdown.stays { // otherwise the goodbye has told that
			m.uplink.send(&rendezvous.Parted{Stage: Apart})
		}
		m.uplink.hangUp()
		if m.gathers.giving != nil {
			m.gathers.giving.end(m.rank)
		}
		m.mu.Lock()
		m.finish()
		m.mu.Unlock()
		m.tasks.Wait()
	})
	return nil
}

func (m *member) Locate(f func() (Position, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locate = f
}

// position is this rank's position, if it is known now.
func (m *member) position() rendezvous.Known {
	m.mu.Lock()
	locate := m.locate
	m.mu.Unlock()
	if locate != nil {
		if p, ok := locate(); ok {
			return rendezvous.Known{Known: true, Position: rendezvous.Recent(p)}
		}
	}
	return rendezvous.Known{}
}

// Inquire takes the hub's place after the hub has ended because all ranks that served it left: it finds out whether
// this rank waits in a collective for one of these.
func (m *member) Inquire(p Position) {
	m.uplink.say(&rendezvous.Inquire{Position: rendezvous.Recent(p)})
	if !isClosed(m.uplink.ended) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.peers.departed {
		if d.Last < rendezvous.WaitsIn(p) {
			m.fail(d.Failure())
		}
	}
}

func (m *member) Late(p Position) { m.uplink.say(&rendezvous.Late{Position: rendezvous.Recent(p)}) }

func (m *member) OnHalt(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onHalt = f
}

func (m *member) Hub() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.peers.hosts)
}

func (m *member) Left(rank int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers.gone[rank]
}

func (m *member) Silent() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.peers.silent)
}

// Seek finds out by itself why the hub does not answer, and makes that the Failure. If the hub lives it waits for the
// hub's word, at most InquestTime.
func (m *member) Seek() {
	ctx, cancel := context.WithTimeout(m.uplink.open, InquestTime)
	defer cancel()
	var f *Failure
	var died bool
	if m.lookout.feel != nil && !isClosed(m.failed) && !isClosed(m.uplink.ended) {
		f, died = m.lookout.absent(ctx, m.Hub(), "it has not answered in time", false, m.uplink.ended)
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
	m.succession.hubDied = m.succession.hubDied || died
	if !m.uplink.closed() {
		m.fail(f)
	}
}
