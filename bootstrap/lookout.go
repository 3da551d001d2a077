package bootstrap

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/trace/judge"
)

// A lookout finds out, for a rank to which the hub answers nothing, which of the two is cut off.
type lookout struct {
	rank        int
	here, there []int // ranks of this rank's host and of the hub's, nil if not known
	witnesses   []rendezvous.RankAddr
	witness     *witness    // nil unless this rank is one
	silence     atomic.Bool // the connection to the hub has ended in silence

	feel func(context.Context) error // finds out whether the hub lives, see joiner.feel; nil if that cannot be known
	// asks a witness; false: the witness's host answers nothing
	ask   func(ctx context.Context, address string, a rendezvous.Ask) (s rendezvous.Statement, lives bool)
	knock func(ctx context.Context, address string) bool // reports whether a host answers; nil if that cannot be known
}

// knocked answers a Knock.
func (o *lookout) knocked(open context.Context, k *rendezvous.Knock) *rendezvous.Knocked {
	ctx, cancel := context.WithTimeout(open, rendezvous.KnockTime)
	defer cancel()
	answer := &rendezvous.Knocked{Stage: k.Stage}
	if o.knock != nil && len(k.At) > 0 {
		answer.Heard = make([]bool, len(k.At))
	}
	var all sync.WaitGroup
	for i := range answer.Heard {
		if at := k.At[i]; at != "" {
			all.Go(func() { answer.Heard[i] = o.knock(ctx, at) })
		}
	}
	all.Wait()
	return answer
}

// sees is what this rank knows of the hub. A connection to it that has ended in silence counts, although the hub may
// answer again.
func (o *lookout) sees(open context.Context) rendezvous.Sight {
	if o.silence.Load() {
		return rendezvous.Missing
	}
	if o.feel == nil {
		return rendezvous.Unseen
	}
	ctx, cancel := context.WithTimeout(open, pulseTime)
	defer cancel()
	if answered(o.feel(ctx)) {
		return rendezvous.Hears
	}
	return rendezvous.Missing
}

// errStalled is that a process takes no connections, and its host does.
var errStalled = errors.New("the process answers nothing, and its host does")

// answered reports whether the hub's host has answered, by what feel returns.
func answered(err error) bool { return err == nil || refused(err) || errors.Is(err, errStalled) }

// refused reports whether an error is that a process has ended.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// whyLost is the failure of a rank whose connection to the hub has ended. hubDied is that the hub's process has.
func (o *lookout) whyLost(open context.Context, hosts []int, why string) (f *Failure, hubDied bool) {
	ctx, cancel := context.WithTimeout(open, 2*pulseTime+witnessTime)
	defer cancel()
	far := o.here != nil && !slices.Equal(o.here, o.there) // the hub is known to be on another host
	if f, hubDied = o.absent(ctx, hosts, why, o.silence.Load() || far, nil); f != nil {
		return f, hubDied
	}
	return &Failure{Rank: o.rank, Culprits: []int{o.rank},
		Reason: "its connection to the rendezvous is lost (" + why + ")"}, false
}

// absent finds out why the hub answers nothing. If it answers now the result is nil, unless it was cut off before.
// Ended is closed when the connection to the hub has ended, nil if that is so.
func (o *lookout) absent(ctx context.Context, hosts []int, why string, cut bool, ended <-chan struct{}) (f *Failure,
	hubDied bool) {
	f = &Failure{Rank: -1, Culprits: hosts, Died: true, Reason: why + " (connection to the rendezvous)"}
	if len(hosts) > 0 {
		f.Rank = hosts[0]
	}
	testify := func(lost bool, again func() bool) *Failure { return o.testify(ctx, hosts, why, lost, again) }
	silent := o.silence.Load()
	if o.feel == nil {
		if silent {
			return testify(true, nil), false
		}
		return f, false
	}
	feel := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return o.feel(ctx)
	}
	switch err := feel(pulseTime); {
	case err == nil && !cut:
		return nil, false
	case err == nil:
		return testify(o.silence.Load(), nil), false
	case refused(err) && ended != nil && !isClosed(ended):
		return nil, false // the connection tells, and perhaps why
	case refused(err):
		f.Reason = "its process ended without goodbye"
		if o.silence.Load() { // before, and perhaps for that reason
			f = testify(true, nil)
		}
		return f, true
	case errors.Is(err, errStalled):
		f.Died, f.Reason = false, why+": its process answers nothing, and its host does: is it stopped?"
		return f, false
	default:
		return testify(true, func() bool { return answered(feel(rendezvous.AgainTime)) }), false
	}
}

// home is the rank that stands for this rank's host.
func (o *lookout) home() int {
	for _, w := range o.witnesses {
		if slices.Contains(o.here, w.Rank) {
			return w.Rank
		}
	}
	if o.witness != nil || len(o.here) == 0 {
		return o.rank
	}
	return o.here[0]
}

// testify asks all witnesses, and judges by what they say. lost is that the hub is or was silent, which they are told.
// again asks the hub once more. hosts are the ranks whose process serves the hub.
func (o *lookout) testify(ctx context.Context, hosts []int, why string, lost bool, again func() bool) *Failure {
	var mu sync.Mutex
	all := hearing{home: o.home(), there: o.there, own: judge.Testimony{Lost: []int{hubPlace}}}
	all.own.From = all.home
	if o.witness != nil {
		all.note(all.home, rendezvous.Statement{Told: o.witness.told()})
	}
	var asked sync.WaitGroup
	for _, w := range o.witnesses {
		asked.Go(func() {
			s, lives := o.ask(ctx, w.Addr, rendezvous.Ask{Home: all.home, Lost: lost})
			mu.Lock()
			defer mu.Unlock()
			if lives {
				all.note(w.Rank, s)
			} else if w.Rank != all.home {
				all.own.Lost = append(all.own.Lost, w.Rank)
			}
		})
	}
	asked.Wait()
	l := all.loss()
	if l.Path && (again == nil || again()) { // what was cut works again
		l = judge.Loss{Candidates: l.Culprits}
	}
	return o.blame(l, all.home, hosts, why)
}

// hubPlace is the place of the hub for judge.Losses; hosts are the ranks that stand for them.
const hubPlace = -1

// A hearing is what witnesses have said of the hub.
type hearing struct {
	home  int
	there []int // ranks of the hub's host
	own   judge.Testimony
	all   []judge.Testimony
}

// note takes the statement of a host that lives, as home knows.
func (h *hearing) note(from int, s rendezvous.Statement) {
	t := judge.Testimony{From: from}
	if from != h.home {
		h.own.Hears = append(h.own.Hears, from)
		switch s.Seen {
		case rendezvous.Hears:
			t.Hears = []int{hubPlace}
		case rendezvous.Missing:
			t.Lost = []int{hubPlace}
		}
	}
	for _, other := range s.Told {
		if !slices.Contains(h.there, other) {
			t.Hears = append(t.Hears, other)
			h.all = append(h.all, judge.Testimony{From: other, Lost: []int{hubPlace}})
		}
	}
	h.all = append(h.all, t)
}

// loss is what explains all statements.
func (h *hearing) loss() judge.Loss {
	slices.Sort(h.own.Lost)
	return judge.Losses(append([]judge.Testimony{h.own}, h.all...))
}

// blame is the Failure that follows from a loss, with the ranks of the places.
func (o *lookout) blame(l judge.Loss, home int, hosts []int, why string) *Failure {
	ranks := func(places ...int) (ranks []int) {
		for _, p := range places {
			switch p {
			case hubPlace:
				ranks = append(append(ranks, o.there...), hosts...)
			case home:
				ranks = append(append(ranks, o.here...), o.rank)
			default:
				ranks = append(ranks, p)
			}
		}
		slices.Sort(ranks)
		return slices.Compact(ranks)
	}
	f := &Failure{Rank: -1, Reason: "the rendezvous answers nothing: " + why}
	switch there := ranks(hubPlace); {
	case slices.Equal(l.Culprits, []int{hubPlace}):
		f.Culprits, f.Died = there, true
		f.Reason = why + ", and it answers no other host: it is down or cut off"
		if len(there) > 0 {
			f.Rank = there[0]
		}
	case l.Path && len(there) > 0:
		f.Culprits, f.Path = []int{there[0], ranks(home)[0]}, true
		slices.Sort(f.Culprits)
	case l.Path:
		f.Candidates = ranks(home)[:1]
	default:
		f.Candidates = ranks(append(l.Culprits, l.Candidates...)...)
	}
	return f
}
