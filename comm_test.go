package ringo

import (
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The tests here need what a program cannot reach. All others of communicators are in internal/test/e2e.

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "16")                                       // they wait
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("runtime.handleEvent")) // Go's own, where GOOS is js
}

// local is a communicator of n goroutines, closed at the end of the test.
func local(t testing.TB, n int, cfg Config) []*Comm {
	comms, err := OpenLocal(n, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	})
	return comms
}

// each runs f on all ranks at once and gives the errors by rank.
func each(comms []*Comm, f func(c *Comm) error) []error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errs
}

func noErrors(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
}

// everyTransport are the ways in which ranks of one process can be connected.
var everyTransport = slices.DeleteFunc([]Config{{}, {Transport: "shm"}, {Transport: "socket"},
	{Transport: "socket", SocketNetwork: "tcp"}},
	func(c Config) bool { return c.Transport == "shm" && runtime.GOOS != "linux" })

// nameOf says how a Config of everyTransport connects.
func nameOf(c Config) string { return strings.Trim(c.Transport+" "+c.SocketNetwork, " ") }
