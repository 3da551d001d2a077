package bootstrap

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// Ways are the ways between places: Cut returns whether one is cut now, since when and until when. Detect is how long
// an end of a connection takes to find out.
type Ways struct {
	Cut    func(from, to int) (cut bool, since, until time.Time)
	Detect func() time.Duration
}

// pass waits until both directions between two places pass, and reports whether they do before ctx ends.
func (w Ways) pass(ctx context.Context, a, b int) bool {
	for {
		there, _, _ := w.Cut(a, b)
		back, _, _ := w.Cut(b, a)
		if !there && !back {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second / 2): // as a kernel tries again
		}
	}
}

// A wire carries the messages of one direction in order, as long as the connection lasts.
type wire struct {
	mu      sync.Mutex
	queue   []message
	ended   bool
	cut     func() (cut bool, since, until time.Time)
	deliver func(message)
}

func (w *wire) send(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, m)
	time.AfterFunc(time.Millisecond, w.carry)
}

func (w *wire) carry() {
	w.mu.Lock()
	if cut, _, until := w.cut(); cut && !w.ended {
		time.AfterFunc(time.Until(until)+200*time.Millisecond, w.carry)
		w.mu.Unlock()
		return
	}
	queue := w.queue
	w.queue = nil
	defer w.mu.Unlock()
	for _, m := range queue {
		if !w.ended {
			w.deliver(m)
		}
	}
}

func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// A world is the outside of a coordinator without a network.
type world struct {
	local
	ways   Ways
	places []int
	hub    int
	downs  []*wire // nil of ranks in the hub's process
}

func (w *world) tell(to []int, m message) {
	for _, rank := range to {
		if w.downs[rank] == nil {
			w.members[rank].hear(m)
		} else {
			w.downs[rank].send(m)
		}
	}
}

func (w *world) reach(ctx context.Context, rank int) bool {
	return w.ways.pass(ctx, w.hub, w.places[rank])
}

func (w *world) hears(rank int) bool {
	for _, way := range [][2]int{{w.hub, w.places[rank]}, {w.places[rank], w.hub}} {
		if cut, since, _ := w.ways.Cut(way[0], way[1]); cut && time.Since(since) > answeredSince {
			return false
		}
	}
	return true
}

// NewWorld makes a group of real members and a real coordinator, without a network: ranks are at places, and the hub at
// one of them, in the process of the hosts if there are any. The first cut begins at the given time,
// and all ends with ctx.
func NewWorld(ctx context.Context, places []int, hub int, hosts []int, ways Ways, first time.Time) []Group {
	n := len(places)
	members, groups := make([]*member, n), make([]Group, n)
	downs, ups := make([]*wire, n), make([]*wire, n)
	starts := make([]rendezvous.Start, n)
	place := func(address string) int {
		host, _, _ := net.SplitHostPort(address)
		p, _ := strconv.Atoi(host)
		return p
	}
	exited := make([]atomic.Bool, n)
	var hubEnded atomic.Bool
	var begin []func() // when all is made
	inside := func(rank int) bool { return slices.Contains(hosts, rank) }
	land := rendezvous.Land{Places: places, Hub: hub}
	l := &joinSet{size: n, slots: map[int]*slot{}}
	for rank, p := range places {
		land.Addresses = append(land.Addresses, fmt.Sprint(p, ":1"))
		l.slots[rank] = &slot{Claim: rendezvous.Claim{Rank: rank, Witness: 1}, from: fmt.Sprint(p, ":", rank)}
	}
	l.appointWitnesses(&land, starts)
	r := newCoordinator(rendezvous.Config{Size: n, Hosts: hosts, Land: land}, &world{local: local{members}, ways: ways,
		places: places, hub: hub,
		downs: downs})
	for i := range starts {
		for j, w := range starts[i].Witnesses { // the port is the rank
			starts[i].Witnesses[j].Addr = fmt.Sprint(places[w.Rank], ":", w.Rank)
		}
	}
	for rank, p := range places {
		m := newMember(rank, n, []byte("key"), hosts)
		members[rank], groups[rank] = m, m
		const ended = "its connection ended without goodbye"
		if inside(rank) {
			m.uplink.up = func(msg message) { r.hear(rank, msg) }
			m.uplink.drop = func() {
				hubEnded.Store(true)
				for q, down := range downs {
					if down != nil {
						go func() {
							if ways.pass(ctx, hub, places[q]) {
								down.carry() // what was sent comes first
								down.end()
								members[q].lost(ended)
							}
						}()
					}
				}
			}
			continue
		}
		m.uplink.drop = func() {
			exited[rank].Store(true)
			go func() {
				if ways.pass(ctx, p, hub) {
					ups[rank].carry() // likewise
					ups[rank].end()
					r.lost(rank, ended)
				}
			}()
		}
		m.lookout.here, m.lookout.there, m.lookout.witnesses = starts[rank].Here, starts[rank].There, starts[rank].Witnesses
		downs[rank] = &wire{cut: func() (bool, time.Time, time.Time) { return ways.Cut(hub, p) }, deliver: m.hear}
		ups[rank] = &wire{cut: func() (bool, time.Time, time.Time) { return ways.Cut(p, hub) },
			deliver: func(msg message) { r.hear(rank, msg) }}
		m.uplink.up = ups[rank].send
		m.lookout.feel = func(ctx context.Context) error {
			if !ways.pass(ctx, p, hub) {
				return context.Cause(ctx)
			} else if hubEnded.Load() {
				return syscall.ECONNREFUSED
			}
			return nil
		}
		m.lookout.knock = func(ctx context.Context, address string) bool { return ways.pass(ctx, p, place(address)) }
		if starts[rank].Witness {
			m.lookout.witness = &witness{turn: make(chan struct{}, 1)}
		}
		m.lookout.ask = func(ctx context.Context, address string, a rendezvous.Ask) (s rendezvous.Statement, lives bool) {
			if !ways.pass(ctx, p, place(address)) {
				return s, false
			}
			_, port, _ := net.SplitHostPort(address)
			number, _ := strconv.Atoi(port)
			w := members[number]
			if exited[number].Load() {
				return s, true
			}
			w.lookout.witness.tell(a)
			s = *w.lookout.witness.look(func() rendezvous.Sight { return w.lookout.sees(w.uplink.open) })
			return s, ways.pass(ctx, p, place(address))
		}
		// Each end finds out for itself, unless the cut is over before.
		notice := func(lost func()) {
			after := ways.Detect()
			begin = append(begin, func() {
				time.AfterFunc(time.Until(first)+after, func() {
					there, _, _ := ways.Cut(p, hub)
					back, _, _ := ways.Cut(hub, p)
					if there || back {
						lost()
					}
				})
			})
		}
		notice(func() {
			if !hubEnded.Load() {
				r.feed(rendezvous.Unheard{Rank: rank, Why: "its host did not answer"})
			}
		})
		notice(func() {
			if downs[rank].end(); !exited[rank].Load() {
				m.lookout.silence.Store(true)
				m.lost("its host did not answer")
			}
		})
	}
	for _, f := range begin {
		f()
	}
	return groups
}
