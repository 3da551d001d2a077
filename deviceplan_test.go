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

	"github.com/ringo-go/ringo/mem"
)

// TestDeviceDirect: small operations take direct kernels, which need no program,
// unless another algorithm is asked for; all give what they should.
func TestDeviceDirect(t *testing.T) {
	const n, count = 3, 70
	for _, test := range []struct {
		algo     string
		kind     Kind
		programs int
		named    algo
	}{
		{"", KindAllReduce, 0, call.OneShot},
		{"oneshot", KindAllReduce, 0, call.OneShot},
		{"twoshot", KindAllReduce, 0, call.TwoShot},
		{"ring", KindAllReduce, 1, call.Ring},
		{"", KindReduceScatter, 0, call.Direct},
		{"direct", KindReduceScatter, 0, call.Direct},
		{"ring", KindReduceScatter, 1, call.Ring},
		{"", KindAllGather, 0, call.Direct},
		{"logstep", KindAllGather, 1, call.LogStep},
		{"", KindBroadcast, 0, call.Direct},
		{"tree", KindBroadcast, 1, call.Tree},
		{"", KindReduce, 0, call.Direct},
		{"", KindGather, 0, call.Direct},
		{"", KindScatter, 0, call.Direct},
		{"", KindAlltoAll, 0, call.Direct},
		{"ring", KindAlltoAll, 0, call.Direct},
		{"steps", KindAlltoAll, 1, call.Steps},
	} {
		t.Run(fmt.Sprintf("%v/%s", test.kind, test.algo), func(t *testing.T) {
			list := devices(t, n)
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
				require.Len(t, c.dev.programs, test.programs)
				require.Equal(t, test.named, c.dev.choose(test.kind, 4*count, false))
			}
		})
	}
}

// TestDeviceChoose: the first row counts that covers a call and can serve; Algo goes
// before, where the collective has it.
func TestDeviceChoose(t *testing.T) {
	p, err := ParsePlan("my.plan", `ringo plan 1
gpu      G
allreduce  4 registered all window
allreduce  4 any        1K  twoshot
allgather  4 registered 64K window
allgather  4 registered 1M  copies
broadcast  4 registered all window
alltoall   4 any        4K  direct
alltoall   4 any        all steps
scatter    4 registered all window
scatter    4 any        all steps
`)
	require.NoError(t, err)
	f := &fabric{gpus: []string{"G", "G", "G", "G"}, near: overP2P, far: overP2P, topo: topology{4, 4}}
	for _, test := range []struct {
		name, algo string
		direct     bool
		kind       Kind
		bytes      int
		registered bool
		want       algo
		because    string
	}{
		{"row", "", true, KindAllReduce, 1024, false, call.TwoShot, "my.plan, line 4"},
		{"registered", "", true, KindAllReduce, 1024, true, call.Window, "my.plan, line 3"},
		{"no window", "", false, KindAllReduce, 1024, true, call.TwoShot, "my.plan, line 4"},
		{"size in shares", "", true, KindAllGather, 16 << 10, true, call.Window, "my.plan, line 5"},
		{"next row", "", true, KindAllGather, 16<<10 + 1, true, call.Copies, "my.plan, line 6"},
		{"behind registered rows", "", true, KindAllGather, 1 << 20, true, call.Direct, fromModel},
		{"not by windows", "", false, KindBroadcast, 64, true, call.Binomial, fromModel},
		{"model", "", true, KindReduce, 64, false, call.Direct, fromModel},
		{"steps", "", true, KindAlltoAll, 4 << 10, false, call.Steps, "my.plan, line 9"},
		{"root in place", "", true, KindScatter, 64, true, call.Steps, "my.plan, line 11"},
		{"not in place", "window", true, KindScatter, 64, true, call.Window, asked},
		{"forced", "tree", true, KindAllReduce, 64, true, call.Tree, asked},
		{"forced window", "window", true, KindAllGather, 1 << 30, true, call.Window, asked},
		{"cannot be forced", "window", true, KindAllReduce, 64, false, call.TwoShot, "my.plan, line 4"},
		{"has none of that name", "ring", true, KindAlltoAll, 64, false, call.Direct, "my.plan, line 8"},
		{"not in a plan", "", true, KindSend, 64, false, call.Direct, "the default of the collective"},
		{"too long for a kernel", "oneshot", true, KindAllReduce, 2 << 30, false, call.OneShot, asked},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := planner{topo: f.topo, can: paperKernels(test.direct), rows: rowsFor(p, f, paperKernels(test.direct))}
			c.forced, _ = parseAlgo(test.algo)
			require.Equal(t, test.want, c.choose(test.kind, test.bytes, test.registered))
			require.Equal(t, test.because, c.because(test.kind, test.bytes, test.registered))
			require.Zero(t, testing.AllocsPerRun(1000, func() { c.choose(test.kind, test.bytes, test.registered) }))
			var rows planRows
			require.NoError(t, rows.decode(c.rows.encode()))
			require.Equal(t, c.rows, rows)
		})
	}
	f.gpus[2] = "H"
	rows := rowsFor(p, f, paperKernels(true))
	require.Equal(t, fromModel, rows[KindAllReduce][0][0].From, "other GPUs")
}

// TestDeviceAlgorithms: what serves on GPUs can stand in a plan, and explain knows it
// without GPUs.
func TestDeviceAlgorithms(t *testing.T) {
	comms := onDevices(t, devices(t, 2), Config{})
	for _, kind := range planKinds {
		for _, registered := range []bool{false, true} {
			list := comms[0].DeviceAlgorithms(kind, 64, registered)
			require.Subset(t, algorithmsOnGPUs(kind, registered), list)
			p := planner{topo: topology{2, 2}, can: paperKernels(true)}
			require.Equal(t, p.names(kind, 64, registered), list)
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
		require.Equal(t, "oneshot", algorithm)
		require.Equal(t, fromModel, because)
		require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "it is for X1000, any path; these are Emulated GPU, p2p")
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

// BenchmarkDeviceChoose is what each call pays for a choice, here of the last row.
func BenchmarkDeviceChoose(b *testing.B) {
	f := &fabric{near: overP2P, far: overP2P, topo: topology{4, 4}, gpus: []string{"NVIDIA H200"}}
	p := planner{topo: f.topo, can: paperKernels(true), rows: rowsFor(nil, f, paperKernels(true))}
	b.ReportAllocs()
	for b.Loop() {
		p.choose(KindAllReduce, 1<<30, true)
	}
}
