package fifo

import (
	"errors"
	"fmt"
	"sync"
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

func TestWorkWaitsEnd(t *testing.T) {
	past := func(g *Guard) { g.SetDeadline(Now() - 1) }
	soon := func(g *Guard) { g.SetDeadline(Now() + int64(10*time.Millisecond)) }
	abort := func(g *Guard) { g.Abort(errBroken) }
	later := func(g *Guard) { time.AfterFunc(10*time.Millisecond, func() { g.Abort(errBroken) }) }
	for _, tc := range []struct {
		name string
		end  func(*Guard)
		is   error
	}{
		{"deadline passed", past, ErrDeadline},
		{"deadline to come", soon, ErrDeadline},
		{"aborted", abort, errBroken},
		{"abort to come", later, errBroken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
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
			tc.end(&g)
			err := w.Push(0)
			require.ErrorIs(t, err, tc.is)
			require.EqualError(t, err, "work fifo full: produced 104, consumed 100, capacity 4: "+tc.is.Error())
			require.Equal(t, 4, w.Len(), "a wait that fails changes nothing")
			for i := range 4 {
				item, err := w.Next()
				require.NoError(t, err, "no Guard ends Next")
				require.Equal(t, 100+i, *item)
				w.Done()
			}
		})
	}
}

func TestWorkClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := NewWork[int](2, nil)
		require.NoError(t, w.Push(1))
		require.NoError(t, w.Push(2))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				err := w.Push(3)
				require.ErrorIs(t, err, ErrClosed)
				require.EqualError(t, err, "work fifo closed: produced 2, consumed 0, capacity 2: connection closed")
			})
		}
		synctest.Wait()
		w.Close()
		w.Close()
		wg.Wait()
		for i := range 2 {
			item, err := w.Next()
			require.NoError(t, err)
			require.Equal(t, i+1, *item)
			w.Done()
		}
		_, err := w.Next()
		require.ErrorIs(t, err, ErrClosed)
	})
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

func BenchmarkWork(b *testing.B) {
	b.Run("push, next, done by one goroutine", func(b *testing.B) {
		w := NewWork[[8]uint64](64, nil)
		for b.Loop() {
			_ = w.Push([8]uint64{})
			_, _ = w.Next()
			w.Done()
		}
	})
	b.Run("to the carrier", func(b *testing.B) {
		var g Guard
		w := NewWork[[8]uint64](64, &g)
		wait := carry(w, func(*[8]uint64) {})
		for b.Loop() {
			_ = w.Push([8]uint64{})
		}
		w.Close()
		wait()
	})
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
