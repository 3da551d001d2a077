package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

// traceOf runs bench with -trace, and returns the trace and the output.
func traceOf(t *testing.T, args ...string) (*trace.Trace, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.json")
	_, out := measureHere(t, append(args, "-trace", file, "-c", "0")...)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	whole, err := trace.Read(f)
	require.NoError(t, err)
	require.NoError(t, whole.Check())
	return whole, out
}

// A trace of processes has the calls of all ranks: each has every step of its schedule, in the first round, in order.
func TestTraceOfProcesses(t *testing.T) {
	whole, out := traceOf(t, "allreduce", "-np", "3", "-b", "96K", "-e", "96K", "-algo", "ring")
	require.Regexp(t, `# trace: .*trace.json has the steps of \d+ calls; ui.perfetto.dev shows it`, out)
	require.Regexp(t, `# rank \d came last to \d+ % of \d+ calls, .* after the first`, out)
	want, err := ringo.Explain(ringo.KindAllReduce, 3, 0, 96<<10, 0, ringo.Config{Algo: "ring"})
	require.NoError(t, err)
	calls := map[int]int{}
	for _, c := range whole.Calls {
		if c.Kind != "AllReduce" || c.Algo != "ring" || c.Bytes != 96<<10 {
			continue
		}
		calls[c.Rank]++
		require.Zero(t, c.Lost)
		r, i := sched.Rank(c.Rank), 0
		for _, s := range c.Steps {
			if s.What != trace.Step {
				continue
			}
			st := want.Schedule.At(r, i)
			require.Equal(t, []int32{0, int32(i), int32(st.Recv), int32(st.Send)}, []int32{s.Round, s.Step, s.Recv, s.Send})
			i++
		}
		require.Equal(t, want.Schedule.Len(r), i)
	}
	require.Equal(t, map[int]int{0: 4, 1: 4, 2: 4}, calls, "two iterations out of place and two in place")
	require.Positive(t, whole.Arrivals(whole.Calls[0].Comm).Calls)
}

// Ranks of one process each have their own record.
func TestTraceOfGoroutines(t *testing.T) {
	whole, _ := traceOf(t, "sendrecv", "-np", "3", "-transport", "inproc", "-b", "4K", "-e", "4K")
	ranks := map[int]int{}
	for _, c := range whole.Calls {
		if c.Kind == "Send" || c.Kind == "Recv" {
			ranks[c.Rank]++
		}
	}
	require.Equal(t, map[int]int{0: ranks[0], 1: ranks[0], 2: ranks[0]}, ranks)
	require.Positive(t, ranks[0])
}

// On GPUs a call is on two tracks: the host queues it, the GPU carries it out.
func TestTraceOfGPUs(t *testing.T) {
	whole, out := traceOf(t, "allreduce", "-device", "emu", "-unchecked", "-g", "2", "-b", "256", "-e", "256")
	require.Regexp(t, `# rank \d came last to \d+ % of \d+ calls`, out)
	seen := map[int]int{}
	for _, c := range whole.Calls {
		if c.GPU && c.Bytes == 256 {
			seen[c.Rank]++
			require.LessOrEqual(t, c.Queued, c.Issued)
			require.Less(t, c.Start, c.End)
		}
	}
	require.Equal(t, map[int]int{0: 4, 1: 4}, seen)
}

func TestTraceToNowhere(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none", "t.json")
	_, err := parse("allreduce", "-trace", none)
	require.ErrorContains(t, err, "-trace "+none+": ")
}
