package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// rankPaths are ways in which GPUs are connected, for a reduction in order of rank.
var rankPaths = []struct {
	name   string
	n      int
	config func(r int) ringo.Config
	parts  bool
}{
	{"p2p", 3, func(int) ringo.Config { return commtest.Exact }, false},
	{"p2p, ring", 2, func(int) ringo.Config { return commtest.With(func(c *ringo.Config) { c.Algo = "ring" }) }, false},
	{"p2p, in parts", 3, func(int) ringo.Config { return commtest.With(func(c *ringo.Config) { c.Algo = "steps" }) },
		true},
	{"host memory", 3, func(int) ringo.Config { return commtest.Under(commtest.Exact, "RINGO_P2P_DISABLE=1") }, false},
	{"host memory, in parts", 3, func(int) ringo.Config {
		return commtest.Under(commtest.With(func(c *ringo.Config) { c.Algo = "steps" }), "RINGO_P2P_DISABLE=1")
	}, true},
	{"bridge", 2, func(int) ringo.Config {
		return commtest.Under(commtest.Exact, "RINGO_P2P_DISABLE=1", "RINGO_SHM_DISABLE=1")
	}, true},
	{"two hosts", 4, func(r int) ringo.Config {
		return commtest.With(func(c *ringo.Config) { c.HostID = fmt.Sprint("host", r/2) })
	}, true},
}

// TestDeviceDeterministic: GPUs give the bits that the host gives, and a plain loop.
func TestDeviceDeterministic(t *testing.T) {
	tier.Long(t)
	for _, tc := range tier.Some(2, rankPaths) {
		t.Run(tc.name, func(t *testing.T) {
			by := new(commtest.Algos)
			list := gputest.GPUs(t, tc.n, gputest.NVLink(), gputest.Unchecked(tc.n))
			comms := commtest.OnHosts(t, list, func(r int) ringo.Config {
				cfg := tc.config(r)
				cfg.Observer = by
				return cfg
			})
			for i, x := range tier.Some(6, commtest.Trials(tc.n, 1, 333, 0, 2500)) {
				if i%5 == 0 {
					require.NoError(t, x.OnGPUs(comms))
				}
			}
			for _, kind := range commtest.Reductions {
				require.NoError(t, commtest.Trial{Kind: kind, Typ: ringo.Float16, Op: ringo.PreMulSum(2)}.OnGPUs(comms),
					"nothing to do")
			}
			require.NoError(t, commtest.Trial{Kind: ringo.KindAllReduce, Typ: ringo.BFloat16, Op: ringo.Avg,
				Count: 2500}.OnGPUs(comms))
			require.Equal(t, tc.parts, by.Last(0) == call.ByRank.String())
		})
	}
}

// In registered memory, which kernels of all ranks read.
func TestDeviceDeterministicWindows(t *testing.T) {
	list := gputest.GPUs(t, 3, gputest.NVLink())
	by := new(commtest.Algos)
	comms := commtest.OnHosts(t, list, func(int) ringo.Config {
		return commtest.With(func(c *ringo.Config) { c.Algo, c.Observer = "window", by })
	})
	memory := commtest.Memories(t, list, 64<<10)
	register(t, comms, memory, 0, 64<<10)
	all := commtest.Trials(3, 1, 333, 0, 1000)
	for i := 0; i < len(all); i += 5 {
		require.NoError(t, all[i].OnGPUs(comms, memory...))
	}
	require.NoError(t, commtest.Trial{Kind: ringo.KindAllReduce, Typ: ringo.BFloat16, Op: ringo.Avg,
		Count: 64}.OnGPUs(comms, memory...))
	require.Equal(t, call.Window.String(), by.Last(0))
	require.NoError(t, commtest.Trial{Kind: ringo.KindAllReduce, Typ: ringo.BFloat16, Op: ringo.PreMulSum(2),
		Count: 64}.OnGPUs(comms, memory...))
	require.Equal(t, call.OneShot.String(), by.Last(0), "scales differ")
	for _, other := range []string{"copies", "ring"} {
		c := commtest.OnHosts(t, list,
			func(int) ringo.Config { return commtest.With(func(c *ringo.Config) { c.Algo = other }) })[0]
		algo, _ := c.DeviceChoice(ringo.KindAllReduce, 1<<20, false)
		require.Equal(t, call.TwoShot.String(), algo)
		algo, _ = c.DeviceChoice(ringo.KindAllReduce, 1<<20, true)
		require.Equal(t, call.Window.String(), algo, "%s has another order", other)
	}
}

// More ranks than the kernels of direct algorithms are for, on fewer GPUs.
func TestDeviceDeterministicMany(t *testing.T) {
	tier.Long(t)
	const n = 9
	list := make([]*gpu.Device, n)
	for i, d := range gputest.GPUs(t, 3, gputest.Unchecked(3)) {
		for r := i; r < n; r += 3 {
			list[r] = d
		}
	}
	comms := commtest.OnHosts(t, list,
		func(int) ringo.Config { return commtest.With(func(c *ringo.Config) { c.Timeout = 10 * time.Second }) })
	for i, kind := range commtest.Reductions {
		for k, x := range []commtest.Trial{
			{Kind: kind, Typ: ringo.BFloat16, Op: ringo.Sum, Count: 500, Root: 3, InPlace: i%2 == 0, Seed: 1},
			{Kind: kind, Typ: ringo.Float16, Op: ringo.Avg, Count: 77, Root: 3, InPlace: i%2 == 1, Seed: 2},
		} {
			if tier.Pairs() || (i+k)%2 == 0 {
				require.NoError(t, x.OnGPUs(comms))
			}
		}
	}
}

// On a GPU, too, a user's operator is refused before any rank hears of it.
func TestDeviceDeterministicUserOp(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, commtest.Exact)
	x := commtest.Alloc(t, list[0], make([]byte, 64))
	err := comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 4, Type: ringo.Float32,
		Op: ringo.UserOp("mine", func(ringo.DataType, []byte, []byte) {})})
	require.ErrorContains(t, err, "a function in Go cannot run on a GPU")
}

// TestDeviceDeterministicRandom tries random reductions, on GPUs and on the host.
func TestDeviceDeterministicRandom(t *testing.T) {
	tier.Long(t)
	var groups [][]*ringo.Comm
	for _, p := range tier.Some(2, rankPaths[:5]) {
		groups = append(groups, commtest.OnHosts(t, gputest.GPUs(t, p.n, gputest.Unchecked(p.n)), p.config))
	}
	rapid.Check(t, func(t *rapid.T) {
		comms := rapid.SampledFrom(groups).Draw(t, "path")
		x := commtest.Trial{
			Kind:    rapid.SampledFrom(commtest.Reductions).Draw(t, "kind"),
			Typ:     rapid.SampledFrom(commtest.FloatTypes).Draw(t, "type"),
			Op:      rapid.SampledFrom(commtest.OrderedOps).Draw(t, "op"),
			Count:   rapid.IntRange(0, 300).Draw(t, "count"),
			Root:    rapid.IntRange(0, 1).Draw(t, "root"),
			InPlace: rapid.Bool().Draw(t, "in place"),
			Seed:    rapid.Uint64().Draw(t, "seed"),
		}
		if err := x.OnGPUs(comms); err != nil {
			t.Fatal(err)
		}
	})
}
