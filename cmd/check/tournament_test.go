package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each pair of hosts meets once, pairs of a round have no host in common, and the time of 1,000
// hosts is bounded.
func TestTournament(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 8, 15, 16, 127, 1000, 1001} {
		p := planTournament(n, 8*time.Minute)
		met := make([]bool, n*n)
		pairs := 0
		for round := range p.Rounds {
			for a := range n {
				b := p.Peer(a, round)
				switch {
				case b < 0 && n%2 == 1:
				case b < 0 || a == b || p.Peer(b, round) != a || a < b && met[a*n+b]:
					t.Fatalf("%d hosts, round %d: host %d meets %d", n, round, a, b)
				case a < b:
					met[a*n+b] = true
					pairs++
				}
			}
		}
		require.Equal(t, max(0, n*(n-1)/2), pairs)
		require.LessOrEqual(t, p.Time(), 8*time.Minute)
	}
	p := planTournament(1000, networkShare(10*time.Minute))
	require.LessOrEqual(t, p.Time(), 10*time.Minute)
	require.Less(t, phasesOf(p.Slot, 1).total(), p.Slot, "what a pair does does not fit into its slot")
	require.GreaterOrEqual(t, phasesOf(p.Slot, 1).stream, 50*time.Millisecond)
}
