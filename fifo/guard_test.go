package fifo

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// inBubble runs f where time is virtual, and so is the clock of Now.
func inBubble(t *testing.T, f func(t *testing.T)) {
	real := base
	defer func() { base = real }()
	synctest.Test(t, func(t *testing.T) {
		base = time.Now()
		f(t)
	})
}

// The clock of an operation starts with its first Err.
func TestGuardDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		require.NoError(t, g.Err(), "the zero Guard")
		for range 2 {
			g.Begin(time.Second)
			time.Sleep(time.Hour)
			require.NoError(t, g.Err(), "the first look")
			time.Sleep(time.Second)
			require.NoError(t, g.Err(), "no later than the deadline")
			time.Sleep(time.Nanosecond)
			require.ErrorIs(t, g.Err(), ErrDeadline)
			g.End()
			require.NoError(t, g.Err(), "no deadline outlives its operation")
		}
		g.Begin(0)
		require.NoError(t, g.Err())
		time.Sleep(50 * 365 * 24 * time.Hour)
		require.NoError(t, g.Err(), "0 is for ever")

		abort := errors.New("it was enough")
		g.Abort(abort)
		g.Abort(errors.New("again"))
		g.End()
		require.Equal(t, abort, g.Err(), "an abort stays")
	})
}

// OnSlow's function is called once an operation, by the first wait that looks
// after the time, whether the operation has a deadline or none.
func TestGuardSlow(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		inBubble(t, func(t *testing.T) {
			var g Guard
			calls := 0
			g.OnSlow(time.Second, func() { calls++ })
			wait := func(d time.Duration) {
				require.NoError(t, g.Err())
				time.Sleep(d)
				require.NoError(t, g.Err())
			}
			wait(time.Hour)
			require.Zero(t, calls, "no operation is under way")
			for i := range 3 {
				g.Begin(timeout)
				time.Sleep(time.Hour)
				wait(999 * time.Millisecond)
				require.Equal(t, i, calls, "not yet")
				wait(time.Millisecond)
				require.Equal(t, i+1, calls)
				wait(10 * time.Second)
				require.Equal(t, i+1, calls, "once")
				g.End()
				wait(time.Hour)
			}
			g.Begin(timeout)
			wait(100 * time.Millisecond)
			g.End()
			wait(time.Hour)
			require.Equal(t, 3, calls, "the operation has ended")
			g.Begin(timeout)
			wait(100 * time.Millisecond)
			g.Begin(timeout)
			wait(999 * time.Millisecond)
			require.Equal(t, 3, calls, "Begin starts anew without End")
		})
	}
}

// Several goroutines may wait for one operation; one of them calls.
func TestGuardSlowOnce(t *testing.T) {
	var g Guard
	calls := make(chan bool, 100)
	g.OnSlow(time.Nanosecond, func() { calls <- true })
	for range 50 {
		g.Begin(time.Minute)
		var waits sync.WaitGroup
		for range 4 {
			waits.Go(func() {
				for range 100 {
					_ = g.Err()
				}
			})
		}
		waits.Wait()
		require.Len(t, calls, 1)
		<-calls
	}
}

// Every kind of wait looks at its Guard often enough for OnSlow.
func TestWaitsAreHeardOf(t *testing.T) {
	for _, kind := range []string{"local", "shared"} {
		for _, spin := range []bool{false, true} {
			slow := make(chan bool, 1)
			guard := new(Guard)
			guard.OnSlow(10*time.Millisecond, func() { slow <- true })
			how, g := Waiting{Guard: guard, Spin: spin}, Geometry{Slots: 2, SlotBytes: 8}
			p, c, err := NewLocal(g, how, how)
			require.NoError(t, err)
			if kind == "shared" {
				p, c, _ = shared(t, g, how)
			}
			for _, wait := range []func() error{
				func() error { _, _, err := c.Next(); return err },
				func() error { return flood(p) },
			} {
				guard.Begin(time.Minute)
				done := make(chan error)
				go func() { done <- wait() }()
				<-slow
				c.Fail(errBroken)
				p.Fail(errBroken)
				require.ErrorIs(t, <-done, errBroken)
				p.stop.Store(nil) // p is the next to wait
			}
		}
	}
}

// flood sends until it fails.
func flood(p *Producer) error {
	for {
		if _, err := p.Reserve(1); err != nil {
			return err
		}
		if err := p.Publish(Stamp{}); err != nil {
			return err
		}
	}
}

// An operation has waited since its clock began.
func TestWaited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		require.Zero(t, g.Waited())
		g.Begin(time.Hour)
		require.Zero(t, g.Waited(), "nothing waits yet")
		g.SetDeadline(Now() + int64(time.Hour))
		g.since.Store(Now())
		time.Sleep(3 * time.Second)
		require.Equal(t, 3*time.Second, g.Waited())
		g.Waits(Now())
		time.Sleep(time.Second)
		require.Equal(t, time.Second, g.Still(), "data have moved")
		g.Abort(ErrClosed)
		g.Waits(Now())
		require.Equal(t, time.Second, g.Still(), "a wait that ends at once is none")
		require.Equal(t, 4*time.Second, g.Waited())
	})
}

// A process that does not run, on a machine that is too busy, cannot know for how long data have not moved.
func TestStillOfAProcessThatDidNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		g.Begin(time.Minute)
		require.NoError(t, g.Err())
		g.Waits(Now())
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, g.Err())
		}
		require.Equal(t, 2*time.Second, g.Still())
		time.Sleep(600 * time.Millisecond)
		require.NoError(t, g.Err())
		require.Zero(t, g.Still())
		require.Equal(t, 2600*time.Millisecond, g.Waited())
	})
}
