package ringotest

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// Every rank is a process of its own. A test may have several Runs; in a rank's process the others do nothing.
func TestProcesses(t *testing.T) {
	var here atomic.Int32
	Run(t, 2, func(c *ringo.Comm) { here.Add(1) })
	for range 2 {
		Run(t, 3, func(c *ringo.Comm) {
			here.Add(1)
			r := Of(c)
			r.Logf("%d", r.Rand().Uint64())
			pids := make([]int64, 3)
			require.NoError(r, ringo.AllGather(c, pids, []int64{int64(os.Getpid())}))
			require.NotEqual(r, pids[0], pids[1])
			require.NotEqual(r, pids[1], pids[2])
			require.EqualValues(r, 1, here.Load())
			sum(r, c)
		}, Over(Processes))
	}
	require.EqualValues(t, 2, here.Load())
}

// However the process of a rank ends, the test fails and tells how, and the other ranks do not wait.
func TestProcessFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		fail func(t testing.TB, c *ringo.Comm)
		want []string
	}{
		"Fatal": {func(t testing.TB, c *ringo.Comm) { t.Fatal("this is wrong") },
			[]string{"[1] ", "this is wrong", "process_test.go"}},
		"panic": {func(t testing.TB, c *ringo.Comm) { panic("no such luck") },
			[]string{"rank 1 of 3 over processes panicked: no such luck"}},
		"exit": {func(t testing.TB, c *ringo.Comm) { os.Exit(7) },
			[]string{"rank 1 of 3 over processes, seed 4: its process ended before its function did: rank 1: exit status 7"}},
		"crash": {func(t testing.TB, c *ringo.Comm) {
			go func() { panic("on the side") }()
			select {}
		}, []string{"rank 1 of 3 over processes, seed 4: its process ended before its function did: rank 1: exit status 2",
			"panic: on the side"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, func(t testing.TB) {
				Run(t, 3, func(c *ringo.Comm) {
					if c.Rank() == 1 {
						tt.fail(t, c)
					}
					for ringo.Barrier(c) == nil {
					}
					if c.Rank() == 0 {
						Of(c).Logf("culprits %v", c.Err().(*ringo.Error).Culprits)
					}
				}, Over(Processes), Seed(4))
				t.Errorf("Run has returned")
			})
			require.True(t, r.Failed())
			text := r.String()
			for _, want := range append(tt.want, "3 ranks over processes: rank 1 failed first", "RINGOTEST_SEED=4",
				"culprits [1]") {
				require.Contains(t, text, want)
			}
			require.NotContains(t, text, "Run has returned")
		})
	}
}

// A time-out asks the processes where they are, and ends them.
func TestProcessTimeout(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = 500 * time.Millisecond
	r := record(t, func(t testing.TB) {
		Run(t, 2, func(c *ringo.Comm) {
			if c.Rank() == 1 {
				select {}
			}
			require.NoError(Of(c), ringo.Barrier(c))
		}, Over(Processes), Timeout(time.Second))
	})
	text := r.String()
	require.Contains(t, text, "rank 1 never entered")
	require.Contains(t, text, "rank 0 is in Barrier() #1\n")
	require.Contains(t, text, "rank 1 has called nothing\n")
	require.Contains(t, text, "process_test.go", "the line")
	require.NotContains(t, text, "sync.(*Once)", "what is inside of Ringo")
	require.Regexp(t, `rank 0 failed because of rank 1 \(process_test.go:\d+\)`, text)
	require.Contains(t, text, "not ended 500ms after an Abort either: killed")
}

// The time of a test before its Run is not part of the time that ranks may take.
func TestProcessThatComesLate(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Millisecond
	if seat() != nil {
		time.Sleep(100 * time.Millisecond)
	}
	r := record(t, func(t testing.TB) {
		Run(t, 1, func(c *ringo.Comm) { select {} }, Over(Processes), Timeout(10*time.Millisecond))
	})
	require.Contains(t, r.String(), "after 10ms rank 0 has not ended")
	require.NotContains(t, r.String(), "test timed out")
}

// A process that does not come to its Run is reported.
func TestProcessElsewhere(t *testing.T) {
	if seat() != nil {
		return
	}
	r := record(t, func(t testing.TB) { Run(t, 2, func(c *ringo.Comm) {}, Over(Processes)) })
	require.Contains(t, r.String(), "rank 1 of 2 over processes, seed")
	require.Contains(t, r.String(), "its process ended without coming to this Run")
}

// A rank that does not answer is named.
func TestExplain(t *testing.T) {
	p := whereabouts{Record: ringo.HistoryRecord{Size: 2, State: judge.State{Peer: -1}}, Stack: "goroutine 1"}
	require.Equal(t, "has called nothing", doing(p.Record))
	p.Record.Calls = []history.Call{{What: "Send(count 1)"}}
	p.Record.State.Peer = 1
	require.Equal(t, "is in Send(count 1)", doing(p.Record))
	text, _ := explain([]int{0, 1}, map[int]whereabouts{0: p})
	require.Contains(t, text, "rank 1 does not answer: is its process stopped?")
}
