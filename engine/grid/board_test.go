package grid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/sched"
)

// TestBoard: both ends of a connection mean the same memory, all parts of a
// board are apart, and it is no larger than it may be.
func TestBoard(t *testing.T) {
	for n := 1; n <= 8; n++ {
		b := DefaultBoard(n)
		require.LessOrEqual(t, b.Bytes(), boardBytes(n), "%d ranks", n)
		memory := make([]uint64, n)
		for r := range memory {
			memory[r] = uint64(r+1) << 40
		}
		used := map[uint64]int{} // where something begins, and its length
		for r := range n {
			used[memory[r]] = n * SignBytes
		}
		at := func(p uint64, n int) {
			require.NotContains(t, used, p)
			used[p] = n
		}
		for from := range sched.Rank(n) {
			require.Equal(t, memory, b.Links(from, memory).Signs())
			mail, bytes := b.Links(from, memory).Mail()
			require.Equal(t, b.MailBytes, bytes)
			if from == 0 {
				for r, p := range mail {
					at(p, bytes)
					at(b.Links(from, memory).Gates()[r], GateBytes)
				}
			}
			for to := range sched.Rank(n) {
				s, err := b.Links(from, memory).Send(to)
				require.NoError(t, err)
				r, err := b.Links(to, memory).Recv(from)
				require.NoError(t, err)
				require.Equal(t, End{Geometry: s.Geometry, Queues: s.Queues, Post: s.Seen, Seen: s.Post}, r)
				require.Equal(t, b.Geometry(from, to), s.Geometry)
				at(s.Queues, s.Bytes())
				at(s.Post, s.Lanes*LaneStride)
				at(s.Seen, s.Lanes*LaneStride)
			}
		}
		for p, n := range used {
			begin := p &^ (1<<40 - 1)
			require.LessOrEqual(t, p+uint64(n), begin+uint64(b.Bytes()))
			for q := range used {
				require.False(t, p < q && q < p+uint64(n), "%#x + %d reaches %#x", p, n, q)
			}
		}
	}
	_, err := DefaultBoard(2).Links(0, make([]uint64, 2)).Send(2)
	require.EqualError(t, err, "grid: rank 2: there are 2")
}
