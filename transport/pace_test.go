package transport_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// glance is how many tries of a Waiter go by between two looks at the clock.
const glance = 16

// pauses is how often Pause returns, at most 1000 times, until it tells a wait that has lasted so long to sleep.
func pauses(t *testing.T, w *pace.Waiter, lasted time.Duration) (n int) {
	for i := 0; i == 0 || i < glance && !w.Slow; i++ { // the wait begins with the first look
		sleep, err := w.Pause()
		require.NoError(t, err)
		require.False(t, sleep)
	}
	time.Sleep(lasted)
	for n = range 1000 {
		sleep, err := w.Pause()
		require.NoError(t, err)
		if sleep {
			break
		}
	}
	return n
}

// A wait sleeps when it has spun and yielded for long enough, then after every look.
func TestPaceStages(t *testing.T) {
	long := 2*pace.Yields + time.Millisecond
	for _, spin := range []bool{false, true} {
		w := &pace.Waiter{Guard: new(fifo.Guard), Spin: spin}
		require.Equal(t, glance-1, pauses(t, w, long))
		require.False(t, w.Spin)
		sleep, err := w.Pause()
		require.NoError(t, err)
		require.True(t, sleep, "after every look")
	}
	require.Zero(t, pauses(t, &pace.Waiter{Guard: new(fifo.Guard), Slow: true}, long))
	patient := &pace.Waiter{Guard: new(fifo.Guard), Yield: time.Hour}
	require.Equal(t, 999, pauses(t, patient, long))
}

// The Guard ends a wait, also one that has just begun.
func TestPaceGuardEnds(t *testing.T) {
	over := errors.New("over")
	for _, spin := range []bool{false, true} {
		guard := new(fifo.Guard)
		guard.Abort(over)
		w := &pace.Waiter{Guard: guard, Spin: spin}
		var err error
		for range glance {
			_, err = w.Pause()
		}
		require.ErrorIs(t, err, over)
	}
}

func BenchmarkPause(b *testing.B) {
	for _, spin := range []bool{false, true} {
		b.Run(map[bool]string{false: "yields", true: "spins"}[spin], func(b *testing.B) {
			guard := new(fifo.Guard)
			for b.Loop() {
				w := pace.Waiter{Guard: guard, Spin: spin}
				for range 4 {
					w.Pause()
				}
			}
		})
	}
}
