package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/ringo-go/ringo/history"
)

// A Regrouping is who goes on after a failure, and where they meet.
type Regrouping struct {
	Members []int // ranks of the old group, ascending; their order is that of the new one
	ID      ID    // where they meet, zero for one member or in one process
	Group   Group // the new group, of one process alone; else nil
}

// ErrExcluded is Regroup's on a rank that came too late, or that the others take for dead.
var ErrExcluded = errors.New("the others have gone on without this rank")

// A muster gathers the ranks that go on after a failure.
type muster struct {
	round uint64
	come  map[int]bool // nil when it is over
	timer *time.Timer
	told  *regrouped // its result
}

// regroup takes a rank that wants to go on. The first round is 1; a rank that was told of a round may
// ask for the next one, where the new group has failed too. Under mu.
func (r *room) regroup(rank int, m *regroup) {
	if r.musters == nil || r.musters.round < m.Round {
		if r.musters != nil {
			r.musters.timer.Stop()
		}
		next := &muster{round: m.Round, come: map[int]bool{}}
		next.timer = time.AfterFunc(m.Wait, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.goOn(next)
		})
		r.musters = next
	}
	t := r.musters
	if t.round > m.Round || t.come == nil {
		r.tell([]int{rank}, &regrouped{Round: m.Round})
		return
	}
	t.come[rank] = true
	r.mustered()
}

// mustered has a muster end if all have come that can. Under mu.
func (r *room) mustered() {
	t := r.musters
	if t == nil || t.come == nil {
		return
	}
	for _, q := range r.others(-1) {
		if !t.come[q] && !r.silent(q) {
			return
		}
	}
	r.goOn(t)
}

// silent reports whether the failure is that a rank said nothing.
func (r *room) silent(rank int) bool {
	f := r.failure
	return f != nil && f.Late != nil && f.Late.Reason == history.Silent && slices.Contains(f.Culprits, rank)
}

// goOn tells all who goes on, once. Under mu.
func (r *room) goOn(t *muster) {
	t.timer.Stop()
	if t.come == nil {
		return
	}
	m := &regrouped{Round: t.round}
	for _, q := range r.others(-1) {
		if t.come[q] {
			m.Members = append(m.Members, q)
		}
	}
	t.come = nil
	go func() { // a hub takes locks that are held while rooms are asked
		if len(m.Members) > 1 {
			if err := r.meet(m); err != nil {
				m.Reason = err.Error()
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		t.told = m
		for _, q := range m.Members {
			if r.gone[q] {
				t.deserted(q, "it has gone")
			}
		}
		r.tell(r.others(-1), m)
	}()
}

// deserted has the members of a new group hear that one of them has gone before it came there.
func (t *muster) deserted(rank int, why string) {
	if t == nil || t.told == nil {
		return
	}
	switch i := slices.Index(t.told.Members, rank); {
	case i < 0:
	case t.told.groups != nil:
		t.told.groups[i].(*member).drop()
	case len(t.told.ID) > 0:
		go Gone(ID(t.told.ID), i, why)
	}
}

// meetHere has the members of a group of this process meet.
func meetHere(m *regrouped) error {
	m.groups = Local(len(m.Members))
	return nil
}

// meet has the members of a group meet at a hub of their own, at the address of this one.
func (h *hub) meet(m *regrouped) (err error) {
	o := h.opt
	host, _, err := net.SplitHostPort(h.id.Addr())
	if err != nil {
		return err
	}
	o.Addr, o.Secret, o.Again = net.JoinHostPort(host, "0"), "", false
	id, err := NewID(o)
	if err != nil { // the address is not this machine's
		o.Addr = ""
		id, err = NewID(o)
	}
	m.ID = id[:]
	return err
}

// Regroup waits for the room to say who goes on.
func (m *member) Regroup(ctx context.Context, wait time.Duration) (Regrouping, error) {
	if isClosed(m.closed) {
		return Regrouping{}, fmt.Errorf("regroup: %w", ErrClosed)
	}
	m.mu.Lock()
	m.round++
	round, done := m.round, make(chan *regrouped, 1)
	m.regrouped = done
	m.mu.Unlock()
	m.say(&regroup{Round: round, Wait: wait})
	late := time.NewTimer(wait + goodbyeTime)
	defer late.Stop()
	select {
	case got := <-done:
		return m.regrouping(got)
	case <-ctx.Done():
		return Regrouping{}, fmt.Errorf("regroup: %w", context.Cause(ctx))
	case <-m.closed:
		return Regrouping{}, fmt.Errorf("regroup: %w", ErrClosed)
	case <-m.byed:
	case <-late.C:
	}
	return Regrouping{}, errors.New("regroup: the rendezvous does not answer: has the process that serves it died? ranks of \"ringo run\" have one that outlives them; else open again, under the same variables")
}

func (m *member) regrouping(got *regrouped) (Regrouping, error) {
	r := Regrouping{Members: got.Members}
	rank := slices.Index(got.Members, m.rank)
	switch {
	case rank < 0:
		return r, fmt.Errorf("regroup: %w", ErrExcluded)
	case got.Reason != "":
		return r, fmt.Errorf("regroup: nowhere to meet: %s", got.Reason)
	case len(got.Members) == 1:
		r.Group = Local(1)[0]
	case got.groups != nil:
		r.Group = got.groups[rank]
	default:
		copy(r.ID[:], got.ID)
	}
	return r, nil
}

// regroup: this rank wants to go on after a failure, and waits that long for the others.
type regroup struct {
	Round uint64
	Wait  time.Duration
}

func (*regroup) kind() kind { return kRegroup }

func (m *regroup) Append(b []byte) []byte { return appendU64(appendU64(b, m.Round), uint64(m.Wait)) }

func (m *regroup) Parse(b []byte) error {
	f := fields{b: b}
	m.Round, m.Wait = f.u64(), time.Duration(f.u64())
	if m.Wait < 0 {
		return errMalformed
	}
	return f.end()
}

// regrouped tells who goes on, and where they meet. It is secret, as an ID is.
type regrouped struct {
	Round   uint64
	Members []int
	ID      []byte
	Reason  string // why they cannot meet
	groups  []Group
}

func (*regrouped) kind() kind { return kRegrouped }

func (m *regrouped) Append(b []byte) []byte {
	return appendText(appendBlob(appendRanks(appendU64(b, m.Round), m.Members), m.ID), m.Reason)
}

func (m *regrouped) Parse(b []byte) error {
	f := fields{b: b}
	m.Round, m.Members, m.ID, m.Reason = f.u64(), f.ranks(), f.blob(len(ID{})), f.text()
	return f.end()
}
