package launch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/trace/history"
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
	halted   []int // the ranks that were stopped at the last look, if all were that had not ended
	named    bool  // and they have been named
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

// A blame is the failure that the ranks have agreed on.
type blame struct {
	mu      sync.Mutex
	failure *bootstrap.Failure
}

func (b *blame) heard(f *bootstrap.Failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failure = f
}

// beside is the failure if others than rank are to blame for it, else nil.
func (b *blame) beside(rank int) *bootstrap.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.failure; f != nil && len(f.Culprits) > 0 && !slices.Equal(f.Culprits, []int{rank}) {
		return f
	}
	return nil
}

// stillTime is how long the ranks that are left may all be stopped before the launcher says for whom it waits.
const stillTime = 3 * time.Second

// watch waits for all running processes, restarts ranks that fail as far as Restarts allows, and ends all
// once a rank has failed for good and the others do not go on without it.
func (j *job) watch(ctx context.Context, signals <-chan os.Signal, running int, first *Error) error {
	v := &vigil{job: j, alive: make([]bool, j.N), killed: make([]bool, j.N)}
	for rank := range running {
		v.alive[rank] = true
	}
	if first != nil {
		v.failures = append(v.failures, first)
		v.kills = time.After(j.Grace)
	}
	cancelled := ctx.Done()
	var passed time.Time // the last signal, to the ranks
	looks := time.NewTicker(stillTime)
	defer looks.Stop()
	for running > 0 {
		select {
		case rank := <-j.ended:
			if !v.buried(rank) {
				continue
			}
			if running--; v.kills == nil && v.forsaken() {
				v.kills = time.After(j.Grace)
			}
		case s := <-signals:
			v.tell(s.(syscall.Signal))
			passed = time.Now()
		case <-cancelled:
			cancelled = nil
			if s := recent(signals, passed); s != 0 {
				v.tell(s)
			}
			v.kills = time.After(j.Grace)
		case <-looks.C:
			v.look()
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
	out := context.Background()
	if ctx.Err() != nil { // who reads the output may have gone too
		var stop context.CancelFunc
		out, stop = context.WithTimeout(out, j.Grace)
		defer stop()
	}
	first = v.first()
	fmt.Fprint(j.stderr, leave(out, j.parent, j.streams).text("ranks", first == nil && ctx.Err() == nil && !v.told))
	if cancelled == nil && ctx.Err() != nil {
		return fmt.Errorf("launch: %w", context.Cause(ctx))
	}
	if first = cmp.Or(first, v.unsaid()); first != nil {
		first.Blamed = j.blamed.beside(first.Rank)
		return first
	}
	return nil
}

// recent is the signal that asks the ranks to end: the one that has ended the launcher's context, which comes at about
// the same time, or SIGTERM; 0 if the ranks have it. A rank that handles SIGINT is not to die of a SIGTERM beside it.
func recent(signals <-chan os.Signal, passed time.Time) syscall.Signal {
	const same = 100 * time.Millisecond
	if time.Since(passed) < same {
		return 0
	}
	select {
	case s := <-signals:
		return s.(syscall.Signal)
	case <-time.After(same):
		return syscall.SIGTERM
	}
}

// unsaid is the first rank whose output could not be passed on, though it ended well.
func (v *vigil) unsaid() *Error {
	for rank, streams := range v.outputs {
		for _, s := range streams {
			if err := s.fault(); err != nil {
				return &Error{Rank: rank, Err: err}
			}
		}
	}
	return nil
}

// look says for whom the job waits, if all ranks that are left are stopped and were so at the last look.
func (v *vigil) look() {
	var halted []int
	for rank, yes := range v.alive {
		if yes {
			if v.processes[rank].halted() == "" {
				v.halted, v.named = nil, false
				return
			}
			halted = append(halted, rank)
		}
	}
	if !slices.Equal(halted, v.halted) {
		v.halted, v.named = halted, false
		return
	}
	if v.named {
		return
	}
	v.named = true
	p := v.processes[halted[0]]
	v.stderr.say("still waiting for %s, stopped by a signal: process %d by %s; kill -CONT %[2]d lets it go on",
		history.Ranks(halted), p.pid, p.halted())
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
		if yes && !v.killed[rank] && v.processes[rank].halted() == "" {
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
			v.parent.signal(v.processes[rank], s)
		}
	}
}

// end kills the ranks that do not go on, and names them on Stderr.
func (v *vigil) end() {
	v.kills = nil
	cause, behind := v.first(), v.behind()
	var ranks []int
	for rank, yes := range v.alive {
		if yes && (cause != nil || v.lost(rank) && len(v.failures) > 0 || behind) {
			v.killed[rank] = true
			v.parent.signal(v.processes[rank], syscall.SIGKILL)
			ranks = append(ranks, rank)
		}
	}
	if v.forsaken() { // they run; whether they are stopped later is looked at again
		v.kills = time.After(max(v.Grace, lookAgain))
	}
	v.told = v.told || cause != nil
	if len(ranks) == 0 {
		return
	}
	they := "it"
	if len(ranks) > 1 {
		they = "they"
	}
	took := v.Grace.Round(time.Millisecond).String()
	if v.GraceFlag != "" {
		took += " (" + v.GraceFlag + ")"
	}
	who := history.Ranks(ranks)
	switch {
	case cause != nil:
		v.stderr.say("killed %s: %s still ran %s after rank %d %s", who, they, took, cause.Rank, cause.had())
	case behind:
		v.stderr.say("killed %s: %s still ran, and stopped, %s after all had ended that went on without %s", who, they,
			took, strings.Replace(they, "they", "them", 1))
	default:
		last := v.failures[len(v.failures)-1]
		v.stderr.say("killed %s: %s still ran %s after rank %d %s, and the others go on without %s", who, they, took,
			last.Rank, last.had(), strings.Replace(they, "they", "them", 1))
	}
}

// buried notes that the process of a rank has ended. It returns false if the rank was started again.
func (v *vigil) buried(rank int) bool {
	v.alive[rank] = false
	err := failure(rank, v.processes[rank].how, v.outputs[rank])
	first := v.first()
	if err != nil {
		v.parent.tidy(v.processes[rank]) // the others may go on for long
	}
	if err != nil && first == nil && !v.told && !v.killed[rank] && v.restarts[rank] < v.Restarts {
		v.restarts[rank]++
		again := v.start(rank)
		if again == nil {
			v.alive[rank] = true
			return false
		}
		err = &Error{Rank: rank, Err: again}
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
			if yes && v.processes[r].halted() != "" {
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

// failure is how a rank's process ended, nil if well.
func failure(rank int, how ending, streams []*stream) *Error {
	e := &Error{Rank: rank, Status: how.status, Signal: how.signal, Err: how.err}
	if e.Status != 0 || e.Signal != 0 {
		return e
	}
	for _, s := range streams {
		e.Err = cmp.Or(e.Err, s.fault())
	}
	if e.Err == nil {
		return nil
	}
	return e
}
