package ringo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/opened"
)

// verdictTime is how long openChild waits, after an error, to hear that the parent has failed, which explains the
// error.
const verdictTime = 500 * time.Millisecond

// openChild opens a communicator that is made of c, within c's life: what ends c ends that too, and is its error.
// members are the ranks of the child by their numbers in c.
func (c *Comm) openChild(ctx context.Context, op string, cfg Config, members []int) (*Comm, error) {
	cfg.made = c.line()
	meets, end := c.life.Within(ctx)
	defer end()
	given := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(meets, func() {
		// if a rank dies after all have met, the child's group tells all of its ranks
		switch f, ok := errors.AsType[*bootstrap.Failure](context.Cause(meets)); {
		case !ok:
			cancel(context.Cause(meets))
		case !f.Died:
			cancel(inChild(f, members))
		}
	})
	defer stop()
	child, err := openIn(ctx, meets, cfg)
	if err == nil {
		return child.madeOf(c, op), nil
	}
	if _, ok := errors.AsType[*bootstrap.JoinError](err); ok && given.Err() != nil { // the others wait for this rank
		stayAway(cfg, cfg.Rank, context.Cause(given))
	}
	select {
	case <-c.life.Stopped():
		c.life.Settle()
	case <-time.After(verdictTime):
	}
	if v := c.life.Refuse(); v != nil {
		return nil, c.life.ErrorOf(op, v)
	}
	e := c.life.ErrorOf(op, err)
	if o, ok := errors.AsType[*Error](err); ok {
		e.Err, e.Culprits, e.Candidates = o.Err, nil, nil
		for _, r := range o.Culprits {
			e.Culprits = append(e.Culprits, members[r])
		}
		for _, r := range o.Candidates {
			e.Candidates = append(e.Candidates, members[r])
		}
		slices.Sort(e.Culprits)
		slices.Sort(e.Candidates)
		if len(e.Culprits) > 0 && !slices.Equal(e.Culprits, o.Culprits) {
			e.Err = fmt.Errorf("%w (ranks of the new communicator; of this one: %v)", o.Err, e.Culprits)
		}
	}
	return nil, e
}

// stayAway tells those that wait where a rank was to join them that it does not come, and who is to blame.
func stayAway(cfg Config, culprit int, why error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&bootstrap.Failure{Rank: cfg.Rank, Culprits: []int{culprit}, Reason: why.Error()})
	_, _ = bootstrap.Join(ctx, *cfg.ID, cfg.Rank, cfg.Size, cfg.join())
}

// madeOf tells tests of a communicator that was made of another one, and when it is closed.
func (c *Comm) madeOf(parent *Comm, op string) *Comm {
	quiet, closed := c.quiet, opened.Tell(parent.unbound, c, op)
	c.quiet = func() { quiet(); closed() }
	return c
}

// inChild translates a failure of the parent: its ranks become those of a child that is made of these members.
func inChild(f *bootstrap.Failure, members []int) *bootstrap.Failure {
	g := *f
	in := func(ranks []int) (of []int) {
		for _, r := range ranks {
			if i := slices.Index(members, r); i >= 0 {
				of = append(of, i)
			}
		}
		return of
	}
	g.Rank, g.Culprits, g.Candidates = slices.Index(members, f.Rank), in(f.Culprits), in(f.Candidates)
	return &g
}
