package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// goOn is a rank of 4. Rank 2 leaves the group, and dies when the others are in another one; then rank 1 likewise. The
// others go on for longer than Grace. Rank 3 takes no part the second time if HOW is "stay", and rank 0 fails at the
// end if it is "fail".
func goOn(rank int) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(9)
		}
	}
	how, file := os.Getenv("HOW"), os.Getenv("PID_FILE")
	g, err := enter()
	check(err)
	for _, dies := range []int{2, 1} {
		dead := fmt.Sprint(file, dies)
		stays := how == "stay" && rank == 3 && dies == 1
		if rank == dies || stays {
			check(g.Close())
			if stays {
				time.Sleep(time.Minute)
			}
			for readPID(dead+".last") == 0 {
				time.Sleep(time.Millisecond)
			}
			writePID(dead)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		left, err := g.Regroup(ctx, 20*time.Second)
		check(err)
		next := left.Group
		if next == nil {
			next, err = bootstrap.Join(ctx, left.ID, slices.Index(left.Members, g.Rank()), len(left.Members),
				bootstrap.JoinOptions{})
			check(err)
		}
		g = next
		if _, err = g.AllGather(ctx, nil); rank == 0 {
			writePID(dead + ".last")
		}
		check(err)
		awaitEnd(dead)
		time.Sleep(50 * time.Millisecond) // longer than Grace
	}
	fmt.Printf("rank %d ends\n", rank)
	if how == "fail" && rank == 3 {
		writePID(file + "3")
	}
	if how == "fail" && rank == 0 {
		awaitEnd(file + "3")
		os.Exit(5)
	}
}

// Ranks that go on without a failed rank may run for longer than Grace, and the job ends as they do. A rank that does
// not go on with them is ended, and named.
func TestGoOnWithout(t *testing.T) {
	const ended = "launch: killed rank 3: it still ran 1ms after rank 1 was killed by signal 9, and the others go on " +
		"without it\n"
	for how, status := range map[string]int{"well": 0, "stay": 0, "fail": 5} {
		t.Run(how, func(t *testing.T) {
			c, out := config(4, "go on")
			c.Grace = time.Millisecond
			c.Env = append(c.Env, "HOW="+how, "PID_FILE="+t.TempDir()+"/pid")
			err := Run(t.Context(), c)
			var e *Error
			if errors.As(err, &e) {
				require.Equal(t, status, e.ExitStatus(), out)
				require.Equal(t, 0, e.Rank)
			} else {
				require.NoError(t, err)
				require.Zero(t, status)
			}
			require.Contains(t, out.String(), "rank 0 ends\n")
			if how == "stay" {
				require.Contains(t, out.String(), ended)
			} else {
				require.Contains(t, out.String(), "rank 3 ends\n")
				require.NotContains(t, out.String(), "launch:")
			}
		})
	}
}

// Ranks that wait in Regroup for the others are not ended meanwhile.
func TestGraceWhileRegrouping(t *testing.T) {
	for name, members := range map[string][]int{"go on": {0}, "cannot": {}} {
		t.Run(name, func(t *testing.T) {
			c, out := config(2, "one waits")
			c.Grace = time.Millisecond
			over := make(chan *Error, 1)
			c.Ended = func(rank int, err *Error) {
				if rank == 1 {
					over <- err
				}
			}
			j := newJob(c)
			j.parent = newParent(nil)
			defer j.parent.close()
			j.regrouped.heard(nil)
			require.NoError(t, j.start(0))
			awaitText(t, out, "ready", 1)
			require.NoError(t, j.start(1))
			result := make(chan error, 1)
			go func() { result <- j.watch(t.Context(), nil, 2, nil) }()
			require.NotNil(t, <-over)
			time.Sleep(20 * time.Millisecond) // longer than Grace
			require.NotContains(t, out.String(), "ended")
			j.regrouped.heard(members)
			if len(members) > 0 {
				time.Sleep(20 * time.Millisecond)
				require.NoError(t, syscall.Kill(j.processes[0].pid, syscall.SIGTERM))
				require.NoError(t, <-result)
				require.Contains(t, out.String(), "terminated")
			} else {
				require.EqualError(t, <-result, "rank 1: exit status 3")
				require.Contains(t, out.String(), "launch: killed rank 0: it still ran")
			}
		})
	}
}

// pair is a job of two ranks that are ready, without anybody who watches them.
func pair(t *testing.T, c Config, out *transcript.Transcript) *job {
	t.Helper()
	j := newJob(c)
	j.parent = newParent(nil)
	t.Cleanup(func() { j.parent.close() })
	require.NoError(t, j.start(0))
	require.NoError(t, j.start(1))
	awaitText(t, out, "ready", 2)
	return j
}

// A rank that the others have left behind and that is stopped does not keep the job from its end.
func TestStoppedBehind(t *testing.T) {
	requireStops(t)
	c, out := config(2, "wait")
	c.Grace = 50 * time.Millisecond
	j := pair(t, c, out)
	require.NoError(t, syscall.Kill(j.processes[1].pid, syscall.SIGSTOP))
	result := make(chan error, 1)
	go func() { result <- j.watch(t.Context(), nil, 2, nil) }()
	j.regrouped.heard([]int{0})
	require.NoError(t, syscall.Kill(j.processes[0].pid, syscall.SIGTERM))
	require.NoError(t, <-result)
	require.Contains(t, out.String(), "launch: killed rank 1: it still ran, and stopped, 50ms after all had ended that "+
		"went on without it\n")
}

// A rank that is stopped only after the others have left it behind and ended is found as well.
func TestStoppedLater(t *testing.T) {
	requireStops(t)
	c, out := config(2, "wait")
	c.Grace = time.Millisecond
	j := pair(t, c, out)
	gone := make(chan int)
	j.Ended = func(rank int, _ *Error) { gone <- rank }
	result := make(chan error, 1)
	go func() { result <- j.watch(t.Context(), nil, 2, nil) }()
	j.regrouped.heard([]int{0})
	require.NoError(t, syscall.Kill(j.processes[0].pid, syscall.SIGTERM))
	require.Equal(t, 0, <-gone)
	time.Sleep(100 * time.Millisecond) // it looks, and sees a process that runs
	require.NoError(t, syscall.Kill(j.processes[1].pid, syscall.SIGSTOP))
	require.Equal(t, 1, <-gone)
	require.NoError(t, <-result)
	require.Contains(t, out.String(), "launch: killed rank 1: it still ran, and stopped")
}

// A rank that is ended for another rank's failure is named, with the reason.
func TestGrace(t *testing.T) {
	c, out := config(3, "one fails")
	c.Grace = time.Millisecond
	require.EqualError(t, Run(t.Context(), c), "rank 1: exit status 3")
	require.Equal(t, "launch: killed ranks 0 and 2: they still ran 1ms after rank 1 had failed with status 3\n",
		out.String())
}

// A job whose ranks that are left are all stopped says so, once.
func TestLook(t *testing.T) {
	c, out := config(3, "")
	j := newJob(c)
	v := &vigil{job: j, alive: []bool{false, true, true}}
	for rank := range j.processes {
		j.processes[rank] = newProcess(os.Getpid(), rank)
	}
	j.processes[1].halt("SIGSTOP")
	v.look()
	v.look()
	require.Empty(t, out.String(), "rank 2 runs")
	v.alive[2] = false
	v.look()
	require.Empty(t, out.String(), "it may go on soon")
	v.look()
	v.look()
	want := fmt.Sprintf("launch: still waiting for rank 1, stopped by a signal: process %d by SIGSTOP; kill -CONT %[1]d "+
		"lets it go on\n", os.Getpid())
	require.Equal(t, want, out.String())
	j.processes[1].halt("")
	v.look()
	j.processes[1].halt("SIGTTIN")
	v.look()
	v.look()
	require.Equal(t, want+strings.Replace(want, "SIGSTOP", "SIGTTIN", 1), out.String())
}

// TestRecent: ranks get the signal that has ended the launcher, and no SIGTERM beside it.
func TestRecent(t *testing.T) {
	signals := make(chan os.Signal, 1)
	require.Zero(t, recent(signals, time.Now()), "they have it")
	signals <- os.Interrupt
	require.Equal(t, syscall.SIGINT, recent(signals, time.Time{}))
	require.Equal(t, syscall.SIGTERM, recent(signals, time.Now().Add(-time.Hour)), "the context was cancelled by others")
}
