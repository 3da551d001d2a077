// The inquest: how the hub finds out who is to blame when ranks of several hosts hear nothing of each other.

package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

const (
	pingTime      = 3 * time.Second         // for ranks to answer the hub
	knockTime     = 3 * time.Second         // for a host to answer a connection
	againTime     = 1500 * time.Millisecond // the same, when it is asked once more
	knockedTime   = knockTime + time.Second // for ranks to say which hosts have answered them
	maxWitnesses  = 8
	maxTargets    = 64 // hosts at which others knock
	maxNamed      = 64 // ranks of a host that are named to another host
	answeredSince = 2 * time.Second
)

// InquestTime bounds the time from a complaint to the hub's word.
const InquestTime = settle + pingTime + knockedTime + againTime

// A geography is which ranks are on one host, and how hosts are reached. Without places all ranks are on one host.
type geography struct {
	places  []int // by rank
	hub     int   // the place of the process that serves
	address func(rank int) string
	hears   func(rank int) bool                      // a rank's host has acknowledged what was sent to it, or does so
	knock   func(ctx context.Context, rank int) bool // the hub itself reaches a rank's host
}

// at are the ranks of a place.
func (g *geography) at(place int) (ranks []int) {
	for r, p := range g.places {
		if p == place {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// of is the place of a rank, or of the hub for -1.
func (g *geography) of(rank int) int {
	if rank < 0 {
		return g.hub
	}
	return g.places[rank]
}

// several reports whether there are hosts besides the hub's.
func (g *geography) several() bool {
	return slices.ContainsFunc(g.places, func(p int) bool { return p != g.hub })
}

// geography is that of the lobby's ranks.
func (l *lobby) geography(machine string) geography {
	g := geography{places: make([]int, l.size), hub: -1}
	known := map[string]int{}
	for r := range l.size {
		s := l.seats[r]
		name, _, _ := strings.Cut(s.Machine, containers)
		if name == "" {
			host, _, _ := net.SplitHostPort(s.from)
			name = s.Host + " " + host
		}
		if _, ok := known[name]; !ok {
			known[name] = len(known)
		}
		g.places[r] = known[name]
		if s.Hosts && g.hub < 0 {
			g.hub = g.places[r]
		}
	}
	machine, _, _ = strings.Cut(machine, containers)
	for r := 0; r < l.size && machine == "" && g.hub < 0; r++ {
		if l.seats[r].Host == hostname() {
			g.hub = g.places[r]
		}
	}
	if place, ok := known[machine]; ok && g.hub < 0 {
		g.hub = place
	}
	g.address = func(rank int) string {
		s := l.seats[rank]
		host, _, err := net.SplitHostPort(s.from)
		if port := cmp.Or(s.Port, s.Witness); err == nil && port > 0 {
			return net.JoinHostPort(host, strconv.Itoa(port))
		}
		return ""
	}
	g.hears = func(rank int) bool {
		s := l.seats[rank]
		return s.ear != nil || s.link.hears(answeredSince)
	}
	g.knock = func(ctx context.Context, rank int) bool {
		d := net.Dialer{}
		if at, ok := l.seats[rank].link.conn.LocalAddr().(*net.TCPAddr); ok { // by the way that the rank came
			d.LocalAddr = &net.TCPAddr{IP: at.IP, Zone: at.Zone}
		}
		return answers(d.DialContext(ctx, "tcp", g.address(rank)))
	}
	return g
}

// answers reports whether a host has answered a dial: one that refuses has.
func answers(c net.Conn, err error) bool {
	if err == nil {
		c.Close()
	}
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// An inquest has up to three stages: all ranks are asked to answer; a rank of each host that does knocks at the hosts
// that do not, and so does the hub; and if both ends of a path then seem to live, the hub knocks once more.
type inquest struct {
	lost    map[int]string // by rank whose connection to the hub has ended in silence: how
	losses  []loss         // the connections that have broken
	late    *Failure       // that ranks answered nothing in a trial
	reason  string         // the first complaint
	stage   uint64
	asked   map[int]bool // in this stage, who has not answered
	heard   map[int]bool // ranks that have answered
	timer   *time.Timer
	targets []int // by rank, one of each host that does not answer
	said    []judge.Testimony
	own     chan struct{} // closed when the hub has knocked
	back    map[int]bool  // places that have answered the hub's knock
}

// A loss is that a rank's connection with a peer broke, or with the hub if that is -1: silently, if the peer's host
// answered nothing; else that host has said so.
type loss struct {
	from, peer int
	silent     bool
}

// apart reports whether one of some losses is between two hosts.
func (r *coordinator) apart(losses []loss) bool {
	return r.land.several() && slices.ContainsFunc(losses, func(l loss) bool {
		return r.land.of(l.from) != r.land.of(l.peer)
	})
}

// concerns reports whether the death of a rank explains what the inquest is about.
func (q *inquest) concerns(rank int) bool {
	return len(q.lost) == 0 && (slices.ContainsFunc(q.losses, func(l loss) bool { return l.peer == rank }) ||
		q.late != nil && slices.Contains(q.late.Culprits, rank))
}

// investigate begins an inquest, or adds to the one that is under way. Under mu.
func (r *coordinator) investigate(add func(q *inquest)) {
	q := r.inquest
	if q != nil {
		add(q)
		return
	}
	if len(r.audience(-1)) == 0 {
		r.forget()
		return
	}
	q = &inquest{lost: map[int]string{}, heard: map[int]bool{}, back: map[int]bool{}}
	r.inquest = q
	add(q)
	q.ask(r, r.others(-1), nil, pingTime, r.surveyed)
}

// ask begins the next stage: it asks ranks to knock at targets. Under mu.
func (q *inquest) ask(r *coordinator, ranks, targets []int, wait time.Duration, then func(*inquest)) {
	q.stage++
	q.asked = map[int]bool{}
	m := &knock{Stage: q.stage, Targets: targets}
	for _, t := range targets {
		m.At = append(m.At, r.land.address(t))
	}
	stage := q.stage
	for _, rank := range ranks {
		q.asked[rank] = true
	}
	q.timer = time.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.inquest == q && q.stage == stage {
			then(q)
		}
	})
	if len(ranks) > 0 {
		r.tell(ranks, m)
	}
	q.ready(r)
}

// ready ends a stage early if all have answered. Under mu.
func (q *inquest) ready(r *coordinator) {
	if len(q.asked) == 0 && (q.own == nil || isClosed(q.own)) {
		q.timer.Reset(0)
	}
}

// knocked notes a rank's answer. Under mu.
func (r *coordinator) knocked(rank int, m *knocked) {
	q := r.inquest
	if q == nil || q.stage != m.Stage || !q.asked[rank] {
		return
	}
	delete(q.asked, rank)
	q.heard[rank] = true
	if q.targets != nil {
		t := judge.Testimony{From: r.land.places[rank], Hears: []int{r.land.hub}}
		for i, target := range q.targets {
			if place := r.land.places[target]; i < len(m.Heard) && m.Heard[i] {
				t.Hears = append(t.Hears, place)
			} else if i < len(m.Heard) && r.land.address(target) != "" {
				t.Lost = append(t.Lost, place)
			}
		}
		q.said = append(q.said, t)
	}
	q.ready(r)
}

// surveyed ends the first stage. Under mu.
func (r *coordinator) surveyed(q *inquest) {
	hub := judge.Testimony{From: r.land.hub}
	var witnesses []int
	for _, p := range slices.Compact(slices.Sorted(slices.Values(r.land.places))) {
		if p == r.land.hub {
			continue
		}
		all := r.land.at(p)
		here := slices.DeleteFunc(slices.Clone(all), func(rank int) bool { return r.gone[rank] })
		silent := slices.ContainsFunc(all, func(rank int) bool { return q.lost[rank] != "" })
		switch i := slices.IndexFunc(here, func(rank int) bool { return q.heard[rank] }); {
		case i >= 0 && silent: // another rank there answers: what was cut works again
			hub.Lost = append(hub.Lost, p)
			q.back[p] = true
		case i >= 0:
			hub.Hears = append(hub.Hears, p)
			witnesses = append(witnesses, here[i])
		case !silent && slices.ContainsFunc(here, r.land.hears):
			hub.Hears = append(hub.Hears, p)
		case len(here) > 0 || silent:
			hub.Lost = append(hub.Lost, p)
			q.targets = append(q.targets, all[0])
		}
	}
	q.said = append(q.said, hub)
	if len(q.targets) == 0 { // does the way between two that have lost each other pass again?
		witnesses = nil
		for _, l := range q.losses {
			if l.silent && l.peer >= 0 && q.heard[l.from] && len(witnesses) < maxWitnesses {
				witnesses = append(witnesses, l.from)
				q.targets = append(q.targets, l.peer)
			}
		}
		if len(witnesses) == 0 {
			r.judged(q)
			return
		}
		q.ask(r, witnesses, q.targets, knockedTime, r.judged)
		return
	}
	if len(witnesses) == 0 {
		r.judged(q)
		return
	}
	q.targets = q.targets[:min(len(q.targets), maxTargets)]
	q.own = make(chan struct{})
	r.knockAt(q, q.targets, knockTime)
	q.ask(r, witnesses[:min(len(witnesses), maxWitnesses)], q.targets, knockedTime, r.witnessed)
}

// knockAt has the hub knock at hosts itself. Under mu.
func (r *coordinator) knockAt(q *inquest, ranks []int, wait time.Duration) {
	own, left := q.own, len(ranks)
	for _, rank := range ranks {
		reached, place := r.land.address(rank) != "", r.land.places[rank]
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			ok := reached && r.land.knock(ctx, rank)
			r.mu.Lock()
			defer r.mu.Unlock()
			q.back[place] = q.back[place] || ok
			if left--; left == 0 {
				close(own)
				q.ready(r)
			}
		}()
	}
}

// witnessed ends the second stage. Under mu.
func (r *coordinator) witnessed(q *inquest) {
	if l := judge.Losses(r.testimonies(q)); l.Path && slices.Contains(l.Culprits, r.land.hub) {
		q.own = make(chan struct{})
		r.knockAt(q, q.targets, againTime)
		q.ask(r, nil, q.targets, againTime+time.Second, r.judged)
		return
	}
	r.judged(q)
}

// judged ends the inquest, and tells all ranks which are to blame. Under mu.
func (r *coordinator) judged(q *inquest) {
	r.inquest = nil
	q.timer.Stop()
	if p := r.pending; p != nil && p.losses == nil { // the positions show more, see judge
		r.announce(&p.Failure)
	} else {
		r.announce(r.found(q))
	}
	r.forget()
}

// testimonies are what hosts have said, and what follows from the connections that broke. Under mu.
func (r *coordinator) testimonies(q *inquest) []judge.Testimony {
	all := slices.Clone(q.said)
	for _, l := range q.losses {
		t := judge.Testimony{From: r.land.of(l.from)}
		if peer := []int{r.land.of(l.peer)}; l.silent {
			t.Lost = peer
		} else {
			t.Hears = peer
		}
		all = append(all, t)
	}
	return all
}

// stopped is the Failure of a trial where all hosts answer: processes that still do not are stopped. If all answer by
// now, some host was cut off. Under mu.
func (r *coordinator) stopped(q *inquest) *Failure {
	f, late := *q.late, *q.late.Late
	f.Late = &late
	f.Culprits = slices.DeleteFunc(slices.Clone(f.Culprits), func(rank int) bool { return q.heard[rank] })
	if len(f.Culprits) == 0 {
		late.Last, f.Culprits, f.Reason = Called{}, nil, history.Ranks(q.late.Culprits)+" answered nothing for a time"
		f.Candidates = append(slices.Clone(q.late.Culprits), r.land.at(r.land.hub)...)
		slices.Sort(f.Candidates)
		f.Candidates = slices.Compact(f.Candidates)
	}
	return &f
}

// broken is the loss to tell of where all hosts live, and whether the way between its ends is the fault: the way does
// not pass now either, or there is no silence and their connection was reset. Else one of the two hosts may have been
// cut off, and a process may have ended, and reset connections, for that. Under mu.
func (r *coordinator) broken(q *inquest) (l loss, proven bool) {
	for _, l := range q.losses {
		if l.silent && slices.ContainsFunc(q.said, func(t judge.Testimony) bool {
			return t.From == r.land.of(l.from) && slices.Contains(t.Lost, r.land.of(l.peer))
		}) {
			return l, true
		}
	}
	if i := slices.IndexFunc(q.losses, func(l loss) bool { return l.silent }); i >= 0 {
		return q.losses[i], false
	}
	return q.losses[0], true
}

// found is the Failure that follows from an inquest. Under mu.
func (r *coordinator) found(q *inquest) *Failure {
	hub := &q.said[0]
	f := &Failure{Rank: -1, Reason: q.reason}
	if q.late != nil {
		late := *q.late.Late
		late.Last = Called{}
		f.Late, f.Reason = &late, history.Ranks(q.late.Culprits)+" answered nothing"
	}
	if len(hub.Lost) == 0 {
		if q.late != nil {
			return r.stopped(q)
		}
		l, proven := r.broken(q)
		f.Rank = l.from
		switch pair := []int{min(l.from, l.peer), max(l.from, l.peer)}; {
		case l.peer < 0:
			f.Candidates = append(r.land.at(r.land.of(l.from)), r.land.at(r.land.hub)...)
			slices.Sort(f.Candidates)
		case proven:
			f.Path, f.Culprits = true, pair
		default:
			f.Candidates = pair
		}
		return f
	}
	if ranks := slices.Sorted(maps.Keys(q.lost)); len(ranks) > 0 {
		f.Reason = fmt.Sprintf("the rendezvous hears nothing of %s: %s", history.Ranks(ranks), q.lost[ranks[0]])
	}
	l := judge.Losses(r.testimonies(q))
	if i := slices.IndexFunc(hub.Lost, func(p int) bool { return q.back[p] }); i >= 0 { // what was cut works again
		l = judge.Loss{Candidates: append(l.Culprits, hub.Lost[i], r.land.hub)}
	}
	switch {
	case l.Path:
		f.Path = true
		for _, p := range l.Culprits {
			f.Culprits = append(f.Culprits, r.land.at(p)[:min(1, len(r.land.at(p)))]...)
		}
		slices.Sort(f.Culprits)
		if len(f.Culprits) < 2 { // the hub's process is no rank
			f.Candidates, f.Culprits, f.Path = f.Culprits, nil, false
		} else if f.Late != nil {
			f.Late.Reason = judge.Link
		}
	case len(l.Culprits) > 0:
		f.Culprits = r.land.at(l.Culprits[0])
		f.Rank, f.Died = f.Culprits[0], f.Late == nil
		f.Reason = cmp.Or(q.lost[f.Rank], explain(syscall.ETIMEDOUT)) + ", and answers no other host: it is down or cut off"
	default:
		for _, p := range l.Candidates {
			f.Candidates = append(f.Candidates, r.land.at(p)...)
		}
		slices.Sort(f.Candidates)
		f.Candidates = slices.Compact(f.Candidates)
	}
	f.Culprits = f.Culprits[:min(len(f.Culprits), maxListed)]
	f.Candidates = f.Candidates[:min(len(f.Candidates), maxListed)]
	return f
}

// knock asks a rank to answer, and whether the hosts of Targets answer it.
type knock struct {
	Stage   uint64
	Targets []int
	At      []string // an address of each, "" if there is none
}

func (*knock) kind() kind { return kKnock }

func (m *knock) Append(b []byte) []byte {
	b = appendRanks(appendU64(b, m.Stage), m.Targets)
	for _, at := range m.At {
		b = appendText(b, at)
	}
	return b
}

func (m *knock) Parse(b []byte) error {
	f := fields{b: b}
	m.Stage, m.Targets = f.u64(), f.ranks()
	for range m.Targets {
		m.At = append(m.At, f.text())
	}
	return f.end()
}

// knocked answers knock.
type knocked struct {
	Stage uint64
	Heard []bool // by target
}

func (*knocked) kind() kind { return kKnocked }

func (m *knocked) Append(b []byte) []byte {
	b = appendU32(appendU64(b, m.Stage), len(m.Heard))
	for _, h := range m.Heard {
		b = appendFlag(b, h)
	}
	return b
}

func (m *knocked) Parse(b []byte) error {
	f := fields{b: b}
	m.Stage = f.u64()
	for range f.count(min(len(b), math.MaxInt32)) {
		m.Heard = append(m.Heard, f.flag())
	}
	return f.end()
}
