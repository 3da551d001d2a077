package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// A Regrouping lists the ranks that go on after a failure, and where they meet, or their group if they have met.
type Regrouping struct {
	Members []int // ranks of the old group, ascending; their order is that of the new one
	ID      ID    // the ID that the members have to Join, zero if there is a Group
	Group   Group // the new group, if all ranks are in one process or the hub's process has died; else nil
}

// ErrExcluded is the error of Regroup and Meet on a rank that came too late, that the others take for dead, or that
// does not reach one of them.
var ErrExcluded = errors.New("the others have gone on without this rank")

// A muster gathers the ranks that go on after a failure.
type muster struct {
	come  map[int]uint64 // by rank that has come: the Round of its last regroup, 0 if it is a member but has given up
	quits map[int]int    // by rank that has called Fail and has not come: how often it has shown that it runs
	over  bool           // the ranks that go on are known
	end   time.Time      // of the timer
	timer *time.Timer
	told  *regrouped // the result
}

// regroup takes a rank that wants to go on. A rank that was told of a new group may ask again if that group has failed
// too, and a rank that has given up waiting may come again. Under mu.
func (r *coordinator) regroup(rank int, m *regroup) {
	t := r.musters
	if m.Round == 0 {
		t.giveUp(rank)
		return
	}
	if r.severed.out[rank] {
		r.tell([]int{rank}, &regrouped{Round: m.Round, Reason: r.severed.why})
		return
	}
	if t != nil && t.over {
		if _, member := t.come[rank]; !member {
			r.tell([]int{rank}, &regrouped{Round: m.Round})
			return
		}
		t = nil
	}
	end := time.Now().Add(m.Wait)
	if t == nil {
		t = &muster{come: map[int]uint64{}, quits: map[int]int{}, end: end}
		t.timer = time.AfterFunc(m.Wait, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.goOn(t)
		})
		r.musters = t
		r.regrouping(nil)
	} else if end.Before(t.end) {
		t.end = end
		t.timer.Reset(m.Wait)
	}
	t.come[rank] = m.Round
	r.mustered()
}

// giveUp notes that a rank waits no more. Under mu.
func (t *muster) giveUp(rank int) {
	if t == nil {
		return
	}
	switch _, come := t.come[rank]; {
	case come && !t.over:
		delete(t.come, rank)
	case come:
		t.come[rank] = 0
		t.deserted(rank, "it has given up waiting")
	}
}

// mustered ends the muster if all ranks have come that can. Under mu.
func (r *coordinator) mustered() {
	t := r.musters
	if t == nil || t.over {
		return
	}
	all := true
	for _, q := range r.others(-1) {
		if _, come := t.come[q]; come || r.silent(q) || r.severed.out[q] {
			continue
		}
		shown, asked := t.quits[q]
		if r.quit[q] && !asked {
			t.quits[q] = 0
			r.askQuitter(t, q)
		}
		all = all && shown == quitPolls
	}
	if all {
		r.goOn(t)
	}
}

// A rank that has called Fail by its own will may still go on, and has known of the failure for longest: the others
// wait 2 s for it. The time is counted by its answers, so that a rank whose process is slow or stopped has as much.
const (
	quitPolls = 20
	quitPoll  = 100 * time.Millisecond
)

// askQuitter asks a rank that has called Fail, after quitPoll, to show that it runs. Under mu.
func (r *coordinator) askQuitter(t *muster, rank int) {
	time.AfterFunc(quitPoll, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !t.over && !r.gone[rank] {
			r.tell([]int{rank}, &where{})
		}
	})
}

// shown notes that a rank has shown that it runs. Under mu.
func (r *coordinator) shown(rank int) {
	t := r.musters
	if t == nil || t.over {
		return
	}
	n, asked := t.quits[rank]
	if !asked || n == quitPolls {
		return
	}
	if t.quits[rank]++; n+1 < quitPolls {
		r.askQuitter(t, rank)
	} else {
		r.mustered()
	}
}

// silent reports whether the failure is that this rank answered nothing.
func (r *coordinator) silent(rank int) bool {
	f := r.failure
	return f != nil && f.Late != nil && f.Late.Reason == judge.Silent && slices.Contains(f.Culprits, rank)
}

// goOn ends the muster, and tells all ranks which go on. Under mu.
func (r *coordinator) goOn(t *muster) {
	t.timer.Stop()
	if t.over {
		return
	}
	if len(t.come) == 0 { // all have given up: that excludes nobody
		r.musters = nil
		r.regrouping([]int{})
		return
	}
	t.over = true
	r.sever(t)
	m := &regrouped{Members: []int{}, failed: maps.Clone(r.severed.failed)}
	for _, q := range r.others(-1) {
		if _, come := t.come[q]; come {
			m.Members = append(m.Members, q)
		}
	}
	go func() { // meet takes locks of the hub, which others hold while they wait for the coordinator's
		if len(m.Members) > 1 {
			if err := r.meet(m); err != nil {
				m.Reason = err.Error()
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		t.told = m
		if m.Reason == "" {
			r.regrouping(m.Members)
		} else {
			r.regrouping([]int{})
		}
		for _, q := range m.Members {
			if r.gone[q] {
				t.deserted(q, "it has gone")
			} else if t.come[q] == 0 {
				t.deserted(q, "it has given up waiting")
			}
		}
		rounds := map[uint64][]int{} // usually one round
		for _, q := range r.others(-1) {
			if round, come := t.come[q]; come {
				rounds[round] = append(rounds[round], q)
			}
		}
		for round, ranks := range rounds {
			answer := *m
			answer.Round = round
			r.tell(ranks, &answer)
		}
	}()
}

// deserted tells the members of a new group that a member left before it came to the new hub.
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

// regrouping calls Regrouped, with the members' numbers in the first group.
func (h *hub) regrouping(members []int) {
	if h.opt.Regrouped != nil {
		h.opt.Regrouped(h.first(members))
	}
}

// failed calls Failed, with the ranks' numbers in the first group.
func (h *hub) failed(f Failure) {
	if h.opt.Failed == nil {
		return
	}
	if f.Rank >= 0 {
		f.Rank = h.first([]int{f.Rank})[0]
	}
	f.Culprits, f.Candidates = h.first(f.Culprits), h.first(f.Candidates)
	h.opt.Failed(&f)
}

// first is the numbers that ranks had in the first group; nil for nil.
func (h *hub) first(ranks []int) []int {
	if h.opt.members == nil || ranks == nil {
		return ranks
	}
	first := make([]int, len(ranks))
	for i, r := range ranks {
		first[i] = h.opt.members[r]
	}
	return first
}

// meetHere makes the new group, all of whose members are in this process.
func meetHere(m *regrouped) error {
	m.groups = Local(len(m.Members))
	return nil
}

// meet opens a new hub at this hub's address, for the members of one group.
func (h *hub) meet(m *regrouped) (err error) {
	o := h.opt
	o.members, o.failed = h.first(m.Members), m.failed
	if o.shared != nil { // in its turn
		o.Addr, o.Secret, o.Key, o.Again = h.id.Addr(), "", nil, false
		id, err := NewID(o)
		m.ID = id[:]
		return err
	}
	host, _, err := net.SplitHostPort(h.id.Addr())
	if err != nil {
		return err
	}
	o.Addr, o.Secret, o.Key, o.Again = net.JoinHostPort(host, "0"), "", nil, false
	id, err := NewID(o)
	if err != nil { // the address may not be this machine's
		o.Addr = ""
		id, err = NewID(o)
	}
	m.ID = id[:]
	return err
}

// Regroup waits until the coordinator tells which ranks go on.
func (m *member) Regroup(ctx context.Context, wait time.Duration) (Regrouping, error) {
	if isClosed(m.closed) {
		return Regrouping{}, fmt.Errorf("regroup: %w", ErrClosed)
	}
	if ctx.Err() != nil { // the others would wait for this rank
		return Regrouping{}, fmt.Errorf("regroup: %w", context.Cause(ctx))
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
		m.say(&regroup{})
		return Regrouping{}, fmt.Errorf("regroup: %w", context.Cause(ctx))
	case <-m.closed:
		return Regrouping{}, fmt.Errorf("regroup: %w", ErrClosed)
	case <-m.ended:
		return m.regroupAlone(ctx, wait)
	case <-late.C:
		m.say(&regroup{})
	}
	return Regrouping{}, errNoRendezvous
}

var errNoRendezvous = errors.New("regroup: the rendezvous does not answer: has the host of the process that serves " +
	"it died, or is this one cut off? ranks of \"ringo run\" have one that outlives them; else open again, under the " +
	"same variables")

func (m *member) regrouping(got *regrouped) (Regrouping, error) {
	r := Regrouping{Members: got.Members}
	rank := slices.Index(got.Members, m.rank)
	switch {
	case rank < 0 && got.Reason != "":
		return r, fmt.Errorf("regroup: %w: %s", ErrExcluded, got.Reason)
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

// regroup: this rank wants to go on after a failure, and waits for the others for Wait.
type regroup struct {
	Round uint64 // 0: the rank waits no more
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

// regrouped tells which ranks go on, and where they meet. It is secret, as it holds an ID.
type regrouped struct {
	Round   uint64
	Members []int
	ID      []byte
	Reason  string // why they cannot meet, or why this rank is left out
	groups  []Group
	failed  paths // for the new group's hub
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
