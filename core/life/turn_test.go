package life

import (
	"sync"
	"testing"

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
