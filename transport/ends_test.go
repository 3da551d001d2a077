package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport/internal/ends"
)

type end struct {
	set    *ends.Set[*end]
	closes int
}

func (e *end) Close() error {
	e.closes++
	e.set.Forget(e)
	e.set.Go(func() { time.Sleep(time.Second) }) // says its last words
	return nil
}

// Close closes what was kept and not forgotten, and waits for what runs in the background; so does
// a second Close.
func TestEndsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ends.New[*end](0)
		kept, forgotten, late := &end{set: s}, &end{set: s}, &end{set: s}
		require.True(t, s.Keep(kept))
		require.True(t, s.Keep(forgotten))
		s.Forget(forgotten)
		require.Equal(t, []*end{kept}, s.Append(nil))
		require.True(t, s.Enter())
		begun := time.Now()
		closes := func() time.Duration {
			if s.Shut() {
				s.Close()
				s.Wait()
			}
			return time.Since(begun)
		}
		second := make(chan time.Duration)
		go func() {
			<-s.Away()
			second <- closes()
		}()
		time.AfterFunc(3*time.Second, s.Leave)
		require.Equal(t, 3*time.Second, closes())
		require.Equal(t, 3*time.Second, <-second)
		require.Equal(t, []int{1, 0, 0}, []int{kept.closes, forgotten.closes, late.closes})
		require.False(t, s.Keep(late))
		require.False(t, s.Enter())
		require.False(t, s.Go(func() { t.Error("ran after Wait") }))
		require.True(t, s.Closed())
	})
}

// Linger waits as long as the peer takes something now and then, and its limit after that.
func TestEndsLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lingers := func(ask func() (int, bool)) time.Duration {
			begun := time.Now()
			ends.Linger(time.Millisecond, ends.LingerTime, ask)
			return time.Since(begun)
		}
		require.Zero(t, lingers(func() (int, bool) { return 0, false }))
		require.Zero(t, lingers(func() (int, bool) { return 5, true }))
		require.Equal(t, ends.LingerTime, lingers(func() (int, bool) { return 5, false }))
		begun := time.Now()
		take := func(least int) func() (int, bool) { // one in ends.LingerTime/2
			return func() (int, bool) { return max(least, 5-int(2*time.Since(begun)/ends.LingerTime)), false }
		}
		require.Equal(t, 5*ends.LingerTime/2, lingers(take(0)))
		begun = time.Now()
		require.Equal(t, 3*ends.LingerTime/2+ends.LingerTime, lingers(take(2)))
	})
}
