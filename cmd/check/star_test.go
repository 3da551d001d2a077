package check

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A rank that is late comes to all the gathers of a stage that were held without it, and is not lost.
func TestLateRankKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := local("a", "b")
		for i, j := range jobs {
			jobs[i] = j.enter("host")
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		const gathers = 30
		for range gathers {
			_, err := jobs[0].Gather(over, []byte("a's"))
			require.NoError(t, err)
		}
		synctest.Wait()
		for range gathers {
			parts, err := jobs[1].Gather(t.Context(), []byte("b's"))
			require.NoError(t, err)
			require.Equal(t, "a's", string(parts[0]))
		}
		synctest.Wait()
		ended := make(chan error)
		go func() {
			_, err := jobs[1].conclude(t.Context(), []byte("b's"))
			ended <- err
		}()
		parts, err := jobs[0].conclude(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "b's", string(parts[1]))
		require.NoError(t, <-ended)
		for _, j := range jobs {
			require.NoError(t, j.Close())
		}
	})
}
