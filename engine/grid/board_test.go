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
			mail, bytes, _ := b.Links(from, memory).Mail()
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
	for n := 1; n <= 64; n *= 2 {
		testApart(t, DefaultBoard(n))
	}
	_, err := DefaultBoard(2).Links(0, make([]uint64, 2)).Send(2)
	require.EqualError(t, err, "grid: rank 2: there are 2")
}

// testApart: where queues lie apart, both ends mean the same memory, and the pieces that are
// brought for some lanes hold those lanes' queues.
func testApart(t *testing.T, b Board) {
	n := b.Ranks
	memory, queues := make([]uint64, n), make([]uint64, n)
	for r := range n {
		memory[r], queues[r] = uint64(r+1)<<40, uint64(r+1)<<50
	}
	type span struct{ begin, end uint64 }
	for from := range sched.Rank(min(n, 8)) {
		for to := range sched.Rank(n) {
			var brought []span
			bring := func(owner sched.Rank, piece int) error {
				at := queues[owner]
				for _, bytes := range b.Pieces(owner)[:piece] {
					at += uint64(bytes)
				}
				brought = append(brought, span{at, at + uint64(b.Pieces(owner)[piece])})
				return nil
			}
			s, err := b.LinksApart(from, memory, queues, bring).Send(to)
			require.NoError(t, err)
			r, err := b.LinksApart(to, memory, queues, bring).Recv(from)
			require.NoError(t, err)
			require.Equal(t, s.Queues, r.Queues)
			require.Zero(t, s.Queues%PageBytes)
			for _, lanes := range []int{1, 2, s.Lanes} {
				for _, need := range []func(int) error{s.Need, r.Need} {
					brought = nil
					require.NoError(t, need(lanes))
					begin, end := s.Queues, s.Queues+uint64(lanes*s.QueueBytes())
					for _, piece := range brought {
						require.LessOrEqual(t, piece.begin, begin)
						begin = max(begin, piece.end)
					}
					require.GreaterOrEqual(t, begin, end, "%d lanes from %d to %d", lanes, from, to)
				}
			}
		}
	}
}
