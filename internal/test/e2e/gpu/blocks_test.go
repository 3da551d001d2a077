package ringo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
)

// A plan's blocks differ from row to row and from policy to policy, and what follows what in
// the same queues, mailboxes and gates is right.
func TestBlocksOfPlan(t *testing.T) {
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
			comms := onDevices(t, devices(t, 3, gputest.Emu(cudaemu.Config{Devices: 3, Plain: true})), Config{Plan: file, BlockPolicy: policy, Timeout: 30 * time.Second})
			room := arenas(t, comms, 2*8*4001)
			for i, count := range []int{1001, 3, 4001, 77, 301} {
				for _, kind := range collectives {
					tryOnDevice(t, comms, room, Call{Kind: kind, Count: count, Type: Int32, Op: Sum, Root: i % 3}, i%2 == 0, i%3)
				}
			}
			want := map[string]int{"default": 7, "efficiency": 3}[policy]
			ans := comms[0].gpu.Chooser().Choose(choice.Question{Kind: KindAllReduce, Bytes: 4004, Type: Int32, OnGPU: true})
			require.Equal(t, want, ans.Blocks)
			require.Contains(t, ans.WhyBlocks, "measured")
		})
	}
}

// With few blocks schedules go by bulk copies, and are as right as ever, at any length
// and place.
func TestBlocksBulk(t *testing.T) {
	comms := onDevices(t, devices(t, 3), Config{MaxBlocks: 2, Timeout: 30 * time.Second})
	room := arenas(t, comms, 2*8*4001)
	for _, c := range comms {
		require.Contains(t, fmt.Sprint(c.Paths()), "schedules go by bulk copies")
	}
	for i, count := range []int{1001, 4000} {
		for _, kind := range collectives {
			tryOnDevice(t, comms, room, Call{Kind: kind, Count: count, Type: Int32, Op: Sum, Root: i}, i == 0, 4*i)
		}
	}
}

// With policy zero copy engines carry out what only moves registered memory, at all sizes, and
// the rest is as right as ever.
func TestBlocksPolicyZero(t *testing.T) {
	comms := onDevices(t, devices(t, 3), Config{BlockPolicy: "zero", Timeout: 30 * time.Second})
	var calls, others []Call
	for _, count := range []int{1, 700} {
		for _, c := range windowCalls(count, Int32, Sum, 1) {
			if c.Kind == KindAllGather || c.Kind == KindAlltoAll || c.Kind == KindBroadcast {
				calls = append(calls, c)
			} else {
				others = append(others, c)
			}
		}
	}
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		in, out := allocMapped(t, c.Device(), make([]byte, 16<<10)), allocMapped(t, c.Device(), make([]byte, 16<<10))
		wg.Go(func() {
			a, err := c.Register(in)
			b, err2 := c.Register(out)
			errs[r] = errors.Join(err, err2)
			if errs[r] == nil {
				errs[r] = errors.Join(compareInWindows(c, nil, in, out, calls, call.Copies), compareInWindows(c, nil, in, out, others, call.Auto), a.Close(), b.Close())
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// Ranks that want different budgets agree on one, and on what carries out each call.
func TestBlocksAgreed(t *testing.T) {
	list := devices(t, 2)
	groups, comms, errs := bootstrap.Local(2), make([]*Comm, 2), make([]error, 2)
	var wg sync.WaitGroup
	for r := range comms {
		wg.Go(func() {
			cfg := Config{Rank: r, Size: 2, Device: list[r], MaxBlocks: 6 - 2*r, MinBlocks: 1 + r, BlockPolicy: []string{"efficiency", "default"}[r], Timeout: 30 * time.Second}
			if cfg, errs[r] = cfg.FromEnv(); errs[r] == nil {
				comms[r], errs[r] = open(context.Background(), cfg, groups[r])
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	t.Cleanup(func() {
		for _, c := range comms {
			wg.Go(func() { c.Close() })
		}
		wg.Wait()
	})
	for _, c := range comms {
		require.Equal(t, choice.Budget{Least: 2, Most: 4, Policy: choice.PolicyEfficiency}, c.gpu.Chooser().Budget)
		require.Contains(t, fmt.Sprint(c.notes), "at least 2 blocks where there is work for them (RINGO_MIN_CTAS), policy efficiency (RINGO_CTA_POLICY)")
	}
	room := arenas(t, comms, 2*8*1001)
	for _, kind := range collectives {
		tryOnDevice(t, comms, room, Call{Kind: kind, Count: 1001, Type: Int32, Op: Sum}, false, 1)
	}
}
