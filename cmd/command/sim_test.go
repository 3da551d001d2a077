package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/sched/sim"
)

func TestSim(t *testing.T) {
	code, out, stderr := ringoHere("sim", "allreduce", "-np", "32", "-s", "8,1M", "-algo", "all", "-net", "nvlink",
		"-parts")
	require.Zero(t, code, stderr)
	require.GreaterOrEqual(t, strings.Count(out, "\n"), 2+2*2*2)
	require.Contains(t, out, "nodes of 8")
	require.Contains(t, out, "of which: latency")
}

// The choice goes by the nodes of a net as by -node.
func TestSimNodes(t *testing.T) {
	rows := func(args ...string) string {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "64", "-s", "64M"}, args...)...)
		require.Zero(t, code, stderr)
		_, rows, _ := strings.Cut(out, "\n") // its first line repeats the question
		return strings.Join(strings.Fields(rows)[:20], " ")
	}
	own := rows("-net", "nvlink")
	require.NotContains(t, own, " doubling ")
	require.Equal(t, own, rows("-net", "nvlink", "-node", "8"))
	require.NotEqual(t, own, rows("-net", "nvlink", "-node", "4"))
	require.Contains(t, rows("-net", "shm"), " ring ", "all on one node")
}

// A slow link and a dead card make a collective slower, and only on several nodes.
func TestSimWeak(t *testing.T) {
	time := func(args ...string) float64 {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "32", "-s", "64M", "-algo", "hier"},
			args...)...)
		require.Zero(t, code, stderr)
		us, err := strconv.ParseFloat(strings.Fields(strings.Split(out, "\n")[2])[2], 64)
		require.NoError(t, err)
		return us
	}
	whole := time("-net", "nvlink")
	require.Greater(t, time("-net", "nvlink", "-weak", "0,1:2"), 1.1*whole)
	require.Greater(t, time("-net", "nvlink", "-weak", "5:10"), 2*whole)
	require.Equal(t, whole, time("-net", "nvlink", "-weak", "5:1"))
	for _, bad := range []string{"5", "x:2", "32:2", "0:0.5", "0:x"} {
		code, _, stderr := ringoHere("sim", "allreduce", "-np", "32", "-weak", bad)
		require.Equal(t, 2, code)
		if bad == "32:2" {
			bad = `"32" is no rank of 32`
		}
		require.Regexp(t, "-weak:? "+bad, stderr)
	}
}

// A user's own network has the same times by flags and by a file.
func TestSimOwnNet(t *testing.T) {
	report := func(args ...string) simReport {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "32", "-s", "64M", "-algo", "hier", "-json",
			"-"}, args...)...)
		require.Zero(t, code, stderr)
		var r simReport
		require.NoError(t, json.Unmarshal([]byte(out), &r), out)
		require.Len(t, r.Rows, 1)
		require.Equal(t, "hier", r.Rows[0].Algorithm)
		return r
	}
	preset := report("-net", "nvlink").Rows[0].Time
	require.Equal(t, preset, report("-net", "nvlink", "-bw", "48GB").Rows[0].Time, "it has cards of 48 GB/s, one a rank")
	slow := report("-net", "nvlink", "-bw", "100G", "-cards", "2", "-latency", "20us")
	require.Greater(t, slow.Rows[0].Time, 4*preset)
	file := filepath.Join(t.TempDir(), "mine.json")
	require.NoError(t, os.WriteFile(file,
		[]byte(`{"like": "nvlink", "between": {"bandwidth": "100G", "shared": "200G", "latency": "20us"}}`), 0o644))
	require.InEpsilon(t, slow.Rows[0].Time, report("-net", file).Rows[0].Time, 1e-9)
	require.NoError(t, os.WriteFile(file, slow.Model, 0o644))
	require.InEpsilon(t, slow.Rows[0].Time, report("-net", file).Rows[0].Time, 1e-6, "a report's model can be used again")
	report("-net", "shm", "-node", "8", "-bw", "400G", "-latency", "1us") // a net without links between nodes needs -bw

	_, out, _ := ringoHere("sim", "-net", "list")
	require.Contains(t, out, "ndr          InfiniBand NDR: nodes of 8; inside CPU shared memory, 12 GB/s a rank")
	none := filepath.Join(t.TempDir(), "none")
	for want, args := range map[string][]string{
		`unknown net "nvlnk"; did you mean nvlink?`:                               {"-net", "nvlnk"},
		"all 32 ranks are on one: give -node":                                     {"-net", "shm", "-bw", "400G"},
		"-net shm has nothing between nodes: give -bw":                            {"-net", "shm", "-node", "8", "-cards", "2"},
		`-bw fast: rate "fast"`:                                                   {"-bw", "fast"},
		"-cards -1: want 1 or more":                                               {"-cards", "-1"},
		"absent.json: no such file":                                               {"-net", "absent.json"},
		"-json " + filepath.Join(none, "x") + ": open " + none + ": no such file": {"-json", filepath.Join(none, "x")},
	} {
		code, _, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "32"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}

func TestSimPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.svg")
	code, _, stderr := ringoHere("sim", "allreduce", "-np", "8", "-net", "shm", "-s", "1M,8,1K", "-algo", "ring,tree",
		"-plot", file)
	require.Zero(t, code, stderr)
	picture, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(picture), "allreduce: 8 ranks, shared memory (modelled)")
	require.Contains(t, string(picture), ">tree<")
	for _, file := range []string{"x.gif", filepath.Join(t.TempDir(), "none", "x.svg")} {
		code, _, stderr := ringoHere("sim", "allreduce", "-np", "8", "-plot", file)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "-plot "+file)
	}
}

// TestSimChoosesTheLeast asks for random collectives, ranks, sizes and nets: of all rows the chosen one takes the least
// time, and it is the one row where no algorithm is asked for.
func TestSimChoosesTheLeast(t *testing.T) {
	report := func(args ...string) (rows []*simRow) {
		t.Helper()
		code, out, stderr := ringoHere(append(append([]string{"sim"}, args...), "-json", "-")...)
		require.Zero(t, code, stderr)
		var r simReport
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r.Rows
	}
	least := func(a, b *simRow) int { return cmp.Compare(a.Time, b.Time) }
	random := rand.New(rand.NewPCG(1, 2))
	nets := slices.Sorted(maps.Keys(sim.Presets))
	for range tier.Count(12, 200) {
		args := []string{[]string{"allreduce", "allgather", "reducescatter", "broadcast", "reduce"}[random.IntN(5)],
			"-np", fmt.Sprint(2 + random.IntN(39)), "-s", fmt.Sprint(8 + random.IntN(1<<(3+random.IntN(25)))),
			"-net", nets[random.IntN(len(nets))]}
		if net := sim.Presets[args[len(args)-1]]; net.Inter.Bandwidth > 0 && random.IntN(4) > 0 {
			args = append(args, "-node", fmt.Sprint(1+random.IntN(11)))
		}
		all, auto := report(append(args, "-algo", "all")...), report(args...)
		best := slices.MinFunc(all, least)
		chosen := slices.DeleteFunc(slices.Clone(all), func(r *simRow) bool { return !r.Chosen })
		require.Len(t, chosen, 1, "%v", args)
		require.Equal(t, best.Time, chosen[0].Time, "%v: %s, not %s", args, chosen[0].Algorithm, best.Algorithm)
		require.Len(t, auto, 1, "%v", args)
		require.True(t, auto[0].Chosen)
		require.Equal(t, best.Time, auto[0].Time, "%v: %s, not %s", args, auto[0].Algorithm, best.Algorithm)
		some := report(append(args, "-algo", best.Algorithm+","+all[0].Algorithm)...)
		for _, r := range some {
			require.Equal(t, r.Algorithm == chosen[0].Algorithm, r.Chosen, "%v", args)
		}
	}
	large := report("allreduce", "-np", "1024", "-net", "nvlink") // whose rings have too many steps
	require.Len(t, large, 1)
	require.Less(t, large[0].Time, 14_000.0, large[0].Algorithm)
}

// A simulation that would take hours is worked out from its first pieces; with -exact it ends at -timeout.
func TestSimOfVeryManySteps(t *testing.T) {
	defer func(n int) { simSteps = n }(simSteps)
	simSteps = 200_000
	const huge = "500G"
	code, out, stderr := ringoHere("sim", "allreduce", "-np", "100", "-s", huge, "-algo", "oneshot", "-net", "shm",
		"-timeout", "1m")
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^# +from the first 10 of 1024000 pieces of the data; -exact carries out all$`, out)

	code, _, stderr = ringoHere("sim", "allreduce", "-np", "100", "-s", huge, "-algo", "oneshot", "-exact", "-timeout",
		"1ns")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "oneshot of 500G: sim: took longer than 1ns (-timeout)")
	code, _, stderr = ringoHere("sim", "allreduce", "-timeout", "-1s")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "-timeout -1s: want 0 or more")

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt signal received"))
	var complaints bytes.Buffer
	code = ringoMain(ctx, []string{"sim", "allreduce", "-np", "100", "-s", huge, "-algo", "oneshot", "-exact"},
		&bytes.Buffer{}, &complaints)
	require.Equal(t, 1, code)
	require.Contains(t, complaints.String(), "interrupt signal received")
}

// TestSimOfVeryManyPieces: -exact keeps a time for each piece.
func TestSimOfVeryManyPieces(t *testing.T) {
	code, stdout, stderr := ringoHere("sim", "allreduce", "-np", "4", "-s", "8,1000000T", "-exact")
	require.Equal(t, 2, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "-exact: 1000000T are ")
}

// TestSimOutOfMemory: pairs of ranks that talk are counted while they come, and a run ends before memory does.
func TestSimOutOfMemory(t *testing.T) {
	defer func(was func() int64) { freeMemory = was }(freeMemory)
	tier.Heavy(t) // it takes a second of a core
	begun := memory()
	freeMemory = func() int64 { return 2 * (begun + 24<<20) }
	code, _, stderr := ringoHere("sim", "alltoall", "-np", "10000", "-algo", "direct", "-s", "1K", "-timeout", "1m")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "-np 10000: the pairs of ranks that talk have taken ")
	require.Less(t, memory(), begun+256<<20)
}
