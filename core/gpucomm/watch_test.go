// How failures on the GPU are found and named.

package gpucomm

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// mute is a group that asks nobody where the ranks are.
type mute struct{ bootstrap.Group }

func (mute) Inquire(bootstrap.Position) {}

// A kernel that finds another call of its peer ends at once, and the stream with it, before
// the ranks have found out where they parted. Verdict waits for that, and names the call,
// and the peer's if it can be asked.
func TestVerdictWaits(t *testing.T) {
	for name, theirs := range map[string]string{"asked": "rank 1 calls Broadcast #1 (count 16, float32, root 1);",
		"mute": "rank 1 another call;"} {
		t.Run(name, func(t *testing.T) {
			list, groups := gputest.GPUs(t, 2), bootstrap.Local(2)
			for r := range groups {
				if name == "mute" {
					groups[r] = mute{groups[r]}
				}
			}
			comms := openOn(t, groups, list, nil)
			memory := memories(t, list, 64)
			comms[1].chooser.Forced = call.Ring // its root waits for nobody
			require.NoError(t, comms[1].do(&call.Call{Kind: call.Broadcast, Root: 1, In: memory[1], Out: memory[1], Count: 16,
				Type: kernels.Float32}))
			comms[1].chooser.Forced = call.Auto
			for r := 1; r >= 0; r-- {
				require.NoError(t, comms[r].do(&call.Call{Kind: call.AllReduce, In: memory[r], Out: memory[r], Count: 16,
					Type: kernels.Float32}))
				require.Eventually(t, func() bool {
					started, _ := comms[r].engine.Control().Progress()
					return started == uint64(1+r)
				}, 10*time.Second, time.Millisecond)
			}
			require.NoError(t, list[0].Synchronize(0))
			err := comms[0].Verdict()
			require.ErrorIs(t, err, call.ErrMismatch)
			require.ErrorContains(t, err, "AllReduce #1: rank 0")
			require.ErrorContains(t, err, "rank 0 calls AllReduce #1 (count 16, float32, sum), "+theirs)
		})
	}
}

// If no kernel says where it was, blame names no operation, and does not wait. On a machine that stops at times one of
// five is that quick.
func TestBlameWithoutPlace(t *testing.T) {
	list := gputest.GPUs(t, 1)
	took := time.Hour
	for i := 0; i < 5 && took >= abortTime; i++ {
		g := open(t, list, nil)[0]
		start := time.Now()
		g.watch.blame(errors.New("the bridge is down"))
		took = time.Since(start)
		require.ErrorContains(t, g.Verdict(), "Comm: rank 0 on a: the bridge is down")
	}
	require.Less(t, took, abortTime, "nothing is under way")
}
