package goroutine

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines that live at one time have different IDs, each its own wherever its stack is; a Set has those inside.
func TestID(t *testing.T) {
	var s, none *Set = new(Set), nil
	var mu sync.Mutex
	ids := map[uintptr]bool{}
	var all, met sync.WaitGroup
	met.Add(100)
	for i := range 100 {
		all.Go(func() {
			me := ID()
			mu.Lock()
			ids[me] = true
			mu.Unlock()
			met.Done()
			met.Wait()
			deep(1000)
			if ID() != me {
				t.Error("the ID has changed as the stack has grown")
			}
			if i%2 == 0 {
				s.Run(func() { s.Run(func() {}); none.Run(func() {}); require.True(t, s.Has()) })
			}
			if s.Has() || none.Has() {
				t.Error("a goroutine is in a Set that it has left, or never was in")
			}
		})
	}
	all.Wait()
	require.Len(t, ids, 100)
	require.Empty(t, s.in)
}

func deep(n int) (sum int) {
	var room [128]byte
	if n > 0 {
		sum = deep(n-1) + int(room[n%128])
	}
	return sum
}

func BenchmarkID(b *testing.B) {
	for b.Loop() {
		ID()
	}
}
