package ringo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
)

// Those who wait for a child hear of its parent's failure in the child's numbers, and of no rank that the child has
// not.
func TestInChild(t *testing.T) {
	members := []int{4, 1, 6}
	for _, tt := range []struct{ parent, child bootstrap.Failure }{
		{bootstrap.Failure{Rank: 6, Culprits: []int{6, 4}, Reason: "disk full"},
			bootstrap.Failure{Rank: 2, Culprits: []int{2, 0}, Reason: "disk full"}},
		{bootstrap.Failure{Rank: 2, Culprits: []int{2, 1}, Reason: "disk full"},
			bootstrap.Failure{Rank: -1, Culprits: []int{1}, Reason: "disk full"}},
		{bootstrap.Failure{Rank: -1, Reason: "nobody knows"}, bootstrap.Failure{Rank: -1, Reason: "nobody knows"}},
	} {
		before := tt.parent
		require.Equal(t, &tt.child, inChild(&tt.parent, members))
		require.Equal(t, before, tt.parent)
	}
}
