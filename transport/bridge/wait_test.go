package bridge

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
)

// A kernel of a graph comes unannounced, after any time: a bridge that is told of graphs
// finds out soon.
func TestVigilant(t *testing.T) {
	for _, vigilant := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := New(Config{Guard: new(fifo.Guard)})
			s := &sleeper{new(atomic.Uint64), 1, make(chan struct{})}
			b.asleep, b.polls = []*sleeper{s}, true
			b.Vigilant(vigilant)
			b.work.Go(b.poll)
			time.Sleep(10*time.Second + time.Microsecond)
			start := time.Now()
			s.word.Store(1)
			<-s.awake
			require.Equal(t, vigilant, time.Since(start) <= vigilSleep, "%v", time.Since(start))
			b.work.Wait()
		})
	}
}
