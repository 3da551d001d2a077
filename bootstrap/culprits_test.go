package bootstrap_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace/judge"
)

// A fault is a host, a path or one direction of a path that is cut for a while.
type fault struct {
	a, b    int // places; b is -1 if a is cut off from all others
	oneWay  bool
	since   time.Time
	takes   time.Duration
	timeout time.Duration // of the operation
}

func (f *fault) String() string {
	what := fmt.Sprintf("path %d-%d", f.a, f.b)
	if f.b < 0 {
		what = fmt.Sprintf("host %d", f.a)
	} else if f.oneWay {
		what = fmt.Sprintf("way %d>%d", f.a, f.b)
	}
	return fmt.Sprintf("%s for %v, timeout %v", what, f.takes, f.timeout)
}

// concerns reports whether the fault is on the way between two places, in this direction.
func (f *fault) concerns(from, to int) bool {
	switch {
	case from == to:
		return false
	case f.b < 0:
		return from == f.a || to == f.a
	}
	return from == f.a && to == f.b || !f.oneWay && from == f.b && to == f.a
}

func (f *fault) cut(from, to int) (bool, time.Time, time.Time) {
	end := f.since.Add(f.takes)
	now := time.Now()
	return f.concerns(from, to) && !now.Before(f.since) && now.Before(end), f.since, end
}

// alike is what of culprits has to be the same on all ranks. Where an operation runs out of time because of a path,
// those that the hub's word does not reach name the path by other ranks of the two hosts.
func (f *fault) alike(places, culprits []int) []int {
	if f.b < 0 || f.timeout == time.Hour {
		return culprits
	}
	var hosts []int
	for _, r := range culprits {
		hosts = append(hosts, places[r])
	}
	slices.Sort(hosts)
	return hosts
}

// cutNow reports whether the way between two places is cut now.
func (f *fault) cutNow(a, b int) bool {
	there, _, _ := f.cut(a, b)
	back, _, _ := f.cut(b, a)
	return there || back
}

// parts reports whether two places have lost each other.
func (f *fault) parts(a, b int) bool { return f.concerns(a, b) || f.concerns(b, a) }

// wrong says what is wrong with whom an error blames, "" if that is right.
func (f *fault) wrong(places, culprits, candidates []int) string {
	at := func(ranks []int, place int) bool {
		return slices.ContainsFunc(ranks, func(r int) bool { return places[r] == place })
	}
	missed := func(place int) bool { return slices.Contains(places, place) && !at(candidates, place) }
	switch {
	case len(culprits) == 2 && f.b < 0 && f.takes < time.Minute && f.timeout < time.Hour && at(culprits, f.a):
		return "" // all hear each other again when time runs out, and the waits say between which two nothing has moved
	case len(culprits) > 0 && f.b < 0:
		if slices.ContainsFunc(culprits, func(r int) bool { return places[r] != f.a }) {
			return "an innocent is named"
		}
	case len(culprits) > 0:
		if len(culprits) != 2 || !at(culprits, f.a) || !at(culprits, f.b) {
			return "a path is cut, and something else is named"
		}
	case len(candidates) > 0 && (missed(f.a) || missed(f.b)):
		return "the candidates are without the culprit"
	}
	return ""
}

// Whatever host, path or direction is cut, for good or for a time, however late that is seen, wherever the hub is: no
// rank names an innocent, all ranks that hear each other name the same, and so does what "ringo why" makes of it all.
func TestCulpritsAreOneSet(t *testing.T) {
	var known, unknown int
	for seed := range uint64(tier.Count(60, 3000)) {
		synctest.Test(t, func(t *testing.T) { testCulprits(t, seed, &known, &unknown) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d ranks know, %d cannot", known, unknown)
	if known < unknown {
		t.Error("most ranks should know")
	}
}

func testCulprits(t *testing.T, seed uint64, known, unknown *int) {
	g := rand.New(rand.NewPCG(seed, 0))
	size, hosts := 2+g.IntN(7), 0
	places := make([]int, size)
	for r := 1; r < size; r++ {
		if g.IntN(4) > 0 {
			hosts++
		}
		places[r] = hosts
	}
	if hosts++; hosts == 1 {
		return
	}
	var serving []int
	hub := g.IntN(hosts)
	if g.IntN(3) > 0 {
		serving = []int{slices.Index(places, hub)}
	} else if g.IntN(2) == 0 {
		hub = hosts // a launcher on a host without ranks
		hosts++
	}
	f := &fault{a: g.IntN(hosts), b: -1, takes: 1000 * time.Hour, timeout: time.Hour, since: time.Now().Add(time.Second)}
	if g.IntN(2) == 0 {
		f.b = (f.a + 1 + g.IntN(hosts-1)) % hosts
		f.oneWay = g.IntN(2) == 0
	}
	if g.IntN(2) == 0 {
		f.takes = time.Duration(5+g.IntN(30)) * time.Second
	}
	if g.IntN(4) == 0 {
		f.timeout = 6 * time.Second
	}
	exits := g.IntN(2) == 0 // ranks end when they have failed
	detect := func() time.Duration { return 9*time.Second + time.Duration(g.IntN(12_000))*time.Millisecond }
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	groups := bootstrap.NewWorld(ctx, places, hub, serving, bootstrap.Ways{Cut: f.cut, Detect: detect}, f.since)
	errs := make([]*call.Error, size)
	ends, paths := make([]time.Duration, size), make([]bool, size)
	left := make([]chan struct{}, size) // closed when a rank has ended
	for r := range left {
		left[r] = make(chan struct{})
	}
	over := make(chan struct{})
	var all, lives sync.WaitGroup
	began, end := time.Now(), f.since.Add(min(f.takes, 3*time.Minute)) // the operation ends after that
	end = end.Add(20 * time.Second)
	stuck := false
	for r := range size {
		stuck = stuck || f.parts(places[(r+size-1)%size], places[r])
	}
	step := size // those behind the cut are behind the others
	for i := range size {
		r := (max(0, slices.Index(places, f.a)) + 1 + i) % size
		from := (r + size - 1) % size
		broken := f.parts(places[from], places[r])
		if step++; broken {
			step = 1
		}
		notice, at, pause := detect(), step, time.Duration(g.IntN(2000))*time.Millisecond
		all.Add(1)
		lives.Go(func() {
			l := life.New(groups[r], "h", "", f.timeout)
			defer l.Close()
			l.Turn.Lock(context.Background())
			l.Turn.Next(call.Sign{Kind: call.AllReduce, Type: kernels.Int8, Count: 4, Root: -1}.Stamp(), life.Collective, false)
			var silent, late <-chan time.Time
			if broken && notice < f.takes {
				silent = time.After(time.Until(f.since) + notice)
			}
			if stuck && began.Add(f.timeout).Before(f.since.Add(f.takes)) {
				late = time.After(f.timeout)
			}
			var cause error
			select {
			case <-silent:
				cause = syscall.ETIMEDOUT
			case <-late:
				cause = call.ErrTimeout
			case <-left[from]:
				for f.cutNow(places[from], places[r]) && l.Guard.Aborted() == nil && time.Now().Before(end) {
					time.Sleep(100 * time.Millisecond)
				}
				if cause = l.Guard.Aborted(); cause == nil && time.Now().Before(end) {
					cause = syscall.ECONNRESET
				}
			case <-l.Stopped():
				cause = l.Guard.Aborted()
			case <-time.After(time.Until(end)):
			}
			if cause != nil {
				errs[r] = l.Fail(&call.Call{Kind: call.AllReduce}, 1, &engine.StepError{Peer: sched.Rank(from), Phase: "recv",
					Step: at, Err: cause}, nil)
				ends[r] = time.Since(began)
				paths[r] = l.Record().Path
			}
			l.Turn.Unlock()
			if cause != nil && exits {
				time.Sleep(pause)
				bootstrap.Drop(groups[r])
				close(left[r])
			}
			all.Done()
			<-over
		})
	}
	all.Wait()
	var report strings.Builder
	fmt.Fprintf(&report, "seed %d: hosts of ranks %v, hub on %d in the process of %v, %v, exits %v\n", seed, places, hub, serving, f, exits)
	var votes []judge.Vote
	var same []int
	said := -1
	faults := ""
	for r, e := range errs {
		if e == nil {
			continue
		}
		fmt.Fprintf(&report, "rank %d after %v: %v or %v: %v\n", r, ends[r], e.Culprits, e.Candidates, e)
		votes = append(votes, judge.Vote{Culprits: e.Culprits, Candidates: e.Candidates, Path: paths[r]})
		if bad := f.wrong(places, e.Culprits, e.Candidates); bad != "" {
			faults += fmt.Sprintf("rank %d: %s\n", r, bad)
		}
		if len(e.Culprits) == 0 {
			*unknown++
			continue
		}
		*known++
		if said >= 0 && !f.parts(places[said], places[r]) &&
			!slices.Equal(f.alike(places, same), f.alike(places, e.Culprits)) {
			faults += fmt.Sprintf("ranks %d and %d name different ranks\n", said, r)
		}
		said, same = r, e.Culprits
	}
	culprits, candidates := judge.Elect(votes)
	if bad := f.wrong(places, culprits, candidates); bad != "" {
		faults += fmt.Sprintf("all together, %v or %v: %s\n", culprits, candidates, bad)
	}
	if faults != "" {
		t.Error(report.String() + faults)
	}
	close(over)
	cancel()
	lives.Wait()
	for _, g := range groups {
		g.Close()
	}
	time.Sleep(time.Minute) // for what waits with a limit
}
