package sched_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/sched"
)

// The parts of a composition have all steps in order, and no part of an all-reduce across nodes
// has scratch of an earlier one. Each stays among ranks of a node, or of a column.
func TestPhases(t *testing.T) {
	const nodes, local = 3, 2
	order := []sched.Rank{0, 3, 1, 4, 2, 5}
	node := map[sched.Rank]int{0: 0, 3: 0, 1: 1, 4: 1, 2: 2, 5: 2}
	whole := sched.Relabel(hier.AllReduce(ring.ReduceScatter{N: local}, ring.AllReduce{N: nodes},
		ring.AllGather{N: local}), order)
	parts := sched.Phases(whole)
	require.Len(t, parts, 3)
	for r := range sched.Rank(nodes * local) {
		at := 0
		for k, p := range parts {
			require.Equal(t, whole.Shape(), p.Shape())
			require.Positive(t, p.Len(r))
			for i := range p.Len(r) {
				step := p.At(r, i)
				require.Equal(t, whole.At(r, at), step)
				if to := step.Send; to != sched.Nobody {
					require.Equal(t, k != 1, node[to] == node[r], "part %d sends from %d to %d", k, r, to)
				}
				at++
			}
		}
		require.Equal(t, whole.Len(r), at)
	}
	flat := ring.AllReduce{N: 4}
	require.Equal(t, []sched.Schedule{flat}, sched.Phases(flat))
}
