package gpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A kernel that waits for one last message, whichever it is, ends when its communicator does: a thread serves several
// messages, and looks for an abort only in those that are not done.
func TestAbortOfLastMessage(t *testing.T) {
	const n = 5
	for last := 1; last < n; last++ {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			comms := commtest.Local(t, n,
				ringo.Config{Devices: gputest.GPUs(t, n, gputest.Unchecked(n)), MaxBlocks: 1, Timeout: tier.Patience})
			var own ringo.Group
			for r := 1; r < n; r++ {
				x := commtest.Alloc(t, comms[0].Device(), make([]byte, 5000))
				own.Add(comms[0], &ringo.Call{Kind: ringo.KindRecv, Peer: r, Count: 5000, Type: ringo.Uint8, Out: x})
			}
			require.NoError(t, own.Run())
			for r := 1; r < n; r++ {
				if r != last {
					x := commtest.Alloc(t, comms[r].Device(), make([]byte, 5000))
					require.NoError(t, comms[r].Do(&ringo.Call{Kind: ringo.KindSend, Peer: 0, Count: 5000, Type: ringo.Uint8, In: x}))
					require.NoError(t, comms[r].Synchronize(0))
				}
			}
			comms[last].Abort(nil)
			require.ErrorIs(t, comms[0].Synchronize(0), ringo.ErrPeer)
		})
	}
}
