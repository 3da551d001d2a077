package fifo

import (
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A schedule runs the code of a waiting end beside another party whose steps
// happen at given points: the waiting end passes one each time it looks at its
// Guard, goes to sleep or would sleep on. So every interleaving is tried, also with a
// store that is seen late, and no clock hides a lost wake-up: a sleep of parkTime when
// no step is left is one.
type schedule struct {
	guard            Guard
	steps            []func()
	at               []int // points, in order
	point            int
	woken            bool
	lost             bool
	sleeps, buffered bool // see look
	eager            bool // a fault: the first sleep is long
}

func (s *schedule) pass() {
	for len(s.steps) > 0 && s.at[0] <= s.point {
		step := s.steps[0]
		s.steps, s.at = s.steps[1:], s.at[1:]
		step()
	}
	s.point++
}

// everyLook makes the Guard call pass at each Err.
func (s *schedule) everyLook() {
	s.guard.OnSlow(0, func() {
		s.guard.slowAt.Store(1)
		s.pass()
	})
	s.guard.deadline.Store(forever)
	s.guard.slowAt.Store(1)
}

func (s *schedule) yield() {}
func (s *schedule) move()  {}

// park has a point before the sleep and one in it; a long sleep lasts until all
// steps have been done.
func (s *schedule) park(state *atomic.Uint32, d time.Duration) {
	s.pass()
	if state.Load() != parked {
		return
	}
	long := d >= parkTime || s.eager
	s.pass()
	for !s.woken && len(s.steps) > 0 && (long || s.buffered) {
		s.pass() // a store is seen before a short sleep ends
	}
	if !s.woken {
		s.lost = s.lost || long
		time.Sleep(d) // virtual
	}
	s.woken = false
}

func (s *schedule) wake(*atomic.Uint32) { s.woken = true }

// other is the parker of the other party, which never waits.
type other struct{ schedule }

// pair is a queue of which one end waits as a schedule says.
type pair struct {
	*schedule
	p *Producer
	c *Consumer
}

func newPair(t *testing.T, producerWaits bool) pair {
	g := Geometry{Slots: 2, SlotBytes: 8}
	r, err := newRing(aligned(g.Size(), pageBytes), g)
	require.NoError(t, err)
	x := pair{new(schedule), new(Producer), new(Consumer)}
	pp, cp := parker(new(other)), parker(x.schedule)
	if producerWaits {
		pp, cp = cp, pp
	}
	how := Waiting{Guard: &x.guard}
	x.p.init(r, how, pp, cp)
	x.c.init(r, how, cp, pp)
	x.p.yieldFor, x.c.yieldFor = -1, -1
	if producerWaits { // a full queue, whose first message is being read
		for range g.Slots {
			x.publish()
		}
		_, _, err := x.c.Next()
		require.NoError(t, err)
	}
	return x
}

var errGone = errors.New("gone")

func (x pair) publish()       { _, _ = x.p.Reserve(1); _ = x.p.Publish(Stamp{}) }
func (x pair) release()       { _ = x.c.Release() }
func (x pair) closeProducer() { _ = x.p.Close() }
func (x pair) closeConsumer() { _ = x.c.Close() }
func (x pair) fail()          { x.c.Fail(errGone) }
func (x pair) abort()         { x.guard.Abort(errGone) }

// look, store and wakeUp are a Publish whose store is seen only after the look at the
// state of the Consumer, as processors may reorder them.
func (x pair) look() { x.sleeps, x.buffered = x.p.peer.Load() != running, true }
func (x pair) store() {
	state := x.p.peer
	x.p.peer = new(atomic.Uint32) // Publish finds nobody parked
	x.publish()
	x.p.peer, x.buffered = state, false
}
func (x pair) wakeUp() {
	if x.sleeps {
		x.p.wakePeer()
	}
}

// TestParkSchedules: whatever the other party does while an end goes to sleep,
// sleeps or wakes, the end sees it without the help of parkTime.
func TestParkSchedules(t *testing.T) {
	for _, k := range []struct {
		name  string
		steps []func(pair)
		send  bool // the Producer waits, not the Consumer
		want  error
		late  bool // nothing wakes the end: it sees this when it next looks at its Guard
		eager bool // the first sleep is long: some schedule must lose a wake-up
		more  int  // messages that the Consumer takes after the first
	}{
		{name: "publish", steps: []func(pair){pair.publish}},
		{name: "publish, close", steps: []func(pair){pair.publish, pair.closeProducer}},
		{name: "publish, fail", steps: []func(pair){pair.publish, pair.fail}},
		{name: "publish, seen late", steps: []func(pair){pair.look, pair.store, pair.wakeUp}},
		{name: "publish, seen late, without a drain", steps: []func(pair){pair.look, pair.store, pair.wakeUp}, eager: true},
		{name: "publish, seen late, and publish", more: 1, steps: []func(pair){pair.look, pair.store, pair.wakeUp,
			pair.publish}},
		{name: "close there", steps: []func(pair){pair.closeProducer}, want: ErrClosed},
		{name: "close here", steps: []func(pair){pair.closeConsumer}, want: ErrClosed},
		{name: "fail", steps: []func(pair){pair.fail}, want: errGone},
		{name: "abort", steps: []func(pair){pair.abort}, want: errGone, late: true},
		{name: "release", send: true, steps: []func(pair){pair.release}},
		{name: "receiver closes", send: true, steps: []func(pair){pair.closeConsumer}, want: ErrClosed},
		{name: "sender closes", send: true, steps: []func(pair){pair.closeProducer}, want: ErrClosed},
	} {
		t.Run(k.name, func(t *testing.T) {
			lost := false
			for at := range rising(len(k.steps), 14) {
				inBubble(t, func(t *testing.T) {
					x := newPair(t, k.send)
					x.at, x.eager = slices.Clone(at), k.eager
					for _, step := range k.steps {
						x.steps = append(x.steps, func() { step(x) })
					}
					x.everyLook()
					var err error
					if k.send {
						_, err = x.p.Reserve(1)
					} else {
						_, _, err = x.c.Next()
					}
					for range k.more {
						require.NoError(t, err)
						x.release()
						_, _, err = x.c.Next()
					}
					require.ErrorIs(t, err, k.want, "steps at %v", at)
					lost = lost || x.lost
					require.False(t, x.lost && !k.late && !k.eager, "a wake-up is lost: steps at %v", at)
					require.Less(t, x.point, 40, "the wait ends soon: steps at %v", at)
					require.NotEqual(t, parked, x.c.own.Load(), "nobody sleeps")
					require.NotEqual(t, parked, x.p.own.Load(), "nobody sleeps")
				})
			}
			require.True(t, lost || !k.eager, "the schedules do not see a store that is late")
		})
	}
}

// rising are all ways to choose n points below limit, in order; a point may be
// chosen again.
func rising(n, limit int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		at := make([]int, n)
		for yield(at) {
			i := n - 1
			for i >= 0 && at[i] == limit-1 {
				i--
			}
			if i < 0 {
				return
			}
			at[i]++
			for j := i + 1; j < n; j++ {
				at[j] = at[i]
			}
		}
	}
}
