package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
)

// lookAgain is the least time after which a launcher looks again at processes that the others have gone on without.
const lookAgain = 200 * time.Millisecond

// A vigil watches over the running processes of a job.
type vigil struct {
	*job
	alive    []bool   // by rank
	killed   []bool   // by rank: the launcher has killed it for good
	failures []*Error // of ranks that are not started again; the cause of other failures first
	told     bool     // the launcher has sent signals to all
	kills    <-chan time.Time
}

// regrouping is the state of ranks that go on after a failure (Group.Regroup), as told by the rendezvous.
type regrouping struct {
	mu      sync.Mutex
	waits   bool  // some ranks want to go on, and wait for the others
	members []int // the ranks that went on, nil before
}

func (r *regrouping) heard(members []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = members == nil
	if len(members) > 0 {
		r.members = slices.Clone(members)
	}
}

// without reports whether other ranks have gone on without this rank.
func (r *regrouping) without(rank int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members != nil && !slices.Contains(r.members, rank)
}

func (r *regrouping) underWay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits
}

// watch waits for all running processes, restarts ranks that fail as far as Restarts allows, and ends all
// once a rank has failed for good and the others do not go on without it.
func (j *job) watch(ctx context.Context, signals <-chan os.Signal, running int, first *Error,
	again func(rank int) bool) error {
	v := &vigil{job: j, alive: make([]bool, j.N), killed: make([]bool, j.N)}
	for rank := range running {
		v.alive[rank] = true
	}
	if first != nil {
		v.failures = append(v.failures, first)
		v.kills = time.After(j.Grace)
	}
	cancelled := ctx.Done()
	for running > 0 {
		select {
		case rank := <-j.ended:
			if !v.buried(rank, again) {
				continue
			}
			if running--; v.kills == nil && v.forsaken() {
				v.kills = time.After(j.Grace)
			}
		case s := <-signals:
			v.tell(s.(syscall.Signal))
		case <-cancelled:
			cancelled = nil
			v.tell(syscall.SIGTERM)
			v.kills = time.After(j.Grace)
		case <-v.kills:
			switch {
			case cancelled == nil && ctx.Err() != nil:
				v.tell(syscall.SIGKILL)
			case v.regrouped.underWay(): // ranks that regroup have a deadline of their own
				v.kills = time.After(j.Grace)
			default:
				v.end()
			}
		}
	}
	if cancelled == nil && ctx.Err() != nil {
		return fmt.Errorf("launch: %w", context.Cause(ctx))
	}
	if first := v.first(); first != nil {
		return first
	}
	return nil
}

// lost reports whether the others have gone on without a rank. A rank that was started again is not lost: it may have
// come back by a meeting point that is not served here (ringo.Comm.Grow).
func (v *vigil) lost(rank int) bool { return v.restarts[rank] == 0 && v.regrouped.without(rank) }

// forsaken reports whether processes are left and the others have gone on without all of them.
func (v *vigil) forsaken() (some bool) {
	for rank, yes := range v.alive {
		if yes && !v.killed[rank] {
			if some = true; !v.lost(rank) {
				return false
			}
		}
	}
	return some
}

// behind reports whether all processes that are left are forsaken and stopped: they would keep the job for ever.
func (v *vigil) behind() bool {
	for rank, yes := range v.alive {
		if yes && !v.killed[rank] && !stopped(v.cmds[rank].Process.Pid) {
			return false
		}
	}
	return v.forsaken()
}

// first is the failure that ends the job, nil if there is none. Failures of lost ranks do not count.
func (v *vigil) first() *Error {
	for _, err := range v.failures {
		if !v.lost(err.Rank) {
			return err
		}
	}
	return nil
}

// tell sends a signal to all that are alive.
func (v *vigil) tell(s syscall.Signal) {
	v.told = true
	for rank, yes := range v.alive {
		if yes {
			kill(v.cmds[rank].Process, s)
		}
	}
}

// end kills the ranks that do not go on, and names them on Stderr.
func (v *vigil) end() {
	v.kills = nil
	cause, behind := v.first(), v.behind()
	var ranks []string
	for rank, yes := range v.alive {
		if yes && (cause != nil || v.lost(rank) && len(v.failures) > 0 || behind) {
			v.killed[rank] = true
			kill(v.cmds[rank].Process, syscall.SIGKILL)
			ranks = append(ranks, strconv.Itoa(rank))
		}
	}
	if v.forsaken() { // they run; whether they are stopped later is looked at again
		v.kills = time.After(max(v.Grace, lookAgain))
	}
	v.told = v.told || cause != nil
	if len(ranks) == 0 || v.stderr == nil {
		return
	}
	who := "rank " + strings.Join(ranks, ", ")
	if len(ranks) > 1 {
		who = "ranks " + strings.Join(ranks, ", ")
	}
	switch {
	case cause != nil:
		fmt.Fprintf(v.stderr, "launch: killed %s, still running %v after rank %d ended (%s): that is the grace "+
			"(ringo run -grace)\n", who, v.Grace, cause.Rank, cause.how())
	case behind:
		fmt.Fprintf(v.stderr, "launch: killed %s, still there %v after all ended that went on without it: a process that is "+
			"stopped does not end\n", who, v.Grace)
	default:
		last := v.failures[len(v.failures)-1]
		fmt.Fprintf(v.stderr, "launch: killed %s, still running %v after rank %d ended (%s), and the others go on without: "+
			"that is the grace (ringo run -grace)\n", who, v.Grace, last.Rank, last.how())
	}
}

// buried notes that the process of a rank has ended. It returns false if the rank was started again.
func (v *vigil) buried(rank int, again func(rank int) bool) bool {
	v.alive[rank] = false
	err := failure(rank, v.cmds[rank], v.errs[rank])
	first := v.first()
	if err != nil && first == nil && !v.told && !v.killed[rank] && v.restarts[rank] < v.Restarts && again(rank) {
		v.alive[rank] = true
		return false
	}
	bootstrap.Gone(v.id, rank, err.how())
	if v.Ended != nil {
		v.Ended(rank, err)
	}
	switch {
	case err == nil || v.killed[rank]:
	case first == nil:
		v.failures = append(v.failures, err)
		for r, yes := range v.alive {
			if yes && stopped(v.cmds[r].Process.Pid) {
				err.Stopped = append(err.Stopped, r)
			}
		}
		v.kills = time.After(v.Grace)
	case !v.told && err.Signal != 0 && first.Signal == 0:
		// the other failures follow from this one, even if they were seen first
		v.failures = slices.Insert(v.failures, slices.Index(v.failures, first), err)
	default:
		v.failures = append(v.failures, err)
	}
	return true
}

// failure is how a process ended, nil if well.
func failure(rank int, cmd *exec.Cmd, err error) *Error {
	state := cmd.ProcessState
	switch {
	case state == nil:
		return &Error{Rank: rank, Err: err}
	case state.Success():
		if err == nil || errors.Is(err, exec.ErrWaitDelay) {
			return nil
		}
		return &Error{Rank: rank, Err: err}
	}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return &Error{Rank: rank, Signal: s.Signal()}
	}
	return &Error{Rank: rank, Status: state.ExitCode()}
}
