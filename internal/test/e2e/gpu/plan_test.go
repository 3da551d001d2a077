package ringo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/mem"
)

// TestDeviceDirect: small operations take direct kernels, which need no program,
// unless another algorithm is asked for; all give what they should.
func TestDeviceDirect(t *testing.T) {
	const n, count = 3, 70
	for _, test := range []struct {
		algo  string
		kind  Kind
		by    choice.Carrier
		named call.Algo
	}{
		{"", KindAllReduce, choice.ByKernel, call.OneShot},
		{"oneshot", KindAllReduce, choice.ByKernel, call.OneShot},
		{"twoshot", KindAllReduce, choice.ByKernel, call.TwoShot},
		{"ring", KindAllReduce, choice.BySchedule, call.Ring},
		{"", KindReduceScatter, choice.ByKernel, call.Direct},
		{"direct", KindReduceScatter, choice.ByKernel, call.Direct},
		{"ring", KindReduceScatter, choice.BySchedule, call.Ring},
		{"", KindAllGather, choice.ByKernel, call.Direct},
		{"logstep", KindAllGather, choice.BySchedule, call.LogStep},
		{"", KindBroadcast, choice.ByKernel, call.Direct},
		{"tree", KindBroadcast, choice.BySchedule, call.Tree},
		{"", KindReduce, choice.ByKernel, call.Direct},
		{"", KindGather, choice.ByKernel, call.Direct},
		{"", KindScatter, choice.ByKernel, call.Direct},
		{"", KindAlltoAll, choice.ByKernel, call.Direct},
		{"ring", KindAlltoAll, choice.ByKernel, call.Direct},
		{"steps", KindAlltoAll, choice.BySchedule, call.Steps},
	} {
		t.Run(fmt.Sprintf("%v/%s", test.kind, test.algo), func(t *testing.T) {
			list := devices(t, n, gputest.NVLink())
			comms := onDevices(t, list, Config{Algo: test.algo})
			host := local(t, n, Config{})
			calls := make([]Call, n)
			var in, out []mem.Region
			for r, d := range list {
				x := make([]float32, n*count)
				for i := range x {
					x[i] = float32(i%17 + r)
				}
				in, out = append(in, alloc(t, d, floats(x))), append(out, alloc(t, d, make([]byte, 4*n*count)))
				calls[r] = Call{Kind: test.kind, In: mem.Of(x), Out: mem.Of(make([]float32, n*count)), Count: count, Type: Float32, Op: Sum, Root: 1}
			}
			noErrors(t, each(host, func(c *Comm) error { return c.Do(&calls[c.Rank()]) }))
			for range 3 {
				noErrors(t, each(comms, func(c *Comm) error {
					call := calls[c.Rank()]
					call.In, call.Out = in[c.Rank()], out[c.Rank()]
					return c.Do(&call)
				}))
			}
			for r, c := range comms {
				require.NoError(t, c.Synchronize(0))
				got := make([]byte, 4*n*count)
				require.NoError(t, list[r].Read(got, out[r]))
				require.Equal(t, calls[r].Out.Bytes(), got)
				mine := calls[r]
				mine.In, mine.Out = in[r], out[r]
				ans := c.gpu.Answer(&mine)
				require.Equal(t, test.named, ans.Algo)
				require.Equal(t, test.by, ans.By)
			}
		})
	}
}

// TestDeviceAlgorithms: what serves on GPUs can stand in a plan, and explain knows it
// without GPUs.
func TestDeviceAlgorithms(t *testing.T) {
	comms := onDevices(t, devices(t, 2, gputest.NVLink()), Config{})
	for _, kind := range collectives {
		for _, registered := range []bool{false, true} {
			list := comms[0].DeviceAlgorithms(kind, 64, registered)
			explained, err := ExplainDevice(kind, 2, 0, 64, 0, GPUs{Registered: registered}, Config{})
			require.NoError(t, err)
			require.ElementsMatch(t, append(explained.Others, explained.Algo), list)
			for _, name := range list {
				memory := map[bool]string{false: "any", true: "registered"}[registered]
				_, err := ParsePlan("row", fmt.Sprintf("ringo plan 1\n%v 2 %s all %s\n", kind, memory, name))
				require.NoError(t, err)
			}
			algorithm, because := comms[0].DeviceChoice(kind, 64, registered)
			require.Contains(t, list, algorithm)
			require.NotEmpty(t, because)
		}
	}
}

// TestConfigPlan: rank 0's file counts for all ranks, and what is wrong with it
// all ranks say.
func TestConfigPlan(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "my.plan")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	open := func(t *testing.T, names ...string) ([]*Comm, []error) {
		list := devices(t, len(names))
		id, err := NewID("")
		require.NoError(t, err)
		comms, errs := make([]*Comm, len(names)), make([]error, len(names))
		var wg sync.WaitGroup
		for r := range names {
			wg.Go(func() {
				comms[r], errs[r] = Open(context.Background(), Config{ID: &id, Rank: r, Size: len(names), Device: list[r], Plan: names[r]})
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
	for name, files := range map[string][]string{"all": {good, good}, "rank 0": {good, ""}, "another's does not matter": {good, "absent"}} {
		t.Run(name, func(t *testing.T) {
			comms, errs := open(t, files...)
			noErrors(t, errs)
			for _, c := range comms {
				algorithm, because := c.DeviceChoice(KindAllReduce, 8, false)
				require.Equal(t, "doubling", algorithm)
				require.Equal(t, good+", line 2 (quick)", because)
			}
			parts := make([]*Comm, len(comms)) // the other one is first now
			noErrors(t, each(comms, func(c *Comm) error {
				part, err := c.Split(context.Background(), 0, -c.Rank())
				t.Cleanup(func() { part.Close() })
				parts[c.Rank()] = part
				return err
			}))
			for _, c := range parts {
				_, because := c.DeviceChoice(KindAllReduce, 8, false)
				require.Equal(t, good+", line 2 (quick)", because)
			}
		})
	}
	t.Run("of other GPUs", func(t *testing.T) {
		comms, errs := open(t, file("ringo plan 1\ngpu X1000\nallreduce 2 any all doubling\n"), "")
		noErrors(t, errs)
		algorithm, because := comms[1].DeviceChoice(KindAllReduce, 8, false)
		others, errs := open(t, "", "")
		noErrors(t, errs)
		usual, why := others[1].DeviceChoice(KindAllReduce, 8, false)
		require.NotEqual(t, "doubling", usual)
		require.Equal(t, usual, algorithm)
		require.Equal(t, why, because)
		name, err := comms[0].Device().Name()
		require.NoError(t, err)
		require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "it is for X1000, any path; these are "+name+", ")
	})
	bad := file("ringo plan 1\n\nallreduce 2 any all rong\n")
	for name, want := range map[string]string{bad: bad + `:3: algorithm "rong" is none of`, "absent": "absent: open absent: no such file"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			_, errs := open(t, name, "")
			for _, err := range errs {
				require.ErrorIs(t, err, ErrInvalid)
				var wrong *PlanError
				require.ErrorAs(t, err, &wrong)
				require.ErrorContains(t, err, "plan of rank 0: "+want)
				require.ErrorContains(t, err, `"ringo tune" writes a new one`)
			}
		})
	}
}
