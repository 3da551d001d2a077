package fifo

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var errBroken = errors.New("broken")

func noLeaks(t *testing.T) {
	t.Helper()
	opt := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, opt) })
}

// carry runs a carrier until w is closed and empty.
func carry[T any](w *Work[T], do func(*T)) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			item, err := w.Next()
			if err != nil {
				return
			}
			do(item)
			w.Done()
		}
	}()
	return func() { <-done }
}

func ExampleWork() {
	w := NewWork[int](4, nil)
	stopped := make(chan struct{})
	go func() { // the carrier
		defer close(stopped)
		for {
			n, err := w.Next()
			if err != nil {
				return
			}
			fmt.Println("carries out", *n)
			w.Done()
		}
	}()

	_, _ = w.Push(1), w.Push(2)
	w.Close()
	<-stopped
	// Output:
	// carries out 1
	// carries out 2
}

func TestWorkOrder(t *testing.T) {
	noLeaks(t)
	w := NewWork[int](4, nil)
	for i := range 4 {
		require.NoError(t, w.Push(i))
	}
	require.Equal(t, 4, w.Len())
	for i := range 2 { // the carrier may take several before the first is done
		item, err := w.Next()
		require.NoError(t, err)
		require.Equal(t, i, *item)
	}
	w.Done()
	w.Done()
	require.Equal(t, 2, w.Len())
	require.PanicsWithValue(t, "fifo: Done without Next: produced 4, consumed 2, capacity 4", func() { w.Done() })
}

func TestWorkForgetsItems(t *testing.T) {
	w := NewWork[*int](2, nil)
	require.NoError(t, w.Push(new(int)))
	item, err := w.Next()
	require.NoError(t, err)
	w.Done()
	require.Nil(t, *item)
}

func TestWorkDoesNotAllocate(t *testing.T) {
	w := NewWork[[4]int](4, nil)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = w.Push([4]int{})
		_, _ = w.Next()
		w.Done()
	}))

	var g Guard // both sides park
	w = NewWork[[4]int](1, &g)
	wait := carry(w, func(*[4]int) {})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = w.Push([4]int{})
		_ = w.Push([4]int{})
	}))
	w.Close()
	wait()
}

// Ticks come while somebody waits with a Guard, and then no more.
func TestWorkTicks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		w := NewWork[int](1, &g)
		ticking := func() bool {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.ticking
		}
		require.NoError(t, w.Push(0))
		pushed := make(chan error)
		go func() { pushed <- w.Push(1) }()
		for range 3 {
			time.Sleep(10 * tickPeriod)
			require.True(t, ticking())
		}
		_, _ = w.Next()
		w.Done()
		require.NoError(t, <-pushed)
		time.Sleep(2 * tickPeriod)
		require.False(t, ticking())
	})
}

// NewWork panics for a capacity below 1: such a ring would never take an item.
func TestNoCapacity(t *testing.T) {
	for _, capacity := range []int{0, -1} {
		require.Panics(t, func() { NewWork[int](capacity, nil) })
	}
	require.NotPanics(t, func() { NewWork[int](1, nil) })
}

// The error of a Push says how much is in the ring and why there is no room. It changes nothing.
func TestWorkErrors(t *testing.T) {
	for want, end := range map[error]func(w *Work[int], g *Guard){
		ErrDeadline: func(_ *Work[int], g *Guard) { g.SetDeadline(Now() - 1) },
		errBroken:   func(_ *Work[int], g *Guard) { g.Abort(errBroken) },
		ErrClosed:   func(w *Work[int], _ *Guard) { w.Close() },
	} {
		var g Guard
		w := NewWork[int](4, &g)
		for i := range 104 {
			require.NoError(t, w.Push(i))
			if i < 100 {
				_, err := w.Next()
				require.NoError(t, err)
				w.Done()
			}
		}
		end(w, &g)
		err := w.Push(0)
		require.ErrorIs(t, err, want)
		what := map[bool]string{true: "closed", false: "full"}[want == ErrClosed]
		require.EqualError(t, err, "work fifo "+what+": produced 104, consumed 100, capacity 4: "+want.Error())
		for i := range 4 {
			item, err := w.Next()
			require.NoError(t, err, "no Guard ends Next")
			require.Equal(t, 100+i, *item)
			w.Done()
		}
	}
}

// Without a Guard a Push waits for room alone.
func TestWorkWithoutGuard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, pushed := NewWork[int](1, nil), make(chan error, 1)
		require.NoError(t, w.Push(0))
		go func() { pushed <- w.Push(1) }()
		synctest.Wait()
		require.Empty(t, pushed)
		_, err := w.Next()
		require.NoError(t, err)
		w.Done()
		require.NoError(t, <-pushed)
	})
}
