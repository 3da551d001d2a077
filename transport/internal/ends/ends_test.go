package ends

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type end struct {
	set    *Set[*end]
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
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[*end]()
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
