package bootstrap

import (
	"slices"
	"sync"
	"time"
)

// settle is how long a rank's complaint waits before the others hear it. When
// a rank dies, its neighbours may see their data connections break and complain
// before the hub sees the death; the death is then what all should hear.
const settle = 100 * time.Millisecond

// A room is the hub of a group that is complete: a state machine that takes
// the messages of the ranks and says what to tell whom. It knows no network.
type room struct {
	size int
	tell func(to []int, m message) // called with mu held; must not block

	mu      sync.Mutex
	next    []uint64 // by rank: AllGathers it took part in
	gathers map[uint64]*gather
	gone    []bool   // by rank: left or died
	failing []bool   // by rank: has called Fail
	told    []bool   // by rank: knows of a failure that is not its own
	pending *Failure // a complaint that settles
	timer   *time.Timer
	here    int
	settled *sync.Cond // pending became nil
}

// A gather is an AllGather some ranks have not come to yet.
type gather struct {
	parts [][]byte
	come  int
}

func newRoom(size int, tell func([]int, message)) *room {
	r := &room{
		size: size, tell: tell, here: size,
		next: make([]uint64, size), gathers: map[uint64]*gather{},
		gone: make([]bool, size), failing: make([]bool, size), told: make([]bool, size),
	}
	r.settled = sync.NewCond(&r.mu)
	return r
}

// hear takes a message of a rank. It reports whether ranks may send such one.
func (r *room) hear(rank int, m message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[rank] {
		return false
	}
	switch m := m.(type) {
	case *share:
		return r.share(rank, m)
	case *fail:
		r.complain(rank, m.Reason)
	case *leave:
		r.leave(rank)
	case *giveUp: // crossed with the start, which the rank takes
	default:
		return false
	}
	return true
}

// lost says that a rank's connection ended. After a leave it means nothing.
func (r *room) lost(rank int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[rank] {
		return
	}
	if r.failing[rank] { // gave its reason, then went
		r.conclude()
	} else {
		r.forget() // whoever complained, complained of this
		r.announce(&Failure{Rank: rank, Died: true, Reason: why})
	}
	r.depart(rank)
}

func (r *room) share(rank int, m *share) bool {
	if m.Seq != r.next[rank] {
		return false
	}
	r.next[rank]++
	g := r.gathers[m.Seq]
	if g == nil {
		g = &gather{parts: make([][]byte, r.size)}
		r.gathers[m.Seq] = g
	}
	g.parts[rank] = m.Data
	if g.come++; g.come == r.size {
		delete(r.gathers, m.Seq)
		r.tell(r.others(-1), &gathered{Seq: m.Seq, Data: g.parts})
	}
	return true
}

func (r *room) complain(rank int, reason string) {
	if r.failing[rank] {
		return
	}
	r.failing[rank] = true
	if r.pending != nil {
		return
	}
	r.pending = &Failure{Rank: rank, Reason: reason}
	r.timer = time.AfterFunc(settle, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.conclude()
	})
}

// conclude tells the complaint that settles, if there is one.
func (r *room) conclude() {
	if f := r.pending; f != nil {
		r.forget()
		r.announce(f)
	}
}

func (r *room) forget() {
	if r.pending != nil {
		r.timer.Stop()
		r.pending = nil
		r.settled.Broadcast()
	}
}

// announce tells f to all who do not know of a failure yet, except its cause.
func (r *room) announce(f *Failure) {
	var to []int
	for _, q := range r.others(f.Rank) {
		if !r.told[q] {
			r.told[q] = true
			to = append(to, q)
		}
	}
	if len(to) > 0 {
		r.tell(to, &failed{*f})
	}
}

func (r *room) leave(rank int) {
	if r.pending != nil && r.failing[rank] {
		r.conclude() // it will not wait for it to settle
	}
	r.depart(rank)
	r.tell(r.others(rank), &left{Rank: rank, Seq: r.next[rank]})
	r.tell([]int{rank}, &bye{})
}

func (r *room) depart(rank int) {
	r.gone[rank] = true
	if r.here--; r.here == 0 {
		r.forget()
	}
}

// others are the ranks that are here, without rank.
func (r *room) others(rank int) []int {
	all := make([]int, 0, r.here)
	for q := range r.size {
		if q != rank && !r.gone[q] {
			all = append(all, q)
		}
	}
	return slices.Clip(all)
}

// waitSettled returns when no complaint waits to be told.
func (r *room) waitSettled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.pending != nil {
		r.settled.Wait()
	}
}
