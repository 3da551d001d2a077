package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestMain lets the test binary be the program that Run starts: itself with "bench".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		cfg, err := parse(os.Args[2:]...)
		if err == nil {
			cfg.Stdout, cfg.Stderr = os.Stdout, os.Stderr
			err = Run(context.Background(), cfg)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// measureHere runs bench and returns its report and its output.
func measureHere(t *testing.T, args ...string) (*Report, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	cfg, err := parse(append(args, "-json", file, "-n", "2", "-w", "1")...)
	require.NoError(t, err)
	var out, complaints bytes.Buffer
	cfg.Stdout, cfg.Stderr = &out, &complaints
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // no machine is so busy
	defer cancel()
	require.NoError(t, Run(ctx, cfg), "%s%s", out.String(), complaints.String())
	r, err := Load(file)
	require.NoError(t, err)
	return r, out.String()
}

// TestRuns: all results are right, whatever carries the ranks, and the report and the output say how it was.
func TestRuns(t *testing.T) {
	gpus := "-device emu -b 4K -e 4K -d bfloat16 -R 1 all "
	for _, c := range []struct {
		name, args string
		when       func(testing.TB)
		says       string // a line of the output
		check      func(t *testing.T, r *Report)
	}{
		{"everything", "all -np 3 -transport inproc -d all -o all -b 0 -e 1000 -f 100 -r -1", tier.Long,
			"Out of bounds values : 0 OK", func(t *testing.T, r *Report) {
				require.Equal(t, []any{3, 1, "inproc"}, []any{r.Ranks, r.Processes, r.Transport})
				require.Greater(t, len(r.Rows), 500)
				for _, row := range r.Rows {
					require.NotNil(t, row.OutOfPlace.Wrong, "%+v", row)
				}
			}},
		{"auto", "allreduce -np 2 -b 0 -e 64K -f 64", nil, "allreduce", nil},
		{"socket", "allreduce sendrecv -np 2 -transport socket -b 0 -e 64K -f 64", nil, "sendrecv", nil},
		{"tcp", "alltoall -np 3 -transport tcp -b 0 -e 64K -f 64", nil, "alltoall",
			func(t *testing.T, r *Report) { require.Equal(t, "tcp", r.Transport) }},
		{"many a process", "allgather -np 2 -g 2 -b 0 -e 64K -f 64", nil, "allgather", nil},
		{"one", "all -np 1 -b 0 -e 64K -f 64", nil, "sendrecv", nil},

		{"registered, one process", gpus + "-g 3 -algo window -r 1 -G 2", tier.Long, "memory registered", registered(true)},
		{"registered, two processes", gpus + "-np 2 -g 2 -algo window -r 3", tier.Heavy, "memory registered",
			registered(true)},
		{"registered, copy engines", gpus + "-np 2 -g 2 -algo copies", tier.Heavy, "memory registered", registered(true)},
		{"registered, out of reach", gpus + "-g 2 -algo window -transport shm", tier.Long,
			"memory not registered: ranks 0 and 1 do not reach each other's memory", registered(false)},

		{"groups", "all -np 2 -transport inproc -b 0 -e 100 -m 5 -f 10 -r 1", nil,
			"groups of 5 operations; times are of one", nil},
		{"groups on GPUs", "all -g 2 -device emu -b 8 -e 100 -m 5 -f 10 -r 1", nil,
			"groups of 5 operations; times are of one", nil},
		{"groups in graphs", "allreduce -g 2 -device emu -b 8 -e 8 -G 2 -R 1 -m 5", nil,
			"groups of 5 operations; times are of one", nil},

		{"norms", "-np 3 -transport inproc -d float16,bfloat16,float32" + norms, nil, normsSay, wholeRows},
		{"norms on GPUs", "-device emu -g 2 -d bfloat16" + norms, nil, normsSay, wholeRows},
		{"norms in graphs", "-device emu -g 2 -d float32 -G 2" + norms, nil, normsSay, wholeRows},

		{"cost", "allreduce -np 1 -g 2 -device emu -b 8 -e 8", nil, "opened in ", func(t *testing.T, r *Report) {
			require.Positive(t, r.Cost.Open)
			require.Positive(t, r.Cost.First)
			require.InDelta(t, 8, r.Cost.Memory, 4)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.when != nil {
				c.when(t)
			}
			r, out := measureHere(t, strings.Fields(c.args)...)
			require.Zero(t, r.Wrong())
			require.NotEmpty(t, r.Rows)
			require.Contains(t, out, "# "+c.says)
			if c.check != nil {
				c.check(t, r)
			}
		})
	}
}

func registered(want bool) func(t *testing.T, r *Report) {
	return func(t *testing.T, r *Report) { require.Equal(t, want, r.Registered) }
}

// What calls with a norm are measured with and say; their sizes are whole rows.
const (
	norms    = " allreduce reducescatter -row 240 -b 8 -e 1K -f 5"
	normsSay = "residual, RMSNorm and weight follow, of rows of 240, in the same call\n"
)

func wholeRows(t *testing.T, r *Report) {
	for _, row := range r.Rows {
		require.Zero(t, row.Size%240, "%+v", row)
		require.NotNil(t, row.InPlace.Wrong)
	}
}

func TestRunWithPeersAbsent(t *testing.T) {
	peers["nobody"] = &peer{name: "nobody", packages: "none", tools: []string{"no-such-compiler"},
		variants: peers["gloo"].variants}
	defer delete(peers, "nobody")
	cfg, err := parse("allreduce", "-np", "1", "-b", "8", "-e", "8", "-n", "1", "-reps", "2")
	require.NoError(t, err)
	cfg.Peers = []string{"nobody"}
	var out, complaints bytes.Buffer
	cfg.Stdout, cfg.Stderr = &out, &complaints
	require.NoError(t, Run(context.Background(), cfg), complaints.String())
	require.Contains(t, complaints.String(), "peer nobody: no-such-compiler not found; apt-get install none")
	require.Contains(t, out.String(), "0 OK")
}

// The worker must count each error of a wrong library.
func TestWorkerFindsWrongResults(t *testing.T) {
	comms, err := ringo.OpenLocal(1, ringo.Config{})
	require.NoError(t, err)
	defer comms[0].Close()
	cfg := NewConfig()
	cfg.Check = true
	cfg.Group = 3
	for name, damage := range map[string]func(p bufferPair){
		"one bit of the result":       func(p bufferPair) { p.out[17] ^= 4 },
		"the contribution":            func(p bufferPair) { p.in[5]++ },
		"the byte after the result":   func(p bufferPair) { p.out[: len(p.out)+1 : len(p.out)+1][len(p.out)]++ },
		"nothing written to the last": func(p bufferPair) { p.out[len(p.out)-1] ^= 0xff },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(cfg, comms[0])
			w.in, w.out = newBuffer(bufferBytes(4000, 3)), newBuffer(bufferBytes(4000, 3))
			op := w.operation("ringo", oneSeries("allreduce"), 1000, false)
			require.Len(t, op.pairs, 3)
			last := op.pairs[2]
			last.out = w.out.all[fence+8000 : fence+12000]
			once := op.once
			op.once = func() error { defer damage(last); return once() }
			wrong, err := w.verify(oneSeries("allreduce"), op)
			require.NoError(t, err)
			require.Equal(t, int64(1), wrong)
			require.Equal(t, int64(1), w.wrong)
		})
	}
}

func TestRoomFor(t *testing.T) {
	require.Equal(t, int64(112), bufferBytes(100, 1))
	require.Equal(t, int64(1120), bufferBytes(100, 10))
	require.Equal(t, int64(pairsBytes), bufferBytes(1<<20, 1000))
	require.Equal(t, int64(1<<30), bufferBytes(1<<30, 1000))
}

// childrenOf is the child processes of one.
func childrenOf(t *testing.T, pid string) (list []string) {
	tasks, err := filepath.Glob("/proc/" + pid + "/task/*/children")
	require.NoError(t, err)
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		list = append(list, strings.Fields(string(b))...)
	}
	return list
}

func TestKilledRankEndsTheOthers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the ranks in /proc")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	var complaints bytes.Buffer
	cmd := exec.Command(exe, "bench", "allreduce", "-np", "3", "-b", "64K", "-e", "64K", "-n", "4000000", "-w", "100")
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "# sizes ") { // printed when the ranks have met
	}
	require.NoError(t, lines.Err())
	var ranks []string
	for _, keeper := range childrenOf(t, strconv.Itoa(cmd.Process.Pid)) {
		ranks = append(ranks, childrenOf(t, keeper)...)
	}
	require.Len(t, ranks, 3)
	victim, err := strconv.Atoi(ranks[1])
	require.NoError(t, err)
	process, err := os.FindProcess(victim)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	killed := time.Now()
	for lines.Scan() { // to the end
	}
	require.Error(t, cmd.Wait())
	// real time: the others learn of the killed rank by its sockets
	require.Less(t, time.Since(killed), time.Minute, "the others would go on for much longer")
	require.Regexp(t, `rank \d: killed by signal 9`, complaints.String())
}

// With -np 0 only the open communicator knows how many ranks there are, so -r is checked then.
func TestRootBeyondTheRanks(t *testing.T) {
	cfg, err := parse("broadcast", "-np", "0", "-r", "2")
	require.NoError(t, err)
	comms, err := ringo.OpenLocal(2, ringo.Config{})
	require.NoError(t, err)
	defer comms[1].Close()
	defer comms[0].Close()
	require.EqualError(t, measureRanks(context.Background(), cfg, comms, 2, nil), "-r 2: the ranks are 0 to 1")
}

// Ranks that cannot be opened fail a run in this process.
func TestRunThatCannotOpen(t *testing.T) {
	t.Setenv("RINGO_SLOT_BYTES", "many")
	cfg, err := parse("allreduce", "-np", "1", "-g", "2", "-e", "8")
	require.NoError(t, err)
	cfg.Stdout, cfg.Stderr = io.Discard, io.Discard
	require.ErrorContains(t, Run(t.Context(), cfg), `RINGO_SLOT_BYTES="many"`)
}

// TestChosen: the report names the algorithms, the sizes that they are chosen to, and the plan that chose them.
func TestChosen(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, os.WriteFile(plan,
		[]byte("ringo plan 1\nallreduce 2 any 64 twoshot\nallreduce 2 any all oneshot\nallgather 2 any all ring\n"), 0o644))
	t.Setenv("RINGO_PLAN", plan)
	report, out := measureHere(t, "allreduce", "allgather", "sendrecv", "-device", "emu", "-g", "2", "-b", "8", "-e", "1K",
		"-f", "8", "-unchecked", "-d", "int8,float32")
	for _, want := range []string{"allreduce by twoshot to 64, oneshot (" + plan + ")", "allgather by ring (" + plan +
		")"} {
		require.Contains(t, report.Notes, want)
		require.Contains(t, out, "# "+want+"\n")
	}
	require.NotContains(t, out, "sendrecv by")
}
