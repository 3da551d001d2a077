package host

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestDeterministic: the same bits over every transport, for all sizes and
// whatever algorithm is asked for, and they are those of a plain loop.
func TestDeterministic(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int
		cfg  ringo.Config
	}{
		{"inproc", 3, commtest.Exact},
		{"inproc, 2 ranks", 2, commtest.Exact},
		{"inproc, 9 ranks", 9, commtest.Exact},
		{"small queues, ring", 4, commtest.With(func(c *ringo.Config) { c.SlotBytes, c.Slots, c.Algo = 256, 4, "ring" })},
		{"shm", 3, commtest.With(func(c *ringo.Config) { c.Transport = "shm" })},
		{"unix", 3, commtest.With(func(c *ringo.Config) { c.Transport = "socket" })},
		{"tcp, tree", 4, commtest.With(func(c *ringo.Config) {
			c.Transport, c.SocketNetwork, c.Interface, c.Algo = "socket", "tcp", "lo", "tree"
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			comms := commtest.Local(t, tc.n, tc.cfg)
			all := tier.Some(3, commtest.Trials(tc.n, 1, 77, 0, 2500, 9001))
			for i := 0; i < len(all); i += 5 - 4*(tc.n&1) { // all of them, or some
				require.NoError(t, all[i].OnHost(comms))
			}
		})
	}
}

// Data larger than the shares that are held at a time, which have 2 MiB.
func TestDeterministicPieces(t *testing.T) {
	comms := commtest.Local(t, 3, commtest.Exact)

	const share = 2 << 20 / 3 / 8 // elements
	for i, x := range []commtest.Trial{
		{Kind: ringo.KindAllReduce, Op: ringo.PreMulSum(0.9), Count: 3*share + 10},
		{Kind: ringo.KindReduce, Op: ringo.Avg, Count: share + 10, Root: 1, InPlace: true},
		{Kind: ringo.KindReduceScatter, Op: ringo.Sum, Count: share + 10, InPlace: true},
	} {
		x.Typ, x.Seed = ringo.Float64, uint64(i)
		require.NoError(t, x.OnHost(comms))
	}
}

// TestDeterministicRandom tries random reductions.
func TestDeterministicRandom(t *testing.T) {
	groups := map[int][]*ringo.Comm{}
	for _, n := range []int{2, 3, 5, 8} {
		groups[n] = commtest.Local(t, n, commtest.With(func(c *ringo.Config) { c.SlotBytes, c.Slots = 1024, 4 }))
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 3, 5, 8}).Draw(t, "ranks")
		x := commtest.Trial{
			Kind:    rapid.SampledFrom(commtest.Reductions).Draw(t, "kind"),
			Typ:     rapid.SampledFrom(commtest.FloatTypes).Draw(t, "type"),
			Op:      rapid.SampledFrom(commtest.OrderedOps).Draw(t, "op"),
			Count:   rapid.IntRange(0, 3000).Draw(t, "count"),
			Root:    rapid.IntRange(0, n-1).Draw(t, "root"),
			InPlace: rapid.Bool().Draw(t, "in place"),
			Seed:    rapid.Uint64().Draw(t, "seed"),
		}
		if err := x.OnHost(groups[n]); err != nil {
			t.Fatal(err)
		}
	})
}

// An operator of the caller's own sees the ranks in order, in groups and queues too.
func TestDeterministicUserOp(t *testing.T) {
	const n, count = 5, 7000
	comms := commtest.Local(t, n, commtest.Exact)
	digits := ringo.UserOp("digits", func(_ ringo.DataType, dst, src []byte) {
		for i := 0; i < len(dst); i += 8 {
			v := binary.NativeEndian.Uint64(dst[i:])*10 + binary.NativeEndian.Uint64(src[i:])
			binary.NativeEndian.PutUint64(dst[i:], v)
		}
	})
	commtest.Run(t, comms, func(c *commtest.Rank) {
		x := slices.Repeat([]uint64{uint64(c.Rank() + 1)}, count)
		y := slices.Clone(x)
		started, g := c.Start(ringo.AllReduceOf(x, digits)), ringo.NewGroup()
		g.Add(c.Comm, ringo.AllReduceOf(y, digits))
		require.NoError(c, errors.Join(g.Run(), started.Wait()))
		want := slices.Repeat([]uint64{12345}, count)
		require.True(c, slices.Equal(want, x) && slices.Equal(want, y))
	})
}

// TestSettingsDiffer: a setting that must be the same on all ranks, but is not, is an ErrMismatch on all, also
// where one rank names the networks that the other would try anyway.
func TestSettingsDiffer(t *testing.T) {
	t.Parallel()
	for variable, cfgs := range map[string][2]ringo.Config{
		"RINGO_NET":           {{Net: "socket"}, {Net: "ib,socket"}},
		"RINGO_NET or NCCL":   {{Net: "plugin,ib,socket"}, {}},
		"RINGO_DETERMINISTIC": {{Deterministic: call.RankOrder}, {}},
	} {
		_, errs := commtest.OpenAll(t, 2, func(r int) ringo.Config { return cfgs[r] })
		for _, err := range errs {
			require.ErrorIs(t, err, ringo.ErrMismatch)
			require.ErrorContains(t, err, variable)
		}
	}
}

func TestDeterministicSetting(t *testing.T) {
	_, err := ringo.Config{Deterministic: "sometimes"}.FromEnv()
	require.ErrorIs(t, err, ringo.ErrInvalid)
	_, err = ringo.Explain(ringo.KindAllReduce, 4, 0, 64, 0, ringo.Config{Deterministic: "sometimes"})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	c, err := ringo.Config{}.From(commtest.Environment("RINGO_DETERMINISTIC=" + call.RankOrder))
	require.NoError(t, err)
	require.Equal(t, call.RankOrder, c.Deterministic)
}
