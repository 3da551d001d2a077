package command

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExplainDevice explains the choices of GPUs, by which row of which plan, without a GPU.
func TestExplainDevice(t *testing.T) {
	t.Setenv("RINGO_CUDA_LIBRARY", filepath.Join(t.TempDir(), "libcuda.so.1"))
	plan := filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, os.WriteFile(plan,
		[]byte("ringo plan 1\nallgather 4 registered all copies # quiet\nallgather 4 any all steps\n"), 0o644))
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"built-in": {[]string{"allreduce", "-device", "cuda", "-s", "1M"},
			[]string{"4 ranks of one host, GPU memory", "algorithm: twoshot", "built-in plan h200.plan, line ",
				"blocks:    up to 69 of a GPU: as many as there is work for", "others:    ring, tree, oneshot, doubling, halving",
				"steps:     none, but: direct kernel twoshot"}},
		"large": {[]string{"allreduce", "-device", "cuda", "-s", "1G"}, []string{"algorithm: ring", "cost:", "rank 3"}},
		"model": {[]string{"allreduce", "-device", "cuda", "-gpu", "NVIDIA B300"},
			[]string{"algorithm: ", "the sim model of the path"}},
		"host": {[]string{"broadcast", "-device", "cuda", "-path", "host memory", "-s", "256K"},
			[]string{"algorithm: tree", "the sim model of the path"}},
		"lines": {[]string{"broadcast", "-device", "cuda", "-path", "host memory", "-s", "8"},
			[]string{"algorithm: direct", "direct kernel broadcast", "the sim model of the path"}},
		"hosts": {[]string{"allreduce", "-device", "cuda", "-np", "8", "-node", "4", "-s", "64M"},
			[]string{"algorithm: hier", "the sim model of the path"}},
		"many": {[]string{"allreduce", "-device", "cuda", "-np", "1000", "-s", "64M"},
			[]string{"algorithm: ring", "large data"}},
		"file": {[]string{"allgather", "-device", "cuda", "-plan", plan},
			[]string{"algorithm: steps", "my.plan, line 3", "rank 3"}},
		"norm": {[]string{"allreduce", "-device", "cuda", "-np", "2", "-s", "16K", "-row", "16K"},
			[]string{"algorithm: oneshot", "one kernel sums and finishes them", "blocks:    up to 9 of a GPU"}},
		"norm far": {[]string{"allreduce", "-device", "cuda", "-path", "bridge", "-s", "1M", "-row", "16K"},
			[]string{"algorithm: rank", "contributions are moved as they are", "then:"}},
		"blocks": {[]string{"allgather", "-device", "cuda", "-policy", "zero", "-registered", "-s", "64"},
			[]string{"algorithm: copies", "policy zero", "blocks:    up to 1 of a GPU: two kernels"}},
		"thrifty": {[]string{"allreduce", "-np", "2", "-device", "cuda", "-policy", "1", "-max-blocks", "40", "-s", "1G"},
			[]string{"algorithm: ring", "blocks:    up to 40 of a GPU: MaxBlocks"}},
		"bulk": {[]string{"broadcast", "-np", "2", "-device", "cuda", "-max-blocks", "8", "-s", "1G"},
			[]string{"blocks:    up to 8 of a GPU", "moves:     by bulk copies"}},
		"registered": {[]string{"allgather", "-device", "emu", "-plan", plan, "-registered"},
			[]string{"algorithm: copies", "my.plan, line 2 (quiet)", "others:", "window"}},
		"asked": {[]string{"allgather", "-device", "cuda", "-algo", "logstep"},
			[]string{"algorithm: logstep", "asked for"}},
		"not here": {[]string{"alltoall", "-algo", "Ring"},
			[]string{"algorithm: direct", "the default of the collective; -algo ring does not apply to this call"}},
		"in order": {[]string{"allreduce", "-deterministic", "-algo", "tree"},
			[]string{"algorithm: rank order", "; -algo tree does not apply to this call"}},
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
		`unknown device "gpu"`:                         {"-device", "gpu"},
		"-gpu, -path, -registered":                     {"-registered"},
		`unknown path "rail"; known are p2p`:           {"-device", "cuda", "-path", "rail"},
		"unknown policy":                               {"-device", "cuda", "-policy", "much"},
		"numbers of blocks are for GPU memory":         {"-max-blocks", "4"},
		"MinBlocks (RINGO_MIN_CTAS) is 9":              {"-device", "cuda", "-max-blocks", "4", "-min-blocks", "9"},
		`unknown path "pci"; did you mean pcie?`:       {"-device", "cuda", "-path", "pci"},
		"-steps al: did you mean all?":                 {"-steps", "al"},
		"-plan: open absent.plan":                      {"-device", "cuda", "-plan", "absent.plan"},
		`unknown algorithm "rong"; did you mean ring?`: {"-device", "cuda", "-algo", "rong"},
	} {
		code, _, stderr := ringoHere(append([]string{"explain", "reduce"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}

// The model's times of other algorithms, and the sizes at which the model would choose another one.
func TestExplainAlternatives(t *testing.T) {
	report := func(args ...string) (r explainReport) {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"explain", "-json", "-"}, args...)...)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(out), &r), out)
		return r
	}
	r := report("allreduce", "-np", "5", "-s", "16K")
	require.Equal(t, "doubling", r.Algorithm)
	require.Len(t, r.Alternatives, 6)
	require.True(t, slices.IsSortedFunc(r.Alternatives, func(a, b alternative) int { return cmp.Compare(a.Time, b.Time) }))
	require.NotEqual(t, "doubling", r.Alternatives[0].Algorithm)
	require.True(t, slices.ContainsFunc(r.Differences, func(d difference) bool {
		return d.From <= 16<<10 && d.To >= 16<<10 && d.Chosen == "doubling" && d.Model == r.Alternatives[0].Algorithm &&
			d.Less > 0.05
	}), "%+v", r.Differences)
	require.Len(t, r.Schedules, 1)
	require.Len(t, r.Schedules[0].Table, 5)
	require.NotEmpty(t, r.Schedules[0].Messages)

	_, out, _ := ringoHere("explain", "allreduce", "-np", "5", "-s", "16K")
	require.Contains(t, out, "model:     shared memory: one node")
	require.Contains(t, out, "doubling is chosen, where by the model")
	require.Regexp(t, `doubling +[0-9.]+ us +<- chosen`, out)
	require.NotContains(t, out, "differ:    at 16K to 16K")
	_, out, _ = ringoHere("explain", "allreduce", "-algo", "ring")
	require.Contains(t, out, "because:   asked for by -algo\n")
	require.NotContains(t, out, "differ:", "it is not the choice of anything")

	// Across hosts the model itself chooses, so the choice differs from the model's only by the rounding of sizes.
	r = report("allreduce", "-np", "4", "-node", "2", "-s", "16M")
	require.Equal(t, r.Algorithm, r.Alternatives[0].Algorithm)
	require.Contains(t, r.Model, "between them TCP")
	require.Empty(t, r.Differences)
	r = report("allgather", "-np", "31", "-node", "8", "-s", "32K")
	require.Contains(t, r.Model, "nodes of 7 to 8; inside CPU shared memory",
		"the last host is the short one, as a communicator would have it")
	require.Contains(t, r.Because, "several hosts")

	r = report("allgather", "-np", "2", "-device", "cuda", "-registered")
	require.Contains(t, r.Model, "path p2p")
	last := r.Alternatives[len(r.Alternatives)-1]
	require.Equal(t, alternative{Algorithm: "copies"}, last, "which the model does not know")
	require.Empty(t, report("allreduce", "-deterministic").Alternatives)
}

// TestExplainNetwork sets the rate of a host's network by the flag and by the variable.
func TestExplainNetwork(t *testing.T) {
	between := func(want string, args ...string) {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"explain", "allreduce", "-np", "4", "-node", "2"}, args...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, out, "TCP over "+want+" Gb/s a host")
	}
	between("25")
	between("100", "-host-mbps", "100000")
	t.Setenv("RINGO_HOST_MBPS", "300")
	between("0.3")
	between("100", "-host-mbps", "100000")
	code, _, stderr := ringoHere("explain", "allreduce", "-node", "2", "-host-mbps", "-1")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "-host-mbps -1: want Mbit/s")
}

// Explain ends when its context does, and does not count the steps of very large schedules.
func TestExplainEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt signal received"))
	block := make(chan struct{})
	defer close(block)
	require.ErrorContains(t, interruptible(ctx, func() error { <-block; return nil }), "interrupt signal")
	code, out, stderr := ringoHere("explain", "alltoall", "-np", "2048", "-steps", "none")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "cost:      not counted: all ranks have")
}

func TestExplainPicture(t *testing.T) {
	code, out, stderr := ringoHere("explain", "allreduce", "-np", "3", "-algo", "ring", "-steps", "none", "-picture")
	require.Zero(t, code, stderr)
	_, drawn, _ := strings.Cut(out, "numbers are chunks\n")
	require.Equal(t, `hop  0       1       2
  1  ●─2────▶│       │
     │       ●─0────▶│
     │◀────────────1─●
  2  ●─1────▶│       │
     │       ●─2────▶│
     │◀────────────0─●
  3  ●─0────▶│       │
     │       ●─1────▶│
     │◀────────────2─●
  4  ●─2────▶│       │
     │       ●─0────▶│
     │◀────────────1─●
`, drawn)
	file := filepath.Join(t.TempDir(), "p.svg")
	code, _, stderr = ringoHere("explain", "allreduce", "-np", "16", "-node", "8", "-algo", "hier", "-o", file)
	require.Zero(t, code, stderr)
	svg, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	require.Contains(t, string(svg), `text-anchor="middle"`)
	require.Contains(t, string(svg), "16 ranks of hosts of 8")
	_, _, _ = ringoHere("explain", "allreduce", "-np", "8", "-algo", "oneshot", "-o", file)
	svg, _ = os.ReadFile(file)
	require.Equal(t, 8*7, strings.Count(string(svg), "marker-end="), "an arrow a message")

	// Messages of one hop between the same two ranks are one arrow, which names all chunks.
	code, _, stderr = ringoHere("explain", "allreduce", "-np", "8", "-algo", "halving", "-o", file)
	require.Zero(t, code, stderr)
	svg, _ = os.ReadFile(file)
	require.Contains(t, string(svg), ">4,5</text>")
	require.Contains(t, string(svg),
		"hop 1: rank 0 step 0 to rank 4 step 2, chunk 4\nhop 1: rank 0 step 1 to rank 4 step 4, chunk 5</title>")
	lines := regexp.MustCompile(`<line x1="([^"]*)" y1="([^"]*)" x2="([^"]*)" y2="([^"]*)" [^>]*marker-end`).FindAllString(string(svg), -1)
	require.Len(t, lines, len(slices.Compact(slices.Sorted(slices.Values(lines)))), "no arrow lies on another")

	none := filepath.Join(t.TempDir(), "none", "x")
	for want, args := range map[string][]string{
		"-o x.png: the name must end in .svg":    {"-o", "x.png"},
		"is one kernel or copy and has no steps": {"-device", "cuda", "-o", file},
		"-picture is of at most 16 ranks":        {"-np", "17", "-picture"},
		"-json " + none + ": ":                   {"-json", none},
	} {
		code, _, stderr := ringoHere(append([]string{"explain", "allreduce"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
	code, _, stderr = ringoHere("explain", "allreduce", "-np", "65", "-o", file)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "at most 64 ranks")
}
