package gpu

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Messages of as many communicators as docs/gpu-inside.md promises end, long ones by slots and
// short ones by notes, called in rotated orders beside a kernel that has what is left of
// the GPU. A block of these kernels has messages of several peers, and each rank deals
// them out to blocks in its own way, so all blocks of a kernel have to run at once: its
// communicator's share of the GPU is room for them.
func TestMessagesSideBySide(t *testing.T) {
	tier.Long(t)
	slots := crowdBytes / 4
	if !tier.Pairs() {
		slots = 8 << 10
	}
	for name, n := range map[string]int{"slots": slots, "notes": 900} {
		t.Run(name, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Unchecked(2))
			w := newCrowd(t, list, choice.Communicators, 4*n, ringo.Config{Timeout: tier.Soon(20 * time.Second)})
			exchange := func(i, r int) {
				l, g := w.comms[i][r], ringo.NewGroup()
				require.NoError(t, l.d.Set(l.x.Ptr(), byte(10*i+r+1), 4*n, l.stream))
				for k := range 2 { // to itself, and to the other rank
					peer := (r + k) % 2
					g.Add(l.c, &ringo.Call{Kind: ringo.KindSend, In: l.x.Slice(0, n), Count: n, Type: ringo.Uint8, Peer: peer,
						Stream: l.stream})
					g.Add(l.c, &ringo.Call{Kind: ringo.KindRecv, Out: l.x.Slice((1+k)*n, n), Count: n, Type: ringo.Uint8, Peer: peer,
						Stream: l.stream})
				}
				require.NoError(t, g.Run())
			}
			for i := range w.comms { // connects, while nothing is held
				for r := range list {
					exchange(i, r)
				}
			}
			synchronize := func() {
				for i, c := range w.comms {
					for r, l := range c {
						require.NoError(t, l.c.Synchronize(l.stream), "communicator %d, rank %d", i, r)
						want := append(bytes.Repeat([]byte{byte(10*i + r + 1)}, n), bytes.Repeat([]byte{byte(10*i + 2 - r)}, n)...)
						require.Equal(t, want, commtest.Read(t, l.d, l.x.Slice(n, 2*n)), "communicator %d, rank %d", i, r)
					}
				}
			}
			synchronize()
			h := newHolder(t, list[0])
			defer h.letGo()
			for _, d := range list {
				h.hold(d, commtest.Stream(t, d), processors(t, d))
			}
			for r := range list {
				for i := range w.comms {
					exchange((i+r*len(w.comms)/2)%len(w.comms), r)
				}
			}
			synchronize()
		})
	}
}
