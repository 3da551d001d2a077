package commtest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/trace"
)

// Local is a communicator of n goroutines, closed at the end of the test.
func Local(t testing.TB, n int, cfg ringo.Config) []*ringo.Comm {
	comms, err := ringo.OpenLocal(n, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	})
	return comms
}

// Each runs f on all ranks at once and gives the errors by rank.
func Each(comms []*ringo.Comm, f func(c *ringo.Comm) error) []error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errs
}

// Meeting is an ID that is served until the end of the test.
func Meeting(t testing.TB) bootstrap.ID {
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { bootstrap.Stop(id) })
	return id
}

// OpenAll opens a communicator of n ranks, each with its own Config, closed at the end of the test. It meets by an ID
// of its own unless a Config has one.
func OpenAll(t testing.TB, n int, cfg func(r int) ringo.Config) (comms []*ringo.Comm, errs []error) {
	comms, errs = make([]*ringo.Comm, n), make([]error, n)
	id := Meeting(t)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			c := cfg(r)
			c.Rank, c.Size = r, n
			if c.ID == nil {
				c.ID = &id
			}
			comms[r], errs[r] = ringo.Open(t.Context(), c)
		})
	}
	all.Wait()
	t.Cleanup(func() {
		for _, c := range comms {
			if c != nil {
				require.NoError(t, c.Close())
			}
		}
	})
	return comms, errs
}

// Environment is an environment of variables alone, as "RINGO_TLS=1".
func Environment(variables ...string) func(string) string {
	return func(name string) string {
		for _, p := range variables {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

// Under is a Config that is completed from these variables alone.
func Under(cfg ringo.Config, variables ...string) ringo.Config {
	cfg, err := cfg.From(Environment(variables...))
	if err != nil {
		panic(err)
	}
	return cfg
}

// Algos is an Observer that keeps the algorithm of each rank's last call.
type Algos struct{ of sync.Map }

func (a *Algos) Begin(c *trace.Call) { a.of.Store(c.Rank, c.Algo) }

func (a *Algos) End(*trace.Call) {}

// Last is the algorithm of a rank's last call.
func (a *Algos) Last(rank int) string {
	algo, _ := a.of.Load(rank)
	return fmt.Sprint(algo)
}

// NoErrors fails the test at the first error of a rank.
func NoErrors(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
}

// EveryTransport are the ways in which ranks of one process can be connected.
var EveryTransport = slices.DeleteFunc([]ringo.Config{{}, {Transport: "shm"}, {Transport: "socket"},
	{Transport: "socket", SocketNetwork: "tcp"}},
	func(c ringo.Config) bool { return c.Transport == "shm" && runtime.GOOS != "linux" })

// NameOf says how a Config of EveryTransport connects.
func NameOf(c ringo.Config) string { return strings.Trim(c.Transport+" "+c.SocketNetwork, " ") }
