package bootstrap

import (
	"context"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// message is what ranks and the hub send each other.
type message = rendezvous.Message

// A coordinator drives the machine of a group that is complete: it feeds it what happens, and carries out what the
// machine says. It decides nothing.
type coordinator struct {
	outside outside
	over    context.Context // ended by end
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	mu      sync.Mutex
	machine *rendezvous.Machine
	timers  map[rendezvous.Timer]*time.Timer
	settled *sync.Cond // no failure is pending, or the coordinator has ended
}

// The outside of a coordinator. All but meet and reach are called with the coordinator locked, and must not block.
type outside interface {
	tell(to []int, m message)
	meet(rendezvous.Meet) rendezvous.Met
	miss(rendezvous.Miss)
	regrouping(members []int)
	failed(Failure)
	hears(rank int) bool                      // a rank's host has acknowledged what was sent to it, or does so
	reach(ctx context.Context, rank int) bool // this process reaches a rank's host
}

func newCoordinator(c rendezvous.Config, o outside) *coordinator {
	r := &coordinator{outside: o, machine: rendezvous.New(c), timers: map[rendezvous.Timer]*time.Timer{}}
	r.settled = sync.NewCond(&r.mu)
	r.over, r.cancel = context.WithCancel(context.Background())
	return r
}

// hear takes a message of a rank. It returns false if the rank broke the protocol.
func (r *coordinator) hear(rank int, m message) bool {
	return r.feed(rendezvous.Said{Rank: rank, Message: m})
}

func (r *coordinator) lost(rank int, why string) { r.feed(rendezvous.Lost{Rank: rank, Why: why}) }

// feed gives the machine an event. The result is false if the rank has sent what it must not.
func (r *coordinator) feed(e rendezvous.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.step(e)
}

// step is feed. Under mu.
func (r *coordinator) step(e rendezvous.Event) (ok bool) {
	ok = true
	var looks rendezvous.Event // the answer to Look, of which a step has one at most
	for ; e != nil && r.over.Err() == nil; e, looks = looks, nil {
		for _, a := range r.machine.Step(time.Now(), e) {
			switch a := a.(type) {
			case rendezvous.Tell:
				r.outside.tell(a.To, a.Message)
			case rendezvous.Begin:
				r.begin(a)
			case rendezvous.End:
				r.stop(a.Timer)
			case rendezvous.Refuse:
				ok = false
			case rendezvous.Meet:
				r.tasks.Go(func() { r.feed(r.outside.meet(a)) })
			case rendezvous.Miss:
				r.tasks.Go(func() { r.outside.miss(a) })
			case rendezvous.Regrouping:
				r.outside.regrouping(a.Members)
			case rendezvous.Announce:
				r.outside.failed(a.Failure)
			case rendezvous.Look:
				var there []int
				for _, rank := range a.Ranks {
					if r.outside.hears(rank) {
						there = append(there, rank)
					}
				}
				looks = rendezvous.Acknowledged{Ranks: there}
			case rendezvous.Reach:
				r.reach(a)
			}
		}
	}
	if !r.machine.Settling() {
		r.settled.Broadcast()
	}
	return ok
}

// begin starts a timer. Under mu.
func (r *coordinator) begin(a rendezvous.Begin) {
	r.stop(a.Timer)
	var t *time.Timer
	t = time.AfterFunc(a.After, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.timers[a.Timer] == t { // else it was stopped meanwhile
			delete(r.timers, a.Timer)
			r.step(rendezvous.Fired{Timer: a.Timer})
		}
	})
	r.timers[a.Timer] = t
}

// stop stops a timer. Under mu.
func (r *coordinator) stop(timer rendezvous.Timer) {
	if t := r.timers[timer]; t != nil {
		t.Stop()
		delete(r.timers, timer)
	}
}

// reach finds out which hosts this process reaches. Under mu.
func (r *coordinator) reach(a rendezvous.Reach) {
	for _, rank := range a.Ranks {
		r.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(r.over, a.Wait)
			defer cancel()
			r.feed(rendezvous.Reached{Stage: a.Stage, Rank: rank, OK: r.outside.reach(ctx, rank)})
		})
	}
}

// without reports whether rank has gone, and if so returns the ranks that are here.
func (r *coordinator) without(rank int) (here []int, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.machine.Gone(rank) {
		return nil, false
	}
	return r.machine.Here(), true
}

// waitSettled returns when no failure is pending.
func (r *coordinator) waitSettled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.machine.Settling() && r.over.Err() == nil {
		r.settled.Wait()
	}
}

// end stops all timers: nothing happens in the group any more.
func (r *coordinator) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
	for timer := range r.timers {
		r.stop(timer)
	}
	r.settled.Broadcast()
}
