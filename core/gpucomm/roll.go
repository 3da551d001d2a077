package gpucomm

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
)

// A roll is the answers of kernels that have waited long: for which ranks they wait, and whether these have left. The
// group alone cannot tell: it does not know for whom graphs and messages on the GPU wait.
type roll struct {
	life    *life.Life
	group   bootstrap.Group
	control *grid.Control

	asked  time.Time // when the kernels were last asked, zero if not in this operation
	asking bool
	left   []int     // ranks that had left by then
	missed []int     // ranks of left that an answer has named
	told   time.Time // when the group was last asked

	mu sync.Mutex
	// guarded by mu; ranks that answers have named: each names a few of those awaited, as a thread may serve many
	last []int
}

// answerTime is how long kernels have at least to answer: they look at the control block well within a ms, but on an
// emulated GPU. When an awaited rank has left it is also the pause before the next question.
const answerTime = 20 * time.Millisecond

// awaited are the ranks for which the kernels of the operation have waited.
func (r *roll) awaited() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// end forgets the answers: another operation is under way.
func (r *roll) end() {
	if r.asking {
		r.control.AskNoMore()
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

// call asks the kernels for whom they wait, and the group where those ranks are. The watcher calls it as long as an
// operation takes. It is an error if a kernel waits for a rank that has left. What such a rank has sent arrives before
// the news of its leaving, so if two answers name it, the wait is in vain.
func (r *roll) call(now time.Time) error {
	if !r.asking {
		pause := life.Slow
		if slices.ContainsFunc(r.awaited(), r.group.Left) {
			pause = answerTime
		}
		if now.Sub(r.asked) > pause {
			r.asking, r.asked, r.left = true, now, r.left[:0]
			for rank := range r.life.Size {
				if r.group.Left(rank) {
					r.control.Gone(rank) // before kernels are asked: those that have all they need say no more then
					r.left = append(r.left, rank)
				}
			}
			r.control.Ask()
		}
		return nil
	}
	answer := r.control.Awaited()
	if len(answer) == 0 || now.Sub(r.asked) < answerTime {
		return nil
	}
	r.control.AskNoMore()
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
		r.life.Go(func() { r.life.Inquire() })
	}
	return nil
}
