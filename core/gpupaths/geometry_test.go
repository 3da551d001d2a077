// Shapes of queues, which ranks are close, and quotas of blocks.

package gpupaths

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// ranksOn are profiles of ranks on hosts, a letter each.
func ranksOn(names string) (all []paths.Profile) {
	for r, h := range names {
		all = append(all, paths.Profile{Info: transport.Info{Rank: r, Host: string(h)}})
	}
	return all
}

// Queues fit in the memory that they may take. With few blocks they have few lanes, which are deeper.
func TestGeometry(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		one := hostsOf(ranksOn(strings.Repeat("a", n)))
		g := geometryOf(&one, 128, 128)
		require.LessOrEqual(t, g.boards[n].device.Bytes(), 64<<20, "%d ranks", n)
		require.LessOrEqual(t, g.boards[n].pinned.Bytes(), 64<<20, "%d ranks", n)
		require.LessOrEqual(t, 2*(n-1)*laneSetBytes(g.near), 64<<20, "%d ranks", n)
		few := geometryOf(&one, 128, 3)
		for _, q := range []int{few.boards[n].device.Near.Lanes, few.boards[n].device.Far.Lanes,
			few.boards[n].pinned.Near.Lanes, few.boards[n].pinned.Far.Lanes, few.near.Lanes, few.far.Lanes} {
			require.LessOrEqual(t, q, 3)
		}
		for _, blocks := range []int{1, 8, 32, 40, 100} {
			few := geometryOf(&one, 128, blocks).boards[n].device
			if n > 1 {
				require.LessOrEqual(t, few.Bytes(), g.boards[n].device.Bytes(), "%d ranks, %d blocks", n, blocks)
			}
			if blocks <= 32 {
				require.Equal(t, 8*128<<10, few.Near.Slots*few.Near.SlotBytes, "%d blocks", blocks)
			}
		}
	}
}

// The memory of a rank grows little with the number of hosts: boards are for the ranks of one host, and few ranks of
// other hosts are close. Queues to these have several lanes.
func TestGeometryOfHosts(t *testing.T) {
	for _, test := range []struct {
		hosts, ranks int
		lanes        int // between ranks that are close
		most         int // bytes of bridges
	}{{2, 8, 8, 64 << 20}, {8, 8, 8, 64 << 20}, {2, 2, 16, 64 << 20}, {128, 8, 4, 192 << 20}} {
		var names []rune
		for h := range test.hosts {
			for range test.ranks {
				names = append(names, rune('a'+h))
			}
		}
		h := hostsOf(ranksOn(string(names)))
		g := geometryOf(&h, 128, 128)
		b := g.boards[test.ranks]
		require.LessOrEqual(t, b.device.Bytes(), 56<<20)
		require.Equal(t, test.lanes, g.near.Lanes, "%+v", test)
		n := &Net{hosts: h, geometry: g}
		for _, r := range []int{0, 1, len(names) / 2, len(names) - 1} {
			bytes := 0
			for p := range names {
				if names[p] != names[r] {
					bytes += 2 * laneSetBytes(n.bridgeGeometry(r, p))
					require.Equal(t, n.bridgeGeometry(r, p), n.bridgeGeometry(p, r))
				}
			}
			require.LessOrEqual(t, bytes, test.most, "%+v", test)
		}
	}
}

// The rank with the most close ranks counts, wherever it is.
func TestAcross(t *testing.T) {
	for _, names := range []string{"aabbcc", "abcabc", "aabbb", "aaaabbccddee", "aabbccddeeee", strings.Repeat("a", 16) +
		"bbbbccccddddeeeeffff"} {
		h := hostsOf(ranksOn(names))
		want := 0
		for r := range names {
			k := 0
			for p := range names {
				if names[p] != names[r] && h.close(r, p) {
					k++
				}
			}
			want = max(want, k)
		}
		closest, _ := h.across()
		require.Equal(t, want, closest, names)
	}
}

// Neighbours in a ring over all ranks, and in rings and log-step algorithms of a column, are
// close, however ranks lie.
func TestClose(t *testing.T) {
	for _, names := range []string{"aabbcc", "abcabc", "aabbb", "abcde", "aaaabbbbccccddddeeeeffff"} {
		all := ranksOn(names)
		h := hostsOf(all)
		topo := choice.TopologyOf(strings.Split(names, ""))
		for _, key := range []choice.Key{
			{Kind: call.AllReduce, Algo: call.Ring}, {Kind: call.AllReduce, Algo: call.Hier},
			{Kind: call.AllGather, Algo: call.Hier}, {Kind: call.ReduceScatter, Algo: call.Hier},
		} {
			if !key.Exists(topo) {
				continue
			}
			s := key.Schedule(topo)
			for r := range all {
				for i := range s.Len(sched.Rank(r)) {
					if to := int(s.At(sched.Rank(r), i).Send); to >= 0 && all[to].Host != all[r].Host {
						require.True(t, h.close(r, to), "%s: %v from %d to %d", names, key, r, to)
					}
				}
			}
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
	require.Equal(t, 1, choice.Sharing(members(ranks("a", "b", "c"))))
	require.Empty(t, sharingNotes(ranks("a", "b", "c")))
	require.Equal(t, 2, choice.Sharing(members(ranks("a", "b", "a", "b", "c"))))
	require.Contains(t, sharingNotes(ranks("a", "b", "a"))[0], "up to 2 ranks share a GPU")
}

// All communicators that are promised fit on a GPU together, whatever its size; the first has
// what it needs for the bandwidth of a large one.
func TestShares(t *testing.T) {
	for _, processors := range []int{1, 2, 8, 20, 80, 132, 148} {
		a := &account{capacity: 2 * processors, open: map[string]*holding{}}
		sum := 0
		for i := range choice.Communicators {
			n := a.next()
			require.GreaterOrEqual(t, n, 1)
			sum += n
			a.open[fmt.Sprint(i)] = &holding{1, n}
		}
		require.LessOrEqual(t, sum, max(choice.Communicators, a.capacity), "%d multiprocessors", processors)
		require.LessOrEqual(t, 1, a.next(), "one more may wait for the others")
	}
	require.Equal(t, 128, (&account{capacity: 264}).next())
}

// Ranks of a communicator on one GPU share its holding; what is given back is there for others.
func TestTake(t *testing.T) {
	d := fakeDevice(t)
	take := func(comm string) (*Quota, int) {
		var p paths.Profile
		s, err := Take(nil, &p, d, comm, choice.Budget{})
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
	for _, s := range []*Quota{a, b, c, e} {
		s.GiveBack()
	}
	require.NotContains(t, ofProcess.In(nil).of, accountKey{d.Driver(), d.Handle()})
	(*Quota)(nil).GiveBack()
}
