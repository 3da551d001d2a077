package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// workers are the workers of n ranks, with memory for one call of length bytes.
func workers(t *testing.T, cfg *Config, n int, length int64) []*worker {
	t.Helper()
	comms, err := ringo.OpenLocal(n, ringo.Config{})
	require.NoError(t, err)
	list := make([]*worker, n)
	for i, c := range comms {
		t.Cleanup(func() { c.Close() })
		list[i] = newWorker(cfg, c)
		list[i].in, list[i].out = newBuffer(length), newBuffer(length)
	}
	return list
}

// onEach calls f for all workers at once.
func onEach(t *testing.T, list []*worker, f func(i int, w *worker) error) {
	t.Helper()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, w := range list {
		wg.Go(func() { errs[i] = f(i, w) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// Collectives that do nothing, leave old results, or are right for yesterday's data alone are found, at nearly every
// element, though a byte has only 256 values.
func TestLazyCollectivesAreFound(t *testing.T) {
	const n, count = 2, 600
	for name, lazy := range map[string]func(once func() error, p bufferPair) func() error{
		"does nothing": func(func() error, bufferPair) func() error {
			return func() error { return nil }
		},
		"leaves old results": func(once func() error, p bufferPair) func() error {
			calls := 0
			return func() error {
				if calls++; calls > 1 {
					return nil
				}
				return once()
			}
		},
		"right for yesterday's data": func(once func() error, p bufferPair) func() error {
			var yesterday []byte
			return func() error {
				if yesterday != nil {
					copy(p.out, yesterday)
					return nil
				}
				defer func() { yesterday = bytes.Clone(p.out) }()
				return once()
			}
		},
	} {
		for _, c := range Collectives {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				list := workers(t, NewConfig(), n, n*count)
				s := &series{Collective: c, typ: ringo.Int8, op: ringo.Sum}
				onEach(t, list, func(i int, w *worker) error {
					op := w.operation("ringo", s, count, false)
					op.once = lazy(op.once, op.pairs[0])
					results := 0
					for r := range n {
						results += count * s.Out.Blocks(r, s.root, n)
					}
					wrong, err := w.verify(s, op)
					if name != "does nothing" && err == nil {
						if wrong > 0 {
							return fmt.Errorf("%d wrong on the first day", wrong)
						}
						wrong, err = w.verify(s, op)
					}
					least := results
					if name == "right for yesterday's data" {
						least = results * 9 / 10 // some bytes happen to be the same
					}
					if err == nil && wrong < int64(least) {
						err = fmt.Errorf("%d wrong of %d", wrong, results)
					}
					return err
				})
			})
		}
	}
}

// Each run has data of its own.
func TestRunsHaveFreshData(t *testing.T) {
	seen := map[uint64]bool{}
	for range 3 {
		list := workers(t, NewConfig(), 2, 0)
		onEach(t, list, func(_ int, w *worker) error { return w.run(nil, nil) })
		require.Equal(t, list[0].fresh, list[1].fresh)
		seen[list[0].fresh] = true
	}
	require.Len(t, seen, 3)
}

// The time is the average over ranks of the iterations after the warm-ups.
func TestTimeIsTheAverageWithoutWarmups(t *testing.T) {
	cfg := NewConfig()
	cfg.Warmup, cfg.Iterations = 7, 5
	list := workers(t, cfg, 4, 64)
	times, calls := make([]float64, 4), make([]int, 4)
	onEach(t, list, func(i int, w *worker) error {
		var clock time.Time
		w.now = func() time.Time { return clock }
		op := &operation{do: func() error {
			if calls[i]++; calls[i] <= cfg.Warmup {
				clock = clock.Add(time.Hour)
			}
			clock = clock.Add(time.Duration(i+1) * time.Microsecond)
			return nil
		}}
		us, iterations, err := w.time(op)
		times[i] = us
		if iterations != cfg.Iterations {
			err = errors.Join(err, fmt.Errorf("%d iterations", iterations))
		}
		return err
	})
	require.Equal(t, []float64{2.5, 2.5, 2.5, 2.5}, times)
	require.Equal(t, []int{12, 12, 12, 12}, calls)
}

// Peers are held to TCP where ours is, and nowhere else; a limit of one side alone stands beside the ratios.
func TestPeersMeetOnTheSameTerms(t *testing.T) {
	for _, test := range []struct {
		flags, transport string
		held             bool
		terms            []string
	}{
		{"-transport=tcp", "tcp", true, nil},
		{"-transport=auto -hosts=2", "socket", true, nil},
		{"-transport=auto", "shm", false, []string{"peer gloo has no transport but tcp, ringo goes over shm"}},
		{"-transport=unix", "unix", false, []string{"ringo is held to unix (-transport), peers choose for themselves",
			"peer gloo has no transport but tcp, ringo goes over unix"}},
		{"-transport=ib", "ib", false, []string{"ringo is held to ib (-transport), peers choose for themselves",
			"peer gloo has no transport but tcp, ringo goes over ib"}},
	} {
		cfg, err := parse(append([]string{"allreduce", "-np", "2"}, strings.Fields(test.flags)...)...)
		require.NoError(t, err)
		cfg.Peers = []string{"openmpi", "mpich", "gloo"}
		require.Equal(t, test.held, overTCP(cfg, test.transport), test.flags)
		require.Equal(t, test.terms, terms(cfg, test.transport), test.flags)
		for _, name := range []string{"openmpi", "mpich"} {
			line := strings.Join(describePeers(cfg, test.transport), "\n")
			require.Equal(t, test.held, strings.Contains(line, "peer "+name+": tcp"), line)
		}
	}
}

// The terms stand in the table's heading and after its verdict.
func TestTermsStandBesideTheRatio(t *testing.T) {
	cfg, err := parse("allreduce", "-np", "2", "-transport", "unix")
	require.NoError(t, err)
	cfg.Peers = []string{"openmpi", "gloo"}
	var out, complaints bytes.Buffer
	cfg.Stdout, cfg.Stderr = &out, &complaints
	s := oneSeries("allreduce", 2)
	c := &comparison{cfg: cfg, plan: []series{*s}, binaries: map[string]string{"openmpi": "x", "gloo": "x"}}
	row := Row{Program: "ringo", Collective: "allreduce", Size: 8, Count: 2, Type: "float32", Op: "sum", Root: -1,
		OutOfPlace: measure(s.Collective, 8, 2, 1, 1)}
	for _, name := range []string{"ringo", "openmpi", "gloo"} {
		row.Program = name
		c.samples.add("", row)
	}
	row.Program = "ringo"
	require.NoError(t, c.finish(&Report{Ranks: 2, Transport: "unix", Rows: []Row{row}}))
	require.Regexp(t, `# .* openmpi +gloo \(tcp\)`, out.String())
	_, after, _ := strings.Cut(out.String(), "# Best peer / ringo")
	require.Contains(t, after, "# Not on the same terms: ringo is held to unix")
	require.Contains(t, after, "# Not on the same terms: peer gloo has no transport but tcp")
}

// Every program is first in its turn.
func TestInTurn(t *testing.T) {
	var orders []string
	for round := range 4 {
		orders = append(orders, strings.Join(inTurn([]string{"a", "b", "c"}, round), ""))
	}
	require.Equal(t, []string{"abc", "bca", "cab", "abc"}, orders)
}

// TestWrongRowsAreFound: each wrong element of the sums and of the normed rows counts.
func TestWrongRowsAreFound(t *testing.T) {
	const n, count = 2, 16
	cfg, err := parse("allreduce", "-np", "2", "-d", "float32", "-row", "32")
	require.NoError(t, err)
	s := series{Collective: Collectives[0], typ: ringo.Float32, op: ringo.Sum, counts: []int{count}}
	onEach(t, workers(t, cfg, n, 4*count), func(i int, w *worker) error {
		var err error
		if w.norm, err = newNormBuffers(int(cfg.Row), 4*count, nil); err != nil {
			return err
		}
		op := w.operation("ringo", &s, count, false)
		wrong, err := w.verify(&s, op)
		require.Zero(t, wrong)
		if err != nil {
			return err
		}
		good := op.once
		op.once = func() error {
			err := good()
			_, _, normed := w.norm.parts(4 * count)
			if i == 1 {
				normed[4*3]++
				normed[4*15+3]++
				op.pairs[0].out[4*9+1]++
			}
			return err
		}
		wrong, err = w.verify(&s, op)
		require.EqualValues(t, 3, wrong)
		w.wrong = 0
		return err
	})
}

// TestNormFlags: flags that do not go with a norm are mistakes in the command line.
func TestNormFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"not allgather":           {"allreduce", "allgather", "-row", "1K"},
		"-row 1K: int8":           {"allreduce", "-row", "1K", "-d", "int8"},
		"of whole words":          {"allreduce", "-row", "1001"},
		"65536 bytes at most":     {"allreduce", "-row", "128K"},
		"leave -o out":            {"allreduce", "-row", "1K", "-o", "max"},
		"leave -m and -error out": {"allreduce", "-row", "1K", "-m", "2"},
		"peers on host memory":    {"allreduce", "-row", "1K", "-peer", "mpich"},
	} {
		_, err := parse(args...)
		require.ErrorContains(t, err, want)
	}
}
