package pace

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
)

// pauses is how often Pause returns, at most 1000 times, until it tells a wait that has lasted so long to sleep.
func pauses(t *testing.T, w *Waiter, lasted time.Duration) (n int) {
	w.since = fifo.Now() - int64(lasted)
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
func TestStages(t *testing.T) {
	long := spinTime + Yields + time.Millisecond
	for _, spin := range []bool{false, true} {
		w := &Waiter{Guard: new(fifo.Guard), Spin: spin}
		require.Equal(t, glance-1, pauses(t, w, long))
		require.False(t, w.Spin)
		require.Zero(t, pauses(t, w, long))
	}
	require.Zero(t, pauses(t, &Waiter{Guard: new(fifo.Guard), Slow: true}, long))
	patient := &Waiter{Guard: new(fifo.Guard), Yield: time.Hour}
	require.Equal(t, 999, pauses(t, patient, long))
}

// The Guard ends a wait, also one that has just begun.
func TestGuardEnds(t *testing.T) {
	over := errors.New("over")
	for _, spin := range []bool{false, true} {
		guard := new(fifo.Guard)
		guard.Abort(over)
		w := &Waiter{Guard: guard, Spin: spin}
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
				w := Waiter{Guard: guard, Spin: spin}
				for range 4 {
					w.Pause()
				}
			}
		})
	}
}
