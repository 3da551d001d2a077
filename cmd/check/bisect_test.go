package check

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The culprits are found among up to 1,000 ranks, in few steps and with disjoint groups.
func TestBisection(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		fails func(g []int) bool
		ranks []int
		links [][2]int
		alone [][2]int
		steps int
	}{
		{"well", 1000, func([]int) bool { return false }, nil, nil, nil, 1},
		{"a rank of many", 1000, func(g []int) bool { return slices.Contains(g, 617) }, []int{617}, nil, nil, 12},
		{"the first rank", 1000, func(g []int) bool { return slices.Contains(g, 0) }, []int{0}, nil, nil, 12},
		{"two ranks", 64, func(g []int) bool { return slices.Contains(g, 3) || slices.Contains(g, 40) }, []int{3, 40}, nil,
			nil, 8},
		{"a link in a half", 8, func(g []int) bool { return slices.Contains(g, 2) && slices.Contains(g, 3) }, nil,
			[][2]int{{2, 3}}, nil, 5},
		{"a link between halves", 8, func(g []int) bool { return slices.Contains(g, 1) && slices.Contains(g, 6) }, nil,
			[][2]int{{1, 6}}, nil, 6},
		{"a rank of three", 3, func(g []int) bool { return slices.Contains(g, 2) }, []int{2}, nil, nil, 4},
		{"a rank of two", 2, func(g []int) bool { return slices.Contains(g, 1) }, nil, nil, [][2]int{{0, 1}}, 2},
		{"nothing does well", 4, func([]int) bool { return true }, nil, nil, [][2]int{{0, 1}, {2, 3}}, 3},
		{"one alone", 1, func(g []int) bool { return true }, []int{0}, nil, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []int
			for r := range c.n {
				all = append(all, r)
			}
			b := newBisection(all)
			steps := 0
			for len(b.next()) > 0 {
				seen := map[int]bool{}
				var well []bool
				for _, g := range b.next() {
					for _, r := range g {
						require.False(t, seen[r], "rank %d is in two groups of step %d: %v", r, steps, b.next())
						seen[r] = true
					}
					well = append(well, !c.fails(g))
				}
				b.learn(well)
				steps++
			}
			require.LessOrEqual(t, steps, c.steps)
			slices.Sort(b.Ranks)
			require.Equal(t, c.ranks, b.Ranks)
			require.Equal(t, c.links, b.Links)
			require.Equal(t, c.alone, b.Alone)
		})
	}
}
