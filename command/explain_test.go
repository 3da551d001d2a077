package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExplainDevice: what GPUs do, by which row of which plan, without a GPU.
func TestExplainDevice(t *testing.T) {
	t.Setenv("RINGO_CUDA_LIBRARY", "/nowhere/libcuda.so.1")
	plan := filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, os.WriteFile(plan, []byte("ringo plan 1\nallgather 4 registered all copies # quiet\nallgather 4 any all steps\n"), 0o644))
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"built-in":   {[]string{"allreduce", "--device", "cuda", "-s", "1M"}, []string{"4 ranks of one host, GPU memory", "algorithm: twoshot", "built-in plan h200.plan, line ", "blocks:    up to 69 of a GPU: as many as there is work for", "others:    ring, tree, oneshot, doubling, halving", "one kernel or copy engines"}},
		"large":      {[]string{"allreduce", "--device", "cuda", "-s", "1G"}, []string{"algorithm: ring", "cost:", "rank 3"}},
		"model":      {[]string{"allreduce", "--device", "cuda", "--gpu", "NVIDIA B300"}, []string{"algorithm: ", "the sim model of the path"}},
		"host":       {[]string{"broadcast", "--device", "cuda", "--path", "host memory", "-s", "8"}, []string{"algorithm: binomial", "the sim model of the path"}},
		"hosts":      {[]string{"allreduce", "--device", "cuda", "-np", "16", "--node", "8", "-s", "64M"}, []string{"algorithm: hier", "the sim model of the path"}},
		"many":       {[]string{"allreduce", "--device", "cuda", "-np", "1000", "-s", "64M"}, []string{"algorithm: ring", "large data"}},
		"file":       {[]string{"allgather", "--device", "cuda", "--plan", plan}, []string{"algorithm: steps", "my.plan, line 3", "rank 3"}},
		"blocks":     {[]string{"allgather", "--device", "cuda", "--policy", "zero", "--registered", "-s", "64"}, []string{"algorithm: copies", "policy zero", "blocks:    up to 1 of a GPU: two kernels"}},
		"thrifty":    {[]string{"allreduce", "-np", "2", "--device", "cuda", "--policy", "1", "--max-blocks", "40", "-s", "1G"}, []string{"algorithm: ring", "blocks:    up to 40 of a GPU: MaxBlocks"}},
		"bulk":       {[]string{"broadcast", "-np", "2", "--device", "cuda", "--max-blocks", "8", "-s", "1G"}, []string{"blocks:    up to 8 of a GPU", "moves:     by bulk copies"}},
		"registered": {[]string{"allgather", "--device", "emu", "--plan", plan, "--registered"}, []string{"algorithm: copies", "my.plan, line 2 (quiet)", "others:", "window"}},
		"asked":      {[]string{"allgather", "--device", "cuda", "--algo", "logstep"}, []string{"algorithm: logstep", "asked for"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := ringoHere(append([]string{"explain"}, test.args...)...)
			require.Zero(t, code, stderr)
			for _, want := range test.want {
				require.Contains(t, out, want)
			}
		})
	}
	for want, args := range map[string][]string{
		`unknown device "gpu"`:                         {"--device", "gpu"},
		"--gpu, --path, --registered":                  {"--registered"},
		`path "rail" is none of p2p`:                   {"--device", "cuda", "--path", "rail"},
		"policy \"much\" is none of":                   {"--device", "cuda", "--policy", "much"},
		"numbers of blocks are for GPU memory":         {"--max-blocks", "4"},
		"MinBlocks (RINGO_MIN_CTAS) is 9":              {"--device", "cuda", "--max-blocks", "4", "--min-blocks", "9"},
		"absent.plan: open absent.plan":                {"--device", "cuda", "--plan", "absent.plan"},
		`unknown algorithm "rong"; did you mean ring?`: {"--device", "cuda", "--algo", "rong"},
	} {
		code, _, stderr := ringoHere(append([]string{"explain", "reduce"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}
