package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// With few blocks schedules go by bulk copies, and are as right as ever, at any length
// and place.
func TestBlocksBulk(t *testing.T) {
	comms := commtest.OnDevices(t, gputest.GPUs(t, 3), ringo.Config{MaxBlocks: 2, Timeout: 30 * time.Second})
	room := commtest.Arenas(t, comms, 2*8*4001)
	for _, c := range comms {
		require.Contains(t, fmt.Sprint(c.Paths()), "schedules go by bulk copies")
	}
	for i, count := range []int{1001, 4000} {
		for _, kind := range commtest.Collectives {
			commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum, Root: i},
				i == 0, 4*i)
		}
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
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		in, out := commtest.AllocMapped(t, c.Device(), make([]byte, 16<<10)),
			commtest.AllocMapped(t, c.Device(), make([]byte, 16<<10))
		wg.Go(func() {
			a, err := c.Register(in)
			b, err2 := c.Register(out)
			errs[r] = errors.Join(err, err2)
			if errs[r] == nil {
				errs[r] = errors.Join(compareInWindows(c, nil, in, out, calls, by, call.Copies),
					compareInWindows(c, nil, in, out, others, by, call.Auto), a.Close(), b.Close())
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// Ranks that want different budgets agree on one, and on the algorithm of each call.
func TestBlocksAgreed(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnHosts(t, list, func(r int) ringo.Config {
		return ringo.Config{MaxBlocks: 6 - 2*r, MinBlocks: 1 + r, BlockPolicy: []string{"efficiency", "default"}[r],
			Timeout: 30 * time.Second}
	})
	for _, c := range comms {
		require.Contains(t, fmt.Sprint(c.Paths()), "kernels of up to 4 blocks")
		require.Contains(t, fmt.Sprint(c.Paths()),
			"at least 2 blocks where there is work for them (RINGO_MIN_CTAS), policy efficiency (RINGO_CTA_POLICY)")
	}
	room := commtest.Arenas(t, comms, 2*8*1001)
	for _, kind := range commtest.Collectives {
		commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: kind, Count: 1001, Type: ringo.Int32, Op: ringo.Sum}, false, 1)
	}
}

// With the policy default few lanes move data by bulk copies, with latency all lanes by threads, unless another rank
// has the default; each policy carries out every collective.
func TestPolicies(t *testing.T) {
	for _, test := range []struct {
		policies [2]string
		narrow   bool
	}{{[2]string{"latency", "latency"}, false}, {[2]string{"latency", "default"}, true}} {
		t.Run(strings.Join(test.policies[:], " and "), func(t *testing.T) {
			comms := commtest.OnHosts(t, gputest.GPUs(t, 2), func(r int) ringo.Config {
				return ringo.Config{BlockPolicy: test.policies[r], Timeout: 30 * time.Second}
			})
			for _, c := range comms {
				require.Equal(t, test.narrow, strings.Contains(fmt.Sprint(c.Paths()), "lanes, for GPUs that compute beside them"))
				require.Equal(t, test.narrow, strings.Contains(fmt.Sprint(c.Paths()), "schedules go by bulk copies"))
			}
			room := commtest.Arenas(t, comms, 2*8*1001)
			for _, kind := range commtest.Collectives {
				commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: kind, Count: 1001, Type: ringo.Float32, Op: ringo.Sum},
					false, 1)
			}
		})
	}
}
