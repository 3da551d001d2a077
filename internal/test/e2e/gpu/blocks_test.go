package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A plan's blocks differ from row to row and from policy to policy; calls that follow each other
// in the same queues, mailboxes and gates are right.
func TestBlocksOfPlan(t *testing.T) {
	tier.Long(t)
	file := filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, os.WriteFile(file, []byte(`ringo plan 2
allreduce     3 any 64  oneshot 2/1
allreduce     3 any 1K  twoshot 5/2
allreduce     3 any all ring 7/3
allgather     3 any 512 direct 4/2
allgather     3 any all ring 3/1
alltoall      3 any all steps 6/2
reducescatter 3 any all logstep 5/4
`), 0o644))
	for _, policy := range []string{"default", "efficiency"} {
		t.Run(policy, func(t *testing.T) {
			comms := commtest.OnDevices(t, gputest.GPUs(t, 3, gputest.Emu(cudaemu.Config{Devices: 3, Plain: true})),
				ringo.Config{Plan: file, BlockPolicy: policy, Timeout: 30 * time.Second})
			room := commtest.Arenas(t, comms, 2*8*4001)
			for i, count := range tier.Some(3, []int{1001, 3, 4001, 77, 301}) {
				for _, kind := range commtest.Collectives {
					commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum,
						Root: i % 3}, i%2 == 0, i%3)
				}
			}
			want := map[string]int{"default": 7, "efficiency": 3}[policy]
			ch, err := ringo.ExplainDevice(ringo.KindAllReduce, 3, 0, 4004, 0, ringo.GPUs{},
				ringo.Config{Plan: file, BlockPolicy: policy})
			require.NoError(t, err)
			require.Equal(t, want, ch.Blocks)
			require.Contains(t, ch.WhyBlocks, "measured")
		})
	}
}

// With policy zero copy engines carry out calls that only move registered memory, at all sizes;
// other calls are as right as ever.
func TestBlocksPolicyZero(t *testing.T) {
	by := new(commtest.Algos)
	comms := commtest.OnDevices(t, gputest.GPUs(t, 3),
		ringo.Config{BlockPolicy: "zero", Timeout: 30 * time.Second, Observer: by})
	var calls, others []ringo.Call
	for _, count := range []int{1, 700} {
		for _, c := range windowCalls(count, ringo.Int32, ringo.Sum, 1) {
			if c.Kind == ringo.KindAllGather || c.Kind == ringo.KindAlltoAll || c.Kind == ringo.KindBroadcast {
				calls = append(calls, c)
			} else {
				others = append(others, c)
			}
		}
	}
	commtest.Run(t, comms, func(c *commtest.Rank) {
		in := commtest.AllocMapped(c, c.Device(), make([]byte, 16<<10))
		out := commtest.AllocMapped(c, c.Device(), make([]byte, 16<<10))
		a, err := c.Register(in)
		require.NoError(c, err)
		b, err := c.Register(out)
		require.NoError(c, err)
		require.NoError(c, compareInWindows(c.Comm, nil, in, out, calls, by, call.Copies))
		require.NoError(c, compareInWindows(c.Comm, nil, in, out, others, by, call.Auto))
		require.NoError(c, errors.Join(a.Close(), b.Close()))
	})
}

// Ranks agree on one budget of blocks and one policy, whatever each wants: with few blocks schedules go by bulk copies,
// with the policy latency all lanes move data by threads unless another rank has the default. Each carries out every
// collective, at any length and place.
func TestPolicies(t *testing.T) {
	const narrow, bulk = "lanes, for GPUs that compute beside them", "schedules go by bulk copies"
	for name, test := range map[string]struct {
		ranks  int
		config func(r int) ringo.Config
		says   []string // of narrow, bulk and others: those that are not here are not said
	}{
		"two blocks": {3, func(int) ringo.Config { return ringo.Config{MaxBlocks: 2} }, []string{bulk}},
		"other budgets": {2, func(r int) ringo.Config {
			return ringo.Config{MaxBlocks: 6 - 2*r, MinBlocks: 1 + r, BlockPolicy: []string{"efficiency", "default"}[r]}
		}, []string{bulk, "kernels of up to 4 blocks", "at least 2 blocks where there is work for them (RINGO_MIN_CTAS), " +
			"policy efficiency (RINGO_CTA_POLICY)"}},
		"latency": {2, func(int) ringo.Config { return ringo.Config{BlockPolicy: "latency"} }, nil},
		"latency and default": {2, func(r int) ringo.Config {
			return ringo.Config{BlockPolicy: []string{"latency", "default"}[r]}
		}, []string{narrow, bulk}},
	} {
		t.Run(name, func(t *testing.T) {
			comms := commtest.OnHosts(t, gputest.GPUs(t, test.ranks), func(r int) ringo.Config {
				cfg := test.config(r)
				cfg.Timeout = 30 * time.Second
				return cfg
			})
			for _, c := range comms {
				paths := fmt.Sprint(c.Paths())
				for _, what := range append(test.says, narrow, bulk) {
					require.Equal(t, slices.Contains(test.says, what), strings.Contains(paths, what), "%s: %s", what, paths)
				}
			}
			room := commtest.Arenas(t, comms, 2*8*4001)
			for i, count := range []int{1001, 4000} {
				for _, kind := range commtest.Collectives {
					commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum,
						Root: i}, i == 0, 1+3*i)
				}
			}
		})
	}
}
