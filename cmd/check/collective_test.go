package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Collectives are right; and a rank that contributes wrong data is found.
func TestCollectives(t *testing.T) {
	s := collectiveStage()
	s.Quick = 5 * time.Minute // no machine is so busy
	r, errs := runAll(t, local("a", "a", "b"), config{Stages: []stage{s}})
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Empty(t, r.Findings)
	require.Len(t, r.Of("collectives", "all-reduce of 1 MiB"), 1)

	flip := func(x []uint32) { x[len(x)/2] ^= 1 << 7 }
	r, _ = runAll(t, local("a", "b", "c", "d", "e"), config{Stages: []stage{s}, tamper: map[int]func([]uint32){3: flip}})
	require.Equal(t, []string{"collective-rank host d, rank 3"}, codes(r), "%v", r.Findings)
	require.Contains(t, r.Findings[0].Text, " and not ")
	require.Equal(t, broken, r.Verdict)
}

// TestCollectivesSaid: a finding's sentence claims of other ranks only results of trials.
func TestCollectivesSaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		found found
		ranks int
		want  string
	}{
		{"two ranks", found{Alone: [][2]int{{0, 1}}}, 2,
			"host a, rank 0 to host b, rank 1: collectives of these two fail: x; look at the way between them"},
		{"two of three", found{Links: [][2]int{{0, 1}}, Some: true}, 3,
			"host a, rank 0 to host b, rank 1: collectives of these two fail, and each does well with others: x; look at the " +
				"way between them"},
		{"two without a witness", found{Alone: [][2]int{{0, 1}}, Some: true}, 4,
			"host a, rank 0 to host b, rank 1: collectives of these two fail: x; look at the way between them"},
		{"a rank", found{Ranks: []int{1}, Some: true}, 3,
			"host b, rank 1: collectives with this rank fail, and some without it do well: x;"},
		{"nothing", found{Alone: [][2]int{{0, 1}, {2, 3}}}, 4,
			"no collective does well, over all ranks or over any part that was tried: x;"},
		{"the whole", found{Across: true, Some: true}, 4, "collectives over all ranks fail, and those over parts do well: x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			jobs := local(strings.Fields("a b c d")[:c.ranks]...)
			r := &report{Measurements: append([]measurement{{Stage: "collectives", Quantity: "trial", Text: "x"}},
				jobs[0].blamed(c.found)...)}
			for i := range r.Measurements {
				r.Measurements[i].Stage = "collectives"
			}
			// Where the network has a finding that may be why, no rank is named: at the first host all ranks meet.
			for _, about := range []subject{of("a", ""), {}} {
				r := &report{Hosts: []hostReport{{Name: "a"}, {Name: "b"}}, Measurements: r.Measurements,
					Findings: []finding{{Severity: degraded, Code: "loss", Stage: "network", Subject: about}}}
				list := judgeHostCollectives(r, nil)
				require.Len(t, list, 1)
				require.Contains(t, list[0].String(), "collectives fail: x; what the stage of the network has found may be why (loss")
				require.NotContains(t, list[0].Text, "memory")
				require.Equal(t, subject{}, list[0].Subject)
			}
			list := judgeHostCollectives(r, nil)
			require.Len(t, list, 1)
			require.Contains(t, list[0].String(), c.want)
			for _, j := range jobs {
				require.NoError(t, j.star.close())
			}
		})
	}
}

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
