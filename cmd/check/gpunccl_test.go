package check

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/nccl"
	"github.com/ringo-go/ringo/internal/test/nccltest"
)

// NCCL's collectives are verified, and its faults told from those of GPUs.
func TestNCCL(t *testing.T) {
	ill := []cudaemu.Injection{{Call: "cuLaunchKernel", Chance: 1, Device: 2, Result: 999}}
	for _, c := range []*struct {
		name   string
		lib    nccltest.World
		faults []cudaemu.Injection
		want   []string
		says   string
	}{
		{name: "well"},
		{name: "wrong", lib: nccltest.World{Wrong: true}, want: []string{"nccl-fails host a"}, says: "are wrong, element"},
		{name: "fails", lib: nccltest.World{Fails: "ncclAllGather"}, want: []string{"nccl-fails host a"},
			says: "NCCL 2.27.3 fails where ringo's collectives over the same GPUs do well: ncclAllGather: peer nccl: result 3"},
		{name: "does not start", lib: nccltest.World{Fails: "ncclCommInitAll"}, want: []string{"nccl-fails host a"},
			says: "ncclCommInitAll: peer nccl: result 3"},
		{name: "hangs", lib: nccltest.World{Hang: make(chan struct{})}, want: []string{"nccl-fails host a"},
			says: "it hangs"},
		{name: "both fail", lib: nccltest.World{Fails: "ncclAllReduce"}, faults: ill,
			want: []string{"gpu-collective host a", "nccl-fails-too host a"}, says: "collectives fail"},
		{name: "ringo fails", faults: ill, want: []string{"gpu-collective host a", "nccl-is-well host a"},
			says: "collectives fail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // ranks wait for what others know of a failure
			r := newRig(2, 1, "a")
			r.emu["a"].Faults = c.faults
			c.lib.Device = func(number int) (*gpu.Device, error) {
				m, err := gpu.Of(r.machines[0])
				if err != nil {
					return nil, err
				}
				return m.Device(number)
			}
			stages := gpuStages()
			cfg := config{Stages: []stage{stages[0], stages[len(stages)-1], ncclStage()}, gpus: r.source()}
			cfg.gpus.nccl = func(string) (ncclLibrary, error) { return c.lib.Open(), nil }
			for i := range cfg.Stages {
				cfg.Stages[i].Quick = 2 * time.Minute
			}
			if c.lib.Hang != nil {
				cfg.Stages[2].Quick = 50 * time.Millisecond
				defer close(c.lib.Hang)
			}
			report, errs := runAll(t, local("a"), cfg)
			require.NoError(t, errs[0])
			require.Equal(t, c.want, codes(report), "%v", report.Findings)
			require.Equal(t, "2.27.3", report.Of("GPU NCCL", "version")[0].Text)
			if c.says != "" {
				require.Contains(t, report.Findings[0].Text, c.says)
			}
			if c.want == nil {
				require.Equal(t, "GPUs 0,1", report.Of("GPU NCCL", "all-reduce")[0].Text)
			}
		})
	}
}

// Where NCCL is not installed its stage is left out, and says why.
func TestNCCLThatIsNotThere(t *testing.T) {
	r := newRig(2, 1, "a")
	cfg := config{Stages: []stage{gpuStages()[0], ncclStage()}, NCCL: filepath.Join(t.TempDir(), "libnccl.so.2"),
		gpus: r.source()}
	cfg.gpus.nccl = openNCCL
	report, errs := runAll(t, local("a"), cfg)
	require.NoError(t, errs[0])
	require.Empty(t, report.Findings)
	require.Contains(t, report.Stages[1].result(report), "left out: ")
	require.Contains(t, report.Stages[1].Skipped, "libnccl.so.2")
}

// TestNCCLIsAsked: config.NCCL adds the stage, at the end.
func TestNCCLIsAsked(t *testing.T) {
	for _, c := range []struct {
		cfg  config
		want bool
	}{{config{}, false}, {config{NCCL: nccl.Default}, true}, {config{NCCL: nccl.Default, NoGPUs: true}, false}} {
		j := alone()
		_, _ = run(canceled(t), j, c.cfg)
		require.Equal(t, c.want, j.cfg.Stages[len(j.cfg.Stages)-1].Name == "GPU NCCL")
		require.NoError(t, j.Close())
	}
}
