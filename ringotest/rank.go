package ringotest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo"
)

// A Rank is one rank of a Run. Its messages begin with the name of the rank. It is a require.TestingT,
// so that require.NoError(ringotest.Of(c), err) names the rank.
type Rank struct {
	trial     *trial
	rank      int
	comm      *ringo.Comm
	rng       *rand.Rand
	goroutine atomic.Value // its number, a string, when f runs

	wires *wires // with Faults, else nil
	phone *phone // in a process of its own, else nil

	ended chan struct{} // closed when f has ended and the communicator is closed
	early bool          // f has panicked or called Goexit; read when ended is closed

	killed bool // used by its own goroutine alone
}

// ofComm are the Ranks of all communicators of this process.
var ofComm sync.Map // of *ringo.Comm to *Rank

// Of is the Rank of a communicator that Run has given to a rank. For any other, such as one of Split, it panics.
func Of(c *ringo.Comm) *Rank {
	r, ok := ofComm.Load(c)
	if !ok {
		panic("ringotest: Of is for the communicator that Run gives to a rank, while it runs")
	}
	return r.(*Rank)
}

func newRank(x *trial, rank int) *Rank {
	return &Rank{trial: x, rank: rank, rng: rand.New(rand.NewPCG(x.seed, uint64(rank))), ended: make(chan struct{})}
}

func (r *Rank) adopt(c *ringo.Comm) {
	r.comm = c
	ofComm.Store(c, r)
}

// Rand gives random numbers, different ones to each rank and the same ones for the same seed. It is for this rank's
// goroutine alone.
func (r *Rank) Rand() *rand.Rand { return r.rng }

// Errorf fails the test and goes on.
func (r *Rank) Errorf(format string, args ...any) {
	r.trial.t.Helper()
	r.fail()
	r.trial.t.Errorf("rank %d: %s", r.rank, fmt.Sprintf(format, args...))
}

// FailNow fails the test, ends this rank and aborts the communicator. It is for this rank's own goroutine.
func (r *Rank) FailNow() {
	r.fail()
	runtime.Goexit()
}

// fail notes that this rank has failed, and where those are now that its communicator blames.
func (r *Rank) fail() {
	x := r.trial
	for _, c := range x.fail(r.rank, r.culprits()) {
		if c != r.rank && len(x.ranks) == x.size { // else another process has it
			x.saw(c, x.ranks[c].whereabouts().Stack)
		}
	}
}

// culprits are who has made the communicator fail.
func (r *Rank) culprits() []int {
	e, _ := errors.AsType[*ringo.Error](r.comm.Failure())
	if e == nil {
		return nil
	}
	return e.Culprits
}

// Fatalf is Errorf and FailNow.
func (r *Rank) Fatalf(format string, args ...any) {
	r.trial.t.Helper()
	r.Errorf(format, args...)
	r.FailNow()
}

// Logf writes into the test's log.
func (r *Rank) Logf(format string, args ...any) {
	r.trial.t.Helper()
	r.trial.t.Logf("rank %d: %s", r.rank, fmt.Sprintf(format, args...))
}

// Helper marks the caller as a helper, as testing.TB does.
func (r *Rank) Helper() { r.trial.t.Helper() }

// run is the life of a rank's goroutine.
func (r *Rank) run() {
	defer close(r.ended)
	defer r.trial.meeting.leave()
	r.goroutine.Store(goroutineNumber())
	defer r.close()
	normal := false
	defer func() {
		if p := recover(); p != nil {
			r.end(fmt.Sprintf("panicked: %v", p))
			r.trial.t.Errorf("ringotest: rank %d of %d over %s panicked: %v (seed %d)\n%s", r.rank, r.trial.size, r.trial.setup,
				p, r.trial.seed, debug.Stack())
		} else if !normal && !r.killed {
			r.end("ended early, by FailNow or Goexit")
		}
	}()
	r.trial.play(r.comm)
	normal = true
}

// end aborts the communicator of a rank that did not come to its end: other ranks may wait for it.
func (r *Rank) end(why string) {
	r.early = true
	if r.trial.t.Skipped() && !r.trial.t.Failed() {
		why = "skipped the test"
	} else {
		r.fail()
	}
	r.comm.Abort(fmt.Errorf("ringotest: rank %d %s", r.rank, why))
}

// close closes the communicator, unless the function has.
func (r *Rank) close() {
	ofComm.Delete(r.comm)
	if err := r.comm.Close(); err != nil && !errors.Is(err, ringo.ErrClosed) {
		r.Errorf("ringotest: Close: %v", err)
	}
}

// pattern is the value of -test.run for one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
