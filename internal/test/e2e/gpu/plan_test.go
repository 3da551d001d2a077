package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestDeviceDirect: small operations take direct kernels, which need no program,
// unless another algorithm is asked for; all give what they should.
func TestDeviceDirect(t *testing.T) {
	tier.Long(t)
	const n, count = 3, 70
	list := gputest.GPUs(t, n, gputest.NVLink(), gputest.Unchecked(n))
	by, byAlgo := new(commtest.Algos), map[string][]*ringo.Comm{}
	for _, test := range []struct {
		algo    string
		kind    ringo.Kind
		bySteps bool
		named   call.Algo
	}{
		{"", ringo.KindAllReduce, false, call.OneShot},
		{"oneshot", ringo.KindAllReduce, false, call.OneShot},
		{"twoshot", ringo.KindAllReduce, false, call.TwoShot},
		{"ring", ringo.KindAllReduce, true, call.Ring},
		{"", ringo.KindReduceScatter, false, call.Direct},
		{"direct", ringo.KindReduceScatter, false, call.Direct},
		{"ring", ringo.KindReduceScatter, true, call.Ring},
		{"", ringo.KindAllGather, false, call.Direct},
		{"logstep", ringo.KindAllGather, true, call.LogStep},
		{"", ringo.KindBroadcast, false, call.Direct},
		{"tree", ringo.KindBroadcast, true, call.Tree},
		{"", ringo.KindReduce, false, call.Direct},
		{"", ringo.KindGather, false, call.Direct},
		{"", ringo.KindScatter, false, call.Direct},
		{"", ringo.KindAlltoAll, false, call.Direct},
		{"ring", ringo.KindAlltoAll, false, call.Direct},
		{"steps", ringo.KindAlltoAll, true, call.Steps},
	} {
		if byAlgo[test.algo] == nil {
			byAlgo[test.algo] = commtest.OnDevices(t, list, ringo.Config{Algo: test.algo, Observer: by})
		}
		t.Run(fmt.Sprintf("%v/%s", test.kind, test.algo), func(t *testing.T) {
			room := commtest.Arenas(t, byAlgo[test.algo], 4*n*count)
			comms := byAlgo[test.algo]
			for i := range 3 {
				commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: test.kind, Count: count, Type: ringo.Float32, Op: ringo.Sum,
					Root: 1}, false, i)
			}
			for r := range comms {
				require.Equal(t, test.named.String(), by.Last(r))
			}
			ch, err := ringo.ExplainDevice(test.kind, n, 0, 4*count, 1, ringo.GPUs{}, ringo.Config{Algo: test.algo})
			require.NoError(t, err)
			require.Equal(t, test.named.String(), ch.Algo)
			require.Equal(t, test.bySteps, ch.Schedule != nil)
		})
	}
}

// TestDeviceAlgorithms: every algorithm that serves on GPUs can stand in a plan, and explain
// knows it without GPUs.
func TestDeviceAlgorithms(t *testing.T) {
	comms := commtest.OnDevices(t, gputest.GPUs(t, 2, gputest.NVLink()), ringo.Config{})
	for _, kind := range commtest.Collectives {
		for _, registered := range []bool{false, true} {
			list := comms[0].DeviceAlgorithms(kind, 64, registered)
			explained, err := ringo.ExplainDevice(kind, 2, 0, 64, 0, ringo.GPUs{Registered: registered}, ringo.Config{})
			require.NoError(t, err)
			require.ElementsMatch(t, append(explained.Others, explained.Algo), list)
			for _, name := range list {
				memory := map[bool]string{false: "any", true: "registered"}[registered]
				_, err := ringo.ParsePlan("row", fmt.Sprintf("ringo plan 1\n%v 2 %s all %s\n", kind, memory, name))
				require.NoError(t, err)
			}
			algorithm, because := comms[0].DeviceChoice(kind, 64, registered)
			require.Contains(t, list, algorithm)
			require.NotEmpty(t, because)
		}
	}
}

// TestConfigPlan: rank 0's file counts for all ranks, and a fault of it is an error
// of all ranks.
func TestConfigPlan(t *testing.T) {
	tier.Long(t)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "my.plan")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	open := func(t *testing.T, names ...string) ([]*ringo.Comm, []error) {
		list := gputest.GPUs(t, len(names))
		id, err := ringo.NewID("")
		require.NoError(t, err)
		comms, errs := make([]*ringo.Comm, len(names)), make([]error, len(names))
		var wg sync.WaitGroup
		for r := range names {
			wg.Go(func() {
				comms[r], errs[r] = ringo.Open(context.Background(),
					ringo.Config{ID: &id, Rank: r, Size: len(names), Device: list[r], Plan: names[r]})
			})
		}
		wg.Wait()
		t.Cleanup(func() {
			for _, c := range comms {
				if c != nil {
					c.Close()
				}
			}
		})
		return comms, errs
	}
	good := file("ringo plan 1\nallreduce 2 any all doubling # quick\n")
	for name, files := range map[string][]string{"all": {good, good}, "rank 0": {good, ""},
		"another's does not matter": {good, "absent"}} {
		t.Run(name, func(t *testing.T) {
			comms, errs := open(t, files...)
			commtest.NoErrors(t, errs)
			for _, c := range comms {
				algorithm, because := c.DeviceChoice(ringo.KindAllReduce, 8, false)
				require.Equal(t, "doubling", algorithm)
				require.Equal(t, good+", line 2 (quick)", because)
			}
			parts := make([]*ringo.Comm, len(comms)) // the other one is first now
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
				part, err := c.Split(context.Background(), 0, -c.Rank())
				t.Cleanup(func() { part.Close() })
				parts[c.Rank()] = part
				return err
			}))
			for _, c := range parts {
				_, because := c.DeviceChoice(ringo.KindAllReduce, 8, false)
				require.Equal(t, good+", line 2 (quick)", because)
			}
		})
	}
	t.Run("of other GPUs", func(t *testing.T) {
		comms, errs := open(t, file("ringo plan 1\ngpu X1000\nallreduce 2 any all doubling\n"), "")
		commtest.NoErrors(t, errs)
		algorithm, because := comms[1].DeviceChoice(ringo.KindAllReduce, 8, false)
		others, errs := open(t, "", "")
		commtest.NoErrors(t, errs)
		usual, why := others[1].DeviceChoice(ringo.KindAllReduce, 8, false)
		require.NotEqual(t, "doubling", usual)
		require.Equal(t, usual, algorithm)
		require.Equal(t, why, because)
		name, err := comms[0].Device().Name()
		require.NoError(t, err)
		require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "it is for X1000, any path; these are "+name+", ")
	})
	bad := file("ringo plan 1\n\nallreduce 2 any all rong\n")
	for name, want := range map[string]string{bad: bad + `:3: algorithm "rong" is none of`,
		"absent": "absent: open absent: no such file"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			_, errs := open(t, name, "")
			for _, err := range errs {
				require.ErrorIs(t, err, ringo.ErrInvalid)
				var wrong *ringo.PlanError
				require.ErrorAs(t, err, &wrong)
				require.ErrorContains(t, err, "plan of rank 0: "+want)
				require.ErrorContains(t, err, `"ringo tune" writes a new one`)
			}
		})
	}
}
