package host

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Ranks in a circle, some of them on other hosts, send to the next and receive from the one before in one group: none
// waits for the others, whatever the queues hold.
func TestCircleAcrossHosts(t *testing.T) {
	tier.Long(t)
	const n, most = 4, 32 * 14 * (512 << 10) / 16
	var sent, received [n][]byte
	for r := range n {
		sent[r], received[r] = content(r, most), make([]byte, most)
	}
	for _, near := range []int{1, 2} { // all paths go between hosts, or every second one
		for _, slots := range tier.Some(8, []int{2, 3, 4, 5, 6, 7, 11, 14}) {
			for k := 3; k <= 32; k += tier.Count(9, 3) {
				bytes := k * slots * (512 << 10) / 16 // of a queue between hosts, in 16ths
				t.Run(fmt.Sprint(near, "/", slots, "/", bytes), func(t *testing.T) {
					comms, errs := commtest.OpenAll(t, n, func(r int) ringo.Config {
						return ringo.Config{Slots: slots, HostID: fmt.Sprint(r / near % 2), Timeout: tier.Patience}
					})
					commtest.NoErrors(t, errs)
					commtest.Run(t, comms, func(c *commtest.Rank) {
						var g ringo.Group
						out, next, before := received[c.Rank()][:bytes], (c.Rank()+1)%n, (c.Rank()+n-1)%n
						clear(out)
						g.Add(c.Comm, ringo.SendOf(sent[c.Rank()][:bytes], next))
						g.Add(c.Comm, ringo.RecvOf(out, before))
						require.NoError(c, g.Run())
						require.True(c, string(out) == string(sent[before][:bytes]), "rank %d's message arrived wrong", before)
					})
				})
			}
		}
	}
}

func content(i, n int) []byte {
	period := make([]byte, 256)
	for k := range period {
		period[k] = byte(i*31 + k)
	}
	return bytes.Repeat(period, n/len(period)+1)[:n]
}

// A timeout belongs to its call, wherever this one stands in its group: it does not end others that may take
// longer, and theirs do not end it.
func TestTimeoutInGroup(t *testing.T) {
	t.Parallel()
	t.Run("passes", func(t *testing.T) {
		comms := commtest.Local(t, 3, ringo.Config{Timeout: time.Hour})
		began := time.Now()
		var g ringo.Group
		x, y := make([]byte, 8), make([]byte, 8)
		g.Add(comms[0], ringo.RecvOf(x, 1))
		late := ringo.RecvOf(y, 2)
		late.Timeout = 100 * time.Millisecond
		g.Add(comms[0], late)
		err := g.Run()
		require.ErrorIs(t, err, ringo.ErrTimeout)
		var e *ringo.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 2, e.Peer, "%v", err)
		require.Less(t, time.Since(began), tier.Patience)
	})
	t.Run("is kept", func(t *testing.T) {
		comms := commtest.Local(t, 3, ringo.Config{Timeout: time.Hour})
		taken := make(chan struct{})
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
			x := make([]byte, 8)
			switch c.Rank() {
			case 1: // as soon as it can
				defer close(taken)
				return ringo.Send(c, x, 0)
			case 2: // later than the other call may take
				<-taken
				time.Sleep(1500 * time.Millisecond)
				return ringo.Send(c, x, 0)
			}
			var g ringo.Group
			g.Add(c, ringo.RecvOf(x, 2))
			soon := ringo.RecvOf(make([]byte, 8), 1)
			soon.Timeout = time.Second
			g.Add(c, soon)
			return g.Run()
		}))
	})
}

// A message to oneself alone would wait for ever in a queue, or meet a later one: it is refused before anything
// is sent, and the communicator goes on.
func TestMessageToOneself(t *testing.T) {
	comms := commtest.Local(t, 2, ringo.Config{})
	x, y := make([]byte, 8), make([]byte, 4)
	for name, run := range map[string]func(c *ringo.Comm) error{
		"a Send alone": func(c *ringo.Comm) error { return ringo.Send(c, x, c.Rank()) },
		"a Recv alone": func(c *ringo.Comm) error { return ringo.Recv(c, x, c.Rank()) },
		"started":      func(c *ringo.Comm) error { return c.Start(ringo.SendOf(x, c.Rank())).Wait() },
		"no Recv in the group": func(c *ringo.Comm) error {
			var g ringo.Group
			g.Add(c, ringo.SendOf(x, c.Rank()))
			g.Add(c, ringo.SendOf(x, 1-c.Rank()))
			return g.Run()
		},
		"a collective between": func(c *ringo.Comm) error {
			var g ringo.Group
			g.Add(c, ringo.SendOf(x, c.Rank()))
			g.Add(c, &ringo.Call{Kind: ringo.KindBarrier})
			g.Add(c, ringo.RecvOf(x, c.Rank()))
			return g.Run()
		},
		"other lengths": func(c *ringo.Comm) error {
			var g ringo.Group
			g.Add(c, ringo.SendOf(x, c.Rank()))
			g.Add(c, ringo.RecvOf(y, c.Rank()))
			return g.Run()
		},
	} {
		for _, err := range commtest.Each(comms, run) {
			require.ErrorIs(t, err, ringo.ErrInvalid, name)
			require.ErrorContains(t, err, " itself", name)
		}
	}
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return ringo.Barrier(c) }))
}
