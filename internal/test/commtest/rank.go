package commtest

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// A TB is what helpers of a test need of it, in the test's goroutine or in that of a Rank.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// A Rank is a rank's communicator, and the TB of the goroutine that drives it.
type Rank struct {
	*ringo.Comm
	t testing.TB
}

func (r *Rank) Helper() { r.t.Helper() }

// Cleanup has f called at the end of the test, not of the rank.
func (r *Rank) Cleanup(f func()) { r.t.Cleanup(f) }

func (r *Rank) Errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("rank %d: "+format, append([]any{r.Rank()}, args...)...)
}

// FailNow ends the rank's goroutine, and its communicator, so that others do not wait for it.
func (r *Rank) FailNow() {
	r.Abort(errors.New("its test has failed"))
	runtime.Goexit()
}

// Run calls f for all ranks at once. It ends the test if one of them has failed.
func Run(t testing.TB, comms []*ringo.Comm, f func(r *Rank)) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range comms {
		all.Go(func() { f(&Rank{c, t}) })
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
