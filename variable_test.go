package ringo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a communicator keeps for the next call of a Scan does not hold the memory of the last one.
func TestSparesForgetMemory(t *testing.T) {
	comms := local(t, 2, Config{})
	noErrors(t, each(comms, func(c *Comm) error { return Scan(c, make([]int32, 3), Sum) }))
	for _, c := range comms {
		require.NotEmpty(t, c.spare.data)
		require.Equal(t, [2]Call{}, c.spare.calls)
	}
}
