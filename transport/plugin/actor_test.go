package plugin

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is posted is carried out in order, one at a time, also after a function that was given up.
func TestActor(t *testing.T) {
	var a actor
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	block, undone := make(chan struct{}), make(chan int)
	var n int
	err := a.do(ctx, func() error { <-block; n++; return nil })
	require.EqualError(t, err, "the plugin has not returned from its function: no more")
	a.post(func() { undone <- n })
	close(block)
	require.Equal(t, 1, <-undone)
}

// No wish is lost, however the actor comes to rest, and no two goroutines run at once.
func TestActorWishes(t *testing.T) {
	var a actor
	var wished, met, there atomic.Int64
	a.work = func() bool {
		if there.Add(1) != 1 {
			t.Error("two at once")
		}
		defer there.Add(-1)
		met.Store(wished.Load())
		return false
	}
	for range 20_000 {
		n := wished.Add(1)
		a.ask()
		if n%7 == 0 {
			require.NoError(t, a.do(t.Context(), func() error { return nil }))
		}
	}
	n := wished.Add(1)
	a.ask()
	for met.Load() != n {
	}
}
