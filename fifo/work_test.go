package fifo

import (
	"errors"
	"fmt"
	"math"
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
func carry[T any](w *Work[T], do func(*T) error) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			item, err := w.Next()
			if err != nil {
				return
			}
			w.Done(do(item))
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
			if *n < 0 {
				w.Done(errors.New("negative"))
			} else {
				w.Done(nil)
			}
		}
	}()

	good, _ := w.Push(1)
	bad, _ := w.Push(-1)
	fmt.Println(good.Wait(nil), bad.Wait(nil))
	w.Close()
	<-stopped
	// Output: <nil> negative
}

func TestWorkResults(t *testing.T) {
	noLeaks(t)
	w := NewWork[int](4, nil)
	push := func() Token { tok, err := w.Push(0); require.NoError(t, err); return tok }
	a, b := push(), push()
	group, n, err := w.PushSome([]int{1, 2, 3})
	require.NoError(t, err)
	require.Equal(t, 2, n, "as many as there is room for")
	require.Equal(t, 4, w.Len())
	require.False(t, a.Done())

	for range 4 {
		_, err := w.Next()
		require.NoError(t, err)
	}
	w.Done(nil)
	w.Done(errBroken)
	w.Done(nil)
	require.True(t, b.Done())
	require.False(t, group.Done())
	w.Done(errBroken)
	require.Zero(t, w.Len())

	for range 2 { // a result can be asked for again
		require.NoError(t, a.Wait(nil))
		require.ErrorIs(t, b.Wait(nil), errBroken)
		require.ErrorIs(t, group.Wait(nil), errBroken)
		require.NoError(t, Token{}.Wait(nil))
	}
	require.PanicsWithValue(t, "fifo: Done without Next: produced 4, consumed 4, capacity 4", func() { w.Done(nil) })
}

func TestWorkWaitsEnd(t *testing.T) {
	past := func(g *Guard) { g.SetDeadline(Now() - 1) }
	soon := func(g *Guard) { g.SetDeadline(Now() + int64(10*time.Millisecond)) }
	abort := func(g *Guard) { g.Abort(errBroken) }
	later := func(g *Guard) { time.AfterFunc(10*time.Millisecond, func() { g.Abort(errBroken) }) }
	const full = "work fifo full: produced 104, consumed 100, capacity 4: "
	const late = "work fifo: item 103 not done: produced 104, consumed 100, capacity 4: "
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
			var last Token
			for i := range 104 {
				last, _ = w.Push(i)
				if i < 100 {
					_, err := w.Next()
					require.NoError(t, err)
					w.Done(nil)
				}
			}
			tc.end(&g)
			_, err := w.Push(0)
			require.ErrorIs(t, err, tc.is)
			require.EqualError(t, err, full+tc.is.Error())
			_, n, err := w.PushSome([]int{1, 2, 3})
			require.EqualError(t, err, full+tc.is.Error())
			require.Zero(t, n)
			require.EqualError(t, last.Wait(&g), late+tc.is.Error())
			require.Equal(t, 4, w.Len(), "a wait that fails changes nothing")
			for i := range 4 {
				item, err := w.Next()
				require.NoError(t, err, "no Guard ends Next")
				require.Equal(t, 100+i, *item)
				w.Done(nil)
			}
			require.NoError(t, last.Wait(&g), "what is done is done")
		})
	}
}

// A carrier like a device: it is told of each launch and signals each launch.
func TestWorkLaunches(t *testing.T) {
	noLeaks(t)
	var g Guard
	g.SetDeadline(Now() + int64(time.Minute))
	w := NewWork[int](4, &g)
	launches := make(chan Token, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for t := range launches {
			w.Complete(t, nil)
			w.Complete(t, errBroken) // again: nothing
		}
	})
	items, parts := make([]int, 1000), 0
	var toks []Token
	for len(items) > 0 {
		tok, n, err := w.PushSome(items)
		require.NoError(t, err)
		require.LessOrEqual(t, n, 4)
		launches <- tok
		toks, items, parts = append(toks, tok), items[n:], parts+1
	}
	for _, tok := range toks {
		require.NoError(t, tok.Wait(&g))
	}
	close(launches)
	wg.Wait()
	require.GreaterOrEqual(t, parts, 250)
	require.Equal(t, uint64(1000), w.consumed)
	require.Panics(t, func() { NewWork[int](1, nil).Complete(toks[0], nil) })
}

func TestWorkClose(t *testing.T) {
	noLeaks(t)
	w := NewWork[int](2, nil)
	in, _, err := w.PushSome([]int{1, 2})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 3 { // one waits for room, two for their turn
		wg.Go(func() {
			_, err := w.Push(3)
			require.ErrorIs(t, err, ErrClosed)
			require.EqualError(t, err, "work fifo closed: produced 2, consumed 0, capacity 2: connection closed")
		})
	}
	time.Sleep(5 * time.Millisecond)
	w.Close()
	w.Close()
	wg.Wait()
	for i := range 2 {
		item, err := w.Next()
		require.NoError(t, err)
		require.Equal(t, i+1, *item)
		w.Done(errBroken)
	}
	_, err = w.Next()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, in.Wait(nil), errBroken)
}

func TestWorkForgetsItems(t *testing.T) {
	w := NewWork[*int](2, nil)
	_, err := w.Push(new(int))
	require.NoError(t, err)
	item, err := w.Next()
	require.NoError(t, err)
	w.Done(nil)
	require.Nil(t, *item)
}

func TestWorkDoesNotAllocate(t *testing.T) {
	w := NewWork[[4]int](4, nil)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		tok, _ := w.Push([4]int{})
		_, _ = w.Next()
		w.Done(nil)
		_ = tok.Wait(nil)
	}))

	var g Guard // both sides park
	w = NewWork[[4]int](1, &g)
	wait := carry(w, func(*[4]int) error { return nil })
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = w.Push([4]int{})
		tok, _ := w.Push([4]int{})
		_ = tok.Wait(&g)
	}))
	w.Close()
	wait()
}

type sliceError []int

func (sliceError) Error() string { return "not comparable" }

func TestFailures(t *testing.T) {
	var f failures
	f.add(3, 4, errBroken)
	f.add(4, 9, errBroken)
	require.Len(t, f.runs, 1, "one cause is one entry")
	f.add(10, 11, errBroken)
	f.add(11, 12, sliceError{1})
	f.add(12, 13, sliceError{1})
	require.Len(t, f.runs, 4)
	for _, tc := range []struct {
		first, end uint64
		want       error
	}{
		{0, 3, nil}, {0, 4, errBroken}, {3, 4, errBroken}, {8, 9, errBroken}, {9, 10, nil},
		{9, 20, errBroken}, {12, 13, sliceError{1}}, {13, 99, nil},
	} {
		require.Equal(t, tc.want, f.of(tc.first, tc.end), "[%d,%d)", tc.first, tc.end)
	}
	for i := range uint64(2 * maxFailures) {
		f.add(20+2*i, 21+2*i, errBroken)
	}
	require.LessOrEqual(t, len(f.runs), maxFailures)
	require.ErrorContains(t, f.of(3, 4), "result of item 3 forgotten")
	require.NoError(t, f.of(math.MaxUint32, math.MaxUint32+1))
	require.Equal(t, errBroken, f.of(20+2*(2*maxFailures-1), 1e9))
}

func BenchmarkWork(b *testing.B) {
	b.Run("push, next, done, wait by one goroutine", func(b *testing.B) {
		w := NewWork[[8]uint64](64, nil)
		for b.Loop() {
			tok, _ := w.Push([8]uint64{})
			_, _ = w.Next()
			w.Done(nil)
			_ = tok.Wait(nil)
		}
	})
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("round trip to the carrier, %d at a time", n), func(b *testing.B) {
			var g Guard
			w := NewWork[[8]uint64](64, &g)
			wait := carry(w, func(*[8]uint64) error { return nil })
			group := make([][8]uint64, n)
			for b.Loop() {
				tok, _, _ := w.PushSome(group)
				_ = tok.Wait(&g)
			}
			w.Close()
			wait()
		})
	}
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
		tok, _ := w.Push(0)
		waited := make(chan error)
		go func() { waited <- tok.Wait(&g) }()
		for range 3 {
			time.Sleep(10 * tickPeriod)
			require.True(t, ticking())
		}
		_, _ = w.Next()
		w.Done(nil)
		require.NoError(t, <-waited)
		time.Sleep(2 * tickPeriod)
		require.False(t, ticking())
	})
}
