package life

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
)

// The watcher of a GPU asks about calls while the rank goes on to number others.
func TestNumbersWhileAsked(t *testing.T) {
	var turn Turn
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range uint32(1000) {
			turn.Next(call.Sign{Kind: call.AllReduce, Count: int(n) + 1}.Stamp(), Collective, false)
		}
	})
	wg.Go(func() {
		for range 1000 {
			for _, c := range turn.position(true).Calls {
				if s := sign(c.Call); uint64(s.Seq) != c.Number || s.Count != int(c.Number) {
					t.Errorf("number %d is %+v", c.Number, s)
				}
			}
		}
	})
	wg.Wait()
	require.Equal(t, uint32(1000), turn.Seq())
}

// Stamps carry 32 bits of a number and never 0; what ranks compare goes on growing.
func TestNumbersWrap(t *testing.T) {
	for _, first := range []uint64{0, 1<<32 - 20, 3 * (1<<32 - 1), 1 << 40} {
		var turn Turn
		turn.Skip(first)
		send := call.Sign{Kind: call.Send, Count: 1}.Stamp()
		for n := first + 1; n <= first+2*depth; n++ {
			s := turn.Next(call.Sign{Kind: call.AllReduce, Count: 1}.Stamp(), Collective, false)
			require.Equal(t, turn.Seq(), call.ReadSign(s).Seq)
			require.NotZero(t, turn.Seq())
			require.Equal(t, send, turn.Next(send, 1, false), "a message has no number")
			require.Equal(t, n, turn.number(turn.Seq()))
			if n > first+depth {
				require.Equal(t, n-depth, turn.number(stamped(n-depth)), "an earlier one")
			}
			require.Equal(t, n+depth, turn.number(stamped(n+depth)), "a later one: graphs are ahead")
			require.Zero(t, turn.number(0))
		}
		p := turn.position(true)
		require.Len(t, p.Calls, depth)
		for i, c := range p.Calls {
			require.Equal(t, first+depth+uint64(i)+1, c.Number)
			require.Equal(t, stamped(c.Number), sign(c.Call).Seq)
		}
		calls, total := turn.history()
		require.Equal(t, first+4*depth, total)
		require.Len(t, calls, depth)
		require.Equal(t, first+2*depth, calls[depth-2].Number)
		require.Zero(t, calls[depth-1].Number)
	}
}

// The turn goes to who has waited longest. Who gives up is left out, but for Keep's function, which comes in its place.
func TestTurnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn Turn
		var order []int
		require.NoError(t, turn.Lock(t.Context()))
		require.ErrorIs(t, turn.Lock(t.Context()), call.ErrInvalid)
		gone, cancel := context.WithCancel(t.Context())
		kept, giveUp := context.WithCancel(t.Context())
		for i := range 6 {
			note := func() error { order = append(order, i); return nil }
			switch i {
			case 1:
				go func() { require.ErrorIs(t, turn.Lock(gone), context.Canceled) }()
			case 2:
				go func() { require.ErrorIs(t, turn.Keep(kept, note), context.Canceled) }()
			default:
				go func() { require.NoError(t, turn.Keep(t.Context(), note)) }()
			}
			synctest.Wait()
		}
		cancel()
		giveUp()
		synctest.Wait()
		require.False(t, turn.TryLock())
		turn.Unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 2, 3, 4, 5}, order)
		require.True(t, turn.TryLock())
	})
}

// One goroutine at a time has the turn, and nobody who waits is forgotten, also where some give up.
func TestTurnByMany(t *testing.T) {
	var turn Turn
	var held, had int
	inside := func() error {
		if held++; held != 1 {
			t.Error("two have the turn")
		}
		had, held = had+1, held-1
		return nil
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 2000 {
				ctx, cancel := context.WithCancel(t.Context())
				if (n+i)%3 == 0 {
					go cancel()
				}
				err := turn.Lock(ctx)
				if err == nil {
					inside()
					turn.Unlock()
				}
				if err = errors.Join(err, turn.Keep(ctx, inside)); errors.Is(err, call.ErrInvalid) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	require.NoError(t, turn.Lock(t.Context())) // behind those that were kept
	require.GreaterOrEqual(t, had, 8*2000)
	require.Zero(t, turn.Waiting())
}
