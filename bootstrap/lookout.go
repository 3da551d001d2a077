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
	said := rendezvous.Hearing{Rank: o.rank, Home: o.home(), Here: o.here, There: o.there, Hosts: hosts}
	if o.witness != nil {
		said.Note(said.Home, rendezvous.Statement{Told: o.witness.told()})
	}
	var asked sync.WaitGroup
	for _, w := range o.witnesses {
		asked.Go(func() {
			s, lives := o.ask(ctx, w.Addr, rendezvous.Ask{Home: said.Home, Lost: lost})
			mu.Lock()
			defer mu.Unlock()
			if lives {
				said.Note(w.Rank, s)
			} else {
				said.Miss(w.Rank)
			}
		})
	}
	asked.Wait()
	return said.Verdict(why, again)
}
