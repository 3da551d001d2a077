package paths

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Slots of a network are larger than those inside a host, unless somebody has set their size.
func TestWidth(t *testing.T) {
	for _, test := range []struct {
		slotBytes int
		want      []int // of rank 0, to each rank
	}{{0, []int{1, 4, 1, 4}}, {4096, []int{1, 1, 1, 1}}} {
		hosts := []string{"a", "b", "a", "b"}
		nets, errs := make([]*Net, len(hosts)), make([]error, len(hosts))
		var ranks sync.WaitGroup
		for r, g := range bootstrap.Local(len(hosts)) {
			ranks.Go(func() {
				cfg := Config{SlotBytes: test.slotBytes, Slots: 8, Cores: 1, Networking: transport.NetworkOptions{Interface: "lo"}}
				me := Profile{Info: transport.Info{Rank: r, Host: hosts[r]}, Hostname: hosts[r]}
				nets[r], errs[r] = Connect(t.Context(), g, me, cfg, new(fifo.Guard), discard)
				t.Cleanup(func() { require.NoError(t, g.Close()) })
			})
		}
		ranks.Wait()
		require.NoError(t, errors.Join(errs...))
		for peer, want := range test.want {
			require.Equal(t, want, nets[0].Links.Width(sched.Rank(peer)))
		}
		for _, n := range nets {
			require.NoError(t, n.Close())
		}
	}
}
