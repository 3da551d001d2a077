package gpupaths

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/paths"
)

// Queues fit in the memory that they may take, and the blocks of ranks that share a GPU run side
// by side.
func TestGeometry(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		g := geometryOf(n, 128)
		b := bridgeNet{shape: g.bridge}
		require.LessOrEqual(t, g.board.Bytes(), 64<<20, "%d ranks", n)
		require.LessOrEqual(t, g.pinned.Bytes(), 64<<20, "%d ranks", n)
		require.LessOrEqual(t, 2*(n-1)*b.laneSetBytes(), 64<<20, "%d ranks", n)
		few := geometryOf(n, 3)
		for _, q := range []int{few.board.Near.Lanes, few.board.Far.Lanes, few.pinned.Near.Lanes, few.pinned.Far.Lanes, few.bridge.Lanes, few.blocks} {
			require.LessOrEqual(t, q, 3)
		}
	}
}

// Ranks that share a GPU are counted by the GPU's identity, not by its name.
func TestSharing(t *testing.T) {
	ranks := func(ids ...string) (all []paths.Profile) {
		for _, id := range ids {
			all = append(all, paths.Profile{GPU: "the same name", GPUID: id})
		}
		return all
	}
	require.Equal(t, 1, sharing(ranks("a", "b", "c")))
	require.Empty(t, sharingNotes(ranks("a", "b", "c")))
	require.Equal(t, 2, sharing(ranks("a", "b", "a", "b", "c")))
	require.Contains(t, sharingNotes(ranks("a", "b", "a"))[0], "up to 2 ranks share a GPU")
}

// All communicators that are promised fit on a GPU together, whatever its size; the first has
// what it needs for the bandwidth of a large one.
func TestShares(t *testing.T) {
	for _, processors := range []int{1, 2, 8, 20, 80, 132, 148} {
		a := &account{capacity: 2 * processors, open: map[string]*holding{}}
		sum := 0
		for i := range Communicators {
			n := a.share()
			require.GreaterOrEqual(t, n, 1)
			sum += n
			a.open[fmt.Sprint(i)] = &holding{1, n}
		}
		require.LessOrEqual(t, sum, max(Communicators, a.capacity), "%d multiprocessors", processors)
		require.LessOrEqual(t, 1, a.share(), "one more may wait for the others")
	}
	require.Equal(t, 128, (&account{capacity: 264}).share())
}

// The least share of all ranks counts, divided among those of one GPU.
func TestAgreedBlocks(t *testing.T) {
	all := []paths.Profile{{Blocks: 128, Processors: 132}, {Blocks: 40, Processors: 132}}
	require.Equal(t, 40, agreedBlocks(all, 1))
	require.Equal(t, 20, agreedBlocks(all, 2))
	all[0].MaxBlocks = 8
	require.Equal(t, 8, agreedBlocks(all, 1))
	all[1].MaxBlocks, all[0].MaxBlocks = 1000, 1000
	require.Equal(t, 128, agreedBlocks(all, 1))
	require.Equal(t, 66, agreedBlocks(all, 2))
	require.Equal(t, 1, agreedBlocks([]paths.Profile{{Blocks: 1, Processors: 8}}, 4))
}

// All ranks come to one budget: the least of the most, the most of the least, the thriftiest
// policy. A rank that wants at least so many blocks has them, also beyond its share.
func TestAgreedBudget(t *testing.T) {
	all := []paths.Profile{{Blocks: 128, Processors: 132}, {Blocks: 40, Processors: 132}}
	require.Equal(t, choice.Budget{Most: 40}, agreedBudget(all, 1))
	all[0].Policy, all[0].MinBlocks, all[1].MinBlocks = uint8(choice.PolicyEfficiency), 20, 64
	require.Equal(t, choice.Budget{Least: 64, Most: 64, Policy: choice.PolicyEfficiency}, agreedBudget(all, 1))
	all[0].MaxBlocks, all[1].Policy = 32, uint8(choice.PolicyZero)
	require.Equal(t, choice.Budget{Least: 32, Most: 32, Policy: choice.PolicyZero}, agreedBudget(all, 1))
}

// Ranks of a communicator on one GPU share its holding; what is given back is there for others.
func TestTake(t *testing.T) {
	m, err := gpu.Of(gputest.Driver(t))
	require.NoError(t, err)
	d, err := m.Device(0)
	require.NoError(t, err)
	take := func(comm string) (*Share, int) {
		var p paths.Profile
		s, err := Take(&p, d, comm, choice.Budget{})
		require.NoError(t, err)
		return s, p.Blocks
	}
	a, first := take("a")
	b, same := take("a")
	require.Equal(t, first, same)
	c, rest := take("c")
	require.Less(t, rest, first)
	a.settle(1)
	e, more := take("e")
	require.Greater(t, more, rest, "the first communicator agreed on less")
	for _, s := range []*Share{a, b, c, e} {
		s.GiveBack()
	}
	require.NotContains(t, accounts.of, accountKey{d.Driver(), d.Handle()})
	(*Share)(nil).GiveBack()
}
