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

// A nil communicator and a nil call are errors of the caller, and never a panic.
func TestNil(t *testing.T) {
	well, ctx := local(t, 1, Config{})[0], t.Context()
	var none *Comm
	group := func(c *Comm, x *Call) error {
		g := NewGroup()
		g.Add(well, BarrierOf())
		g.Add(c, x)
		g.Add(c, BarrierOf())
		return g.Run()
	}
	for name, err := range map[string]error{
		"Do": none.Do(BarrierOf()), "DoContext": none.DoContext(ctx, BarrierOf()), "Start": none.Start(nil).Wait(),
		"With": none.With(ctx).Do(nil), "AlltoAll": AlltoAll(none, []int8{1}, []int8{1}), "Prepare": none.Prepare(nil),
		"Close": none.Close(), "Err": none.Err(), "Failure": none.Failure(), "Synchronize": none.Synchronize(0),
		"Drain": none.Drain(), "Group": group(none, BarrierOf()),
		"Do nil": well.Do(nil), "DoContext nil": well.DoContext(ctx, nil), "Start nil": well.Start(nil).Wait(),
		"With nil": well.With(ctx).Start(nil).Wait(), "Prepare nil": well.Prepare(nil), "Group nil": group(well, nil),
	} {
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, " is nil", name)
		require.IsType(t, &Error{}, err, name)
	}
	for name, make := range map[string]func() (*Comm, error){
		"Split":     func() (*Comm, error) { return none.Split(ctx, 0, 0) },
		"SplitWith": func() (*Comm, error) { return none.SplitWith(ctx, 0, 0, Config{}) },
		"Shrink":    func() (*Comm, error) { return none.Shrink(ctx) },
		"Grow":      func() (*Comm, error) { return none.Grow(ctx, nil, 2) },
		"Register":  func() (*Comm, error) { _, err := none.Register(Region{}); return nil, err },
	} {
		_, err := make()
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	require.EqualError(t, none.Do(nil), "Do: invalid argument: the Comm is nil, as Split's of a rank with NoColor")
	require.NoError(t, well.Do(BarrierOf()))
}

// nameOf says how a Config of everyTransport connects.
func nameOf(c Config) string { return strings.Trim(c.Transport+" "+c.SocketNetwork, " ") }
