package gpucomm

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
)

// A roll is what kernels that have waited long say about the ranks they wait for: whether those have left. Kernels do
// not hear of it, and the group does not know what graphs and messages on the GPU wait for.
type roll struct {
	asked  time.Time // when the kernels were last asked, zero if not in this operation
	asking bool
	left   []int     // who had left by then
	missed []int     // of those, who was awaited in an answer
	told   time.Time // when the group was last asked

	mu sync.Mutex
	// guarded by mu; who was awaited by an answer: each has a few of those for whom the operation waits, as a thread may
	// serve many
	last []int
}

// answerTime is how long kernels have to answer after the first of them has: they ask the host well within a ms, but
// those of an emulated GPU.
const answerTime = 20 * time.Millisecond

// awaited are the ranks for which the kernels of the operation have waited.
func (r *roll) awaited() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// end forgets the answers: another operation is under way.
func (r *roll) end(c *grid.Control) {
	if r.asking {
		c.AskNoMore()
	}
	r.asked, r.asking, r.missed = time.Time{}, false, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = nil
}

// add notes an answer.
func (r *roll) add(awaited []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.last, awaited) // the slice that awaited gave stays as it is
	slices.Sort(all)
	r.last = slices.Compact(all)
}

// call asks the kernels for whom they wait, and the group where those ranks are, as long as an operation takes. It is
// an error if a rank has left for which a kernel waits. What such a rank had sent has arrived before it was heard that
// it has left, so a kernel that waits for it in two answers waits in vain.
func (u *upkeep) call(now time.Time) error {
	r, control := &u.watch.roll, u.engine.Control()
	if !r.asking {
		pause := life.Slow
		if slices.ContainsFunc(r.awaited(), u.Group.Left) {
			pause = answerTime
		}
		if now.Sub(r.asked) > pause {
			r.asking, r.asked, r.left = true, now, r.left[:0]
			for rank := range u.Life.Size {
				if u.Group.Left(rank) {
					control.Gone(rank) // before kernels are asked: those that have all they need say no more then
					r.left = append(r.left, rank)
				}
			}
			control.Ask()
		}
		return nil
	}
	answer := control.Awaited()
	if len(answer) == 0 || now.Sub(r.asked) < answerTime {
		return nil
	}
	control.AskNoMore()
	r.asking = false
	r.add(answer)
	for _, rank := range r.left {
		switch {
		case !slices.Contains(answer, rank):
		case slices.Contains(r.missed, rank):
			return &engine.StepError{Peer: sched.Rank(rank), Phase: "recv",
				Err: fmt.Errorf("%w: rank %d has closed the communicator; all ranks must make the same calls before Close",
					call.ErrLeft, rank)}
		default:
			r.missed = append(r.missed, rank)
		}
	}
	if now.Sub(r.told) > life.Slow {
		r.told = now
		u.Life.Go(u.Life.Inquire)
	}
	return nil
}
