package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// All callbacks of OnFailure get the failure, whether they were set before or after it. Left is true of the rank that
// has left, and of no other.
func TestFailureAndLeftAreHeard(t *testing.T) {
	id, _ := hubAt(t)
	groups := enter(t, id, 3, plainly)
	heard := make(chan *Failure, 4)
	groups[0].OnFailure(func(f *Failure) { heard <- f })
	groups[0].OnFailure(func(f *Failure) { heard <- f })
	require.False(t, groups[0].Left(1))
	require.NoError(t, groups[1].Close())
	require.Eventually(t, func() bool { return groups[0].Left(1) }, 10*time.Second, time.Millisecond)
	require.False(t, groups[0].Left(2))
	require.False(t, groups[0].Left(0))
	require.Empty(t, heard, "to leave is no failure")

	groups[2].Fail("out of memory")
	first, second := <-heard, <-heard
	require.Equal(t, 2, first.Rank)
	require.Contains(t, first.Error(), "out of memory")
	require.Same(t, first, second)
	groups[0].OnFailure(func(f *Failure) { heard <- f })
	require.Same(t, first, <-heard, "as it was before")
	groups[0].Close()
	groups[2].Close()
}
