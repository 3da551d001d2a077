package bridge

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A kernel of a graph starts unannounced, at any time: a vigilant bridge soon sees its slots.
func TestVigilant(t *testing.T) {
	for _, vigilant := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := New(Config{Guard: new(fifo.Guard)})
			s := newSleeper(new(atomic.Uint64))
			s.n = 1
			b.asleep, b.polls = []*sleeper{s}, true
			b.Vigilant(vigilant)
			b.work.Go(b.poll)
			time.Sleep(10*time.Second + time.Microsecond)
			start := time.Now()
			s.word.Store(1)
			<-s.awake
			require.Equal(t, vigilant, time.Since(start) <= vigilSleep, "%v", time.Since(start))
			require.NoError(t, b.Close())
		})
	}
}

// Many waits share one polling goroutine, and waiting takes nothing from the heap.
func TestOnePolls(t *testing.T) {
	b := New(Config{Guard: new(fifo.Guard)})
	const lanes, turns = 5, 200
	words, done := make([]*sleeper, lanes), make(chan error, lanes)
	for i := range words {
		words[i] = newSleeper(new(atomic.Uint64))
		go func() {
			var err error
			for n := range uint64(turns) {
				err = errors.Join(err, b.await(words[i], n+1))
			}
			done <- err
		}()
	}
	for n := range uint64(turns) {
		for _, w := range words {
			w.word.Store(n + 1)
		}
	}
	for range words {
		require.NoError(t, <-done)
	}
	s := newSleeper(new(atomic.Uint64))
	n := uint64(0)
	other := make(chan bool)
	go func() {
		for range other {
			s.word.Add(1)
		}
	}()
	if !tier.Race {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			n++
			other <- true
			require.NoError(t, b.await(s, n))
		}))
	}
	close(other)
	require.NoError(t, b.Close())
	require.ErrorIs(t, b.await(s, 1<<40), fifo.ErrClosed, "after the end")
	b.work.Wait()
}
