package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
)

// Every line of the book is proved on 1 to 12 ranks, in all nodes that they make, in place and
// out of place, and for the first and the last root.
func TestEveryLineIsProved(t *testing.T) {
	for _, c := range book.Collectives {
		for _, a := range c.Algorithms {
			t.Run(c.Name+"/"+a.Name, func(t *testing.T) {
				require.NotEqual(t, a.Flat == nil, a.Nodes == nil, "one of the two makes it")
				proved := 0
				for n := 1; n <= 12; n++ {
					for local := 1; local <= n; local++ {
						for _, root := range []sched.Rank{0, sched.Rank(n - 1)} {
							s, err := a.Schedule(n, local, root)
							if err != nil {
								require.False(t, a.Nodes == nil || local < n && (n%local == 0 || !a.Even))
								continue
							}
							require.NoError(t, sched.Check(s, c.Goal(root), 2, false), "%d ranks in nodes of %d, root %d", n, local, root)
							if c.Name != "alltoall" { // which copies In first
								require.NoError(t, sched.Check(s, c.Goal(root), 2, true), "%d ranks in nodes of %d, root %d, in place", n,
									local, root)
							}
							proved++
						}
						if a.Nodes == nil {
							break
						}
					}
				}
				require.Greater(t, proved, 20)
			})
		}
	}
}

// No two lines of a collective have one name, and names find them.
func TestBookFind(t *testing.T) {
	for _, c := range book.Collectives {
		found, err := book.Find(c.Name)
		require.NoError(t, err)
		require.Equal(t, c.Name, found.Name)
		seen := map[string]bool{}
		for _, a := range c.Algorithms {
			require.False(t, seen[a.Name], "%s has two lines %q", c.Name, a.Name)
			seen[a.Name] = true
			require.Equal(t, a.Nodes == nil, mustFind(t, c, a.Name).Nodes == nil)
		}
	}
	_, err := book.Find("x")
	require.EqualError(t, err, `no collective "x"`)
	_, err = book.Collectives[0].Find("x")
	require.EqualError(t, err, `allreduce has no algorithm "x"`)
}

func mustFind(t *testing.T, c book.Collective, name string) book.Algorithm {
	a, err := c.Find(name)
	require.NoError(t, err)
	return a
}
