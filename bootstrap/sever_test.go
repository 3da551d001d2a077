package bootstrap

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The next hub knows which paths have failed, whatever numbers the ranks have there.
func TestSeverLater(t *testing.T) {
	id, _ := hubAt(t)
	groups := enter(t, id, 4, func(r int) JoinOptions { return JoinOptions{machine: fmt.Sprint("host ", r)} })
	hosts := []int{0, 1, 2, 3}
	var all sync.WaitGroup
	for _, fail := range []struct {
		how  func()
		left []int // hosts
	}{
		{func() { groups[2].FailWith("reset", 1, false) }, []int{0, 1, 2, 3}},
		{func() { Drop(groups[0]) }, []int{1, 2, 3}},
		{func() { groups[1].FailWith("reset", 0, false) }, []int{1, 3}}, // of hosts 1 and 2
	} {
		fail.how()
		next := make([]Group, len(fail.left))
		for i, host := range hosts {
			if host == 0 && len(next) == 3 {
				continue
			}
			all.Go(func() {
				got, err := groups[i].Regroup(t.Context(), time.Minute)
				if at := slices.Index(fail.left, host); at >= 0 {
					require.NoError(t, err)
					require.Len(t, got.Members, len(next))
					next[at], err = Join(within(t, time.Minute), got.ID, at, len(next),
						JoinOptions{machine: fmt.Sprint("host ", host)})
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrExcluded)
					require.ErrorContains(t, err, "ranks 0 and 1 have failed with each other again, so the others leave out rank 1")
				}
			})
		}
		all.Wait()
		closeAll(t, groups)
		groups, hosts = next, fail.left
	}
	closeAll(t, groups)
}
