package join

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/trace"
)

// each runs f on n goroutine ranks.
func each(n int, cfg ringo.Config, f func(c *ringo.Comm) error) error {
	comms, err := ringo.OpenLocal(n, cfg)
	if err != nil {
		return err
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = errors.Join(f(c), c.Close()) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Ranks of one process have one clock; the calls of all come together on rank 0.
func TestGather(t *testing.T) {
	rec := trace.NewRecorder(0, 0)
	var whole *trace.Trace
	var comm string
	require.NoError(t, each(3, ringo.Config{Observer: rec}, func(c *ringo.Comm) error {
		var k Clock
		if err := k.Measure(c); err != nil {
			return err
		}
		if err := ringo.AllReduce(c, make([]float32, 10), ringo.Sum); err != nil {
			return err
		}
		if err := k.Measure(c); err != nil {
			return err
		}
		if k.Of(1e18) != 1e18 {
			return fmt.Errorf("rank %d's clock differs from that of the same process: %v", c.Rank(), k)
		}
		all, err := Gather(c, &k, rec.Trace())
		if c.Rank() == 0 {
			whole, comm = all, c.History().Comm
		} else if all != nil {
			return errors.New("not rank 0")
		}
		return err
	}))
	want := rec.Trace()
	for r := range 3 {
		got := whole.Of(comm, r).Calls
		require.NotEmpty(t, got)
		require.True(t, slices.ContainsFunc(got,
			func(c trace.Call) bool { return c.Kind == "AllReduce" && len(c.Steps) > 0 }))
		require.Equal(t, want.Of(comm, r).Calls[0].Start, got[0].Start)
		require.Equal(t, want.Of(comm, r).Calls[0].Steps, got[0].Steps)
	}
	require.Equal(t, 1, whole.Arrivals(comm).Calls)
}

// A round trip gives the point of two clocks, which drift evenly between two points.
func TestClock(t *testing.T) {
	require.Equal(t, point{110, 0}, pointOf(100, 120, 101), "within what can be told")
	require.Equal(t, point{110, 890}, pointOf(100, 120, 1000))
	require.Equal(t, point{110, -60}, pointOf(100, 120, 50))
	k := Clock{[]point{{1000, 50}, {2000, 60}}}
	for at, want := range map[int64]int64{1000: 1050, 2000: 2060, 1500: 1555, 3000: 3070, 0: 40} {
		require.Equal(t, want, k.Of(at))
	}
	require.Equal(t, int64(7), new(Clock).Of(7))
	require.Equal(t, int64(57), (&Clock{[]point{{1000, 50}}}).Of(7))
}

// A program whose ranks are processes does the same, with ringo.OpenEnv.
func Example() {
	rec := trace.NewRecorder(0, 0)
	err := each(2, ringo.Config{Observer: rec}, func(c *ringo.Comm) error {
		var clock Clock
		if err := clock.Measure(c); err != nil {
			return err
		}
		for range 3 {
			if err := ringo.AllReduce(c, make([]float32, 100), ringo.Sum); err != nil {
				return err
			}
		}
		if err := clock.Measure(c); err != nil {
			return err
		}
		whole, err := Gather(c, &clock, rec.Trace())
		if err != nil || whole == nil {
			return err
		}
		fmt.Println(whole.Arrivals(c.History().Comm).Calls, "calls of all ranks") // whole.Write writes them to a file
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 3 calls of all ranks
}
