package ringo

import (
	"errors"
	"fmt"
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

// Errors of a communicator and of its parts can be told apart: by what History calls them, and by their names.
func TestErrorsOfParts(t *testing.T) {
	comms := local(t, 4, Config{})
	noErrors(t, each(comms, func(c *Comm) error {
		part, err := c.SplitWith(t.Context(), c.Rank()%2, 0, Config{Name: fmt.Sprint("part ", c.Rank()%2)})
		if err != nil {
			return err
		}
		defer part.Close()
		e, _ := errors.AsType[*Error](part.Do(nil))
		require.Equal(t, part.History().Comm, e.Comm)
		require.ErrorContains(t, e, fmt.Sprintf("no operation of part %d: rank %d", c.Rank()%2, c.Rank()/2))
		whole, _ := errors.AsType[*Error](c.Do(nil))
		require.Equal(t, c.History().Comm, whole.Comm)
		require.NotEqual(t, whole.Comm, e.Comm)
		return nil
	}))
}
