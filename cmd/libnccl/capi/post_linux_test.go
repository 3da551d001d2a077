package capi

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// TestPostGivenUp: if one rank gives up, the others close the pairs that they have already connected.
func TestPostGivenUp(t *testing.T) {
	comms, err := ringo.OpenLocal(3, ringo.Config{Transport: "socket"})
	require.NoError(t, err)
	before := openFiles(t)
	var all sync.WaitGroup
	for _, c := range comms[1:] {
		all.Go(func() {
			_, err := openPost(t.Context(), c, ringo.Config{Transport: "socket"})
			require.Error(t, err)
		})
	}
	for range 2 { // ranks 1 and 2 are a pair
		_, err := comms[0].SplitWith(t.Context(), ringo.NoColor, 0, ringo.Config{Transport: "socket"})
		require.NoError(t, err)
	}
	comms[0].Abort(errors.New("enough"))
	all.Wait()
	require.LessOrEqual(t, openFiles(t), before)
	for _, c := range comms {
		c.Close()
	}
}

func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
