package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

func readTrace(t *testing.T, file string) *trace.Trace {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	whole, err := trace.Read(f)
	require.NoError(t, err)
	require.NoError(t, whole.Check())
	return whole
}

// The model's trace has every step of every rank, and ends when the model does.
func TestSimTrace(t *testing.T) {
	dir := t.TempDir()
	file, rows := filepath.Join(dir, "t.json"), filepath.Join(dir, "rows.json")
	code, _, stderr := ringoHere("sim", "allreduce", "-np", "3", "-s", "3M,48", "-net", "shm", "-algo", "ring", "-trace",
		file, "-json", rows)
	require.Zero(t, code, stderr)
	calls := readTrace(t, file).Calls
	require.Len(t, calls, 6)
	s := ring.AllReduce{N: 3}
	for i, c := range calls {
		require.True(t, c.Model)
		require.Equal(t, []any{"AllReduce", "ring", 3, i % 3, []int{3 << 20, 48}[i/3]},
			[]any{c.Kind, c.Algo, c.Size, c.Rank, c.Bytes})
		n, waits := 0, 0
		for _, x := range c.Steps {
			if x.What != trace.Step {
				waits++
				continue
			}
			st := s.At(sched.Rank(c.Rank), n%s.Len(0))
			require.Equal(t, []int32{int32(n / s.Len(0)), int32(n % s.Len(0)), int32(st.Recv), int32(st.Send)},
				[]int32{x.Round, x.Step, x.Recv, x.Send})
			n++
		}
		require.Zero(t, n%s.Len(0))
		require.Equal(t, i < 3, n > s.Len(0), "only the large one has several pieces")
		require.True(t, i < 3 || waits > 0, "small messages are waited for")
	}
	require.Equal(t, calls[3].Start, max(calls[0].End, calls[1].End, calls[2].End), "the rows follow each other")
}

// With -over a row of the model begins with the last measured call like it, on the same ranks and communicator.
func TestSimTraceOver(t *testing.T) {
	dir := t.TempDir()
	measured, both := filepath.Join(dir, "measured.json"), filepath.Join(dir, "both.json")
	whole := &trace.Trace{}
	for r := range 2 {
		for n, bytes := range []int{96, 96, 48} {
			at := int64(n*1_000_000 + r*100)
			whole.Calls = append(whole.Calls, trace.Call{Comm: "c0ffee00", Rank: r, Size: 2, Host: "a", Number: uint32(n + 1),
				Kind: "AllReduce", Algo: "ring",
				Bytes: bytes, Peer: -1, Start: at, End: at + 500_000,
				Steps: []trace.Span{{Start: at, End: at + 1000, Recv: -1, Send: int32(1 - r)}}})
		}
	}
	f, err := os.Create(measured)
	require.NoError(t, err)
	require.NoError(t, whole.Write(f))
	require.NoError(t, f.Close())
	code, _, stderr := ringoHere("sim", "allreduce", "-np", "2", "-s", "96", "-net", "shm", "-algo", "ring", "-trace",
		both, "-over", measured)
	require.Zero(t, code, stderr)
	calls := readTrace(t, both).Calls
	require.Len(t, calls, 8)
	require.EqualExportedValues(t, whole.Calls, calls[:6])
	for r, c := range calls[6:] {
		require.Equal(t, []any{true, "c0ffee00", uint32(2), r, int64(1_000_100)},
			[]any{c.Model, c.Comm, c.Number, c.Rank, c.Start})
		require.Equal(t, calls[1].Title(), c.Title())
		require.Equal(t, calls[3*r].Steps[0].Title(), c.Steps[0].Title())
	}
	none := filepath.Join(dir, "none")
	for want, args := range map[string][]string{
		"give -trace FILE too": {"-over", measured},
		"absent.json":          {"-trace", both, "-over", "absent.json"},
		"-trace " + none:       {"-trace", filepath.Join(none, "x")},
		"trace: format is":     {"-trace", both, "-over", ""},
	} {
		if want == "trace: format is" {
			args[3] = filepath.Join(dir, "other.json")
			require.NoError(t, os.WriteFile(args[3], []byte(`{"traceEvents":[]}`), 0o600))
		}
		code, _, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "2", "-s", "96"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}

// The drawing of a trace has a track for each rank, the numbers of steps, and the ranks for which they wait.
func TestPlotTrace(t *testing.T) {
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "t.json"), filepath.Join(dir, "t.svg")
	code, _, stderr := ringoHere("sim", "allreduce", "-np", "3", "-s", "48", "-net", "shm", "-algo", "ring", "-trace",
		file)
	require.Zero(t, code, stderr)
	code, out, stderr := ringoHere("plot", "-o", picture, file)
	require.Zero(t, code, stderr)
	require.Equal(t, picture+"\n", out)
	b, err := os.ReadFile(picture)
	require.NoError(t, err)
	for _, want := range []string{">AllReduce ring 48 B<", ">rank 2, model<", ">4</text>", ">rank 1</text>",
		"waits for a message"} {
		require.Contains(t, string(b), want)
	}
	for want, args := range map[string][]string{
		"-call 7: the trace has no such collective": {"-o", picture, "-call", "7", file},
		"drawn as .svg":             {"-o", filepath.Join(dir, "t.html"), file},
		"is a trace: give it alone": {"-o", picture, file, file},
	} {
		code, _, stderr = ringoHere(append([]string{"plot"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}
