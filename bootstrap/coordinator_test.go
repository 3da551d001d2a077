package bootstrap

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// An observer is an outside that notes what it is asked. A host of its third rank acknowledges what is sent.
type observer struct {
	local
	reached []time.Duration // the time for each try to reach a host
	blames  []Failure
}

func (o *observer) tell([]int, message) {}
func (o *observer) failed(f Failure)    { o.blames = append(o.blames, f) }
func (o *observer) hears(rank int) bool { return rank == 2 }

func (o *observer) reach(ctx context.Context, rank int) bool {
	end, _ := ctx.Deadline()
	o.reached = append(o.reached, time.Until(end))
	<-ctx.Done()
	return false
}

// A coordinator runs timers, tries to reach hosts for as long as the machine says, and tells it what came of that.
// After its end nothing happens.
func TestCoordinatorObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{}
		r := newCoordinator(rendezvous.Config{Size: 4, Hosts: []int{0}, Land: rendezvous.Land{Places: []int{0, 1, 2, 3},
			Addresses: []string{"", "there", "there", "there"}}}, o)
		r.feed(rendezvous.Unheard{Rank: 1, Why: "silence"})
		require.True(t, r.hear(0, &rendezvous.Knocked{Stage: 1}))
		require.True(t, r.hear(3, &rendezvous.Knocked{Stage: 1}))
		time.Sleep(3 * time.Second) // rank 2 says nothing
		synctest.Wait()
		require.Equal(t, []time.Duration{rendezvous.KnockTime}, o.reached, "one host acknowledges nothing")
		require.True(t, r.hear(3, &rendezvous.Knocked{Stage: 2, Heard: []bool{false}}))
		require.Empty(t, o.blames)
		time.Sleep(rendezvous.KnockTime)
		synctest.Wait()
		require.Len(t, o.blames, 1)
		require.Equal(t, []int{1}, o.blames[0].Culprits)

		require.True(t, r.hear(2, &rendezvous.Fail{Reason: "enough"}))
		require.False(t, r.hear(2, &rendezvous.Bye{}))
		r.end()
		r.lost(3, "killed")
		time.Sleep(time.Hour)
		r.waitSettled()
		r.tasks.Wait()
		require.Len(t, o.blames, 1)
		require.False(t, r.machine.Gone(3))
	})
}
