package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// scene is the variable that makes this test binary play a rank.
const scene = "LAUNCH_TEST_SCENE"

func TestMain(m *testing.M) {
	if s := os.Getenv(scene); s != "" {
		play(s)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func play(s string) {
	rank, _ := strconv.Atoi(os.Getenv("RINGO_RANK"))
	switch s {
	case "copies":
		if parent, err := Copies(context.Background(), 3); parent {
			os.Exit(Status(err))
		}
		fmt.Printf("rank %s of %s, %s\n", os.Getenv("RINGO_RANK"), os.Getenv("RINGO_SIZE"), os.Args[len(os.Args)-1])
		if end, _ := strconv.Atoi(os.Getenv("END")); rank == 1 {
			os.Exit(end)
		}
	case "hello":
		fmt.Printf("out %d\nunfinished", rank)
		fmt.Fprintf(os.Stderr, "err %d\n", rank)
	case "env":
		for _, v := range []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
			"RINGO_RANK", "RINGO_SIZE", "RINGO_COMM_ID", "RINGO_HOSTID", "EXTRA"} {
			fmt.Printf("%s=%s\n", v, os.Getenv(v))
		}
	case "exit 3, then kill":
		if os.Getenv("RINGO_RANK") == "0" {
			os.Exit(3)
		}
		time.Sleep(300 * time.Millisecond)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit 3":
		if rank == 1 {
			os.Exit(3)
		}
		time.Sleep(time.Second)
	case "stop 2": // rank 2 is stopped, and rank 0 fails when the launcher has seen it
		file := os.Getenv("PID_FILE")
		if rank == 2 {
			writePID(file)
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(time.Minute) // another thread may take the signal, a moment later
		}
		for end := time.Now().Add(20 * time.Second); rank == 0; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(file + ".stopped"); err == nil {
				os.Exit(1)
			}
			if time.Now().After(end) {
				os.Exit(2)
			}
		}
	case "kill 2":
		file := os.Getenv("PID_FILE")
		if rank == 2 {
			writePID(file)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		awaitEnd(file)
		fmt.Fprintf(os.Stderr, "rank 2 died, says %d\n", rank)
		os.Exit(1)
	case "join 0", "join 2": // rank 0 or 2 ends before it joins, the others after
		how := strings.Split(os.Getenv("HOW"), " ")
		if strconv.Itoa(rank) == s[len("join "):] {
			if how[0] == "signal" {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			status, _ := strconv.Atoi(how[1])
			os.Exit(status)
		}
		begin := time.Now()
		_, err := enter()
		var f *bootstrap.Failure
		if errors.As(err, &f) && time.Since(begin) < 10*time.Second {
			fmt.Printf("rank %d died, said to %d: %v\n", f.Rank, rank, err)
		}
	case "again": // one group after the other
		for range 3 {
			g, err := enter()
			if err == nil {
				_, err = g.AllGather(context.Background(), nil)
			}
			if err == nil {
				err = g.Close()
			}
			fmt.Println("met", err)
		}
	case "reopen": // rank 1 dies in the first group; the others open another one, with the next rank 1
		for {
			g, err := enter()
			if err != nil {
				fmt.Println(err)
				os.Exit(8)
			}
			if rank == 1 && os.Getenv("RINGO_RESTART") == "0" {
				g.AllGather(context.Background(), nil)
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			_, err = g.AllGather(context.Background(), nil)
			if err == nil {
				_, err = g.AllGather(context.Background(), nil)
			}
			g.Close()
			if err == nil {
				fmt.Println("met, start", os.Getenv("RINGO_RESTART"))
				return
			}
		}
	case "return": // rank 1 returns from main, without a word
		g, err := enter()
		if err != nil {
			os.Exit(8)
		}
		if rank == 1 {
			status, _ := strconv.Atoi(os.Getenv("STATUS"))
			os.Exit(status)
		}
		_, err = g.AllGather(context.Background(), nil)
		fmt.Println(err)
		g.Close()
	case "go on": // the others regroup without rank 2, which dies then; then without rank 1
		goOn(rank)
	case "one waits":
		if rank == 0 {
			play("wait")
			return
		}
		os.Exit(3)
	case "one fails":
		if rank == 1 {
			os.Exit(3)
		}
		time.Sleep(time.Minute)
	case "fail": // always
		os.Exit(3)
	case "wait":
		c := make(chan os.Signal, 1)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM)
		fmt.Println("ready")
		fmt.Println(<-c)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "nest leave": // a launcher, to be killed
		err := Run(context.Background(), Config{N: 2, Args: []string{os.Args[0]},
			Env: append(os.Environ(), scene+"=leave"), Stdout: os.Stdout, Stderr: os.Stderr})
		fmt.Println(err)
	case "echo": // its standard input
		b, _ := io.ReadAll(os.Stdin)
		fmt.Printf("rank %d read %q\n", rank, b)
	case "end": // as HOW says
		n, _ := strconv.Atoi(os.Getenv("HOW"))
		if n > 128 {
			syscall.Kill(os.Getpid(), syscall.Signal(n-128))
			time.Sleep(time.Minute)
		}
		os.Exit(n)
	case "blame": // rank 1 blames rank 2, and rank 0 ends first
		g, err := enter()
		if err != nil {
			os.Exit(9)
		}
		switch rank {
		case 0:
			<-g.Failed()
			os.Exit(4)
		case 1:
			g.Fail("it hangs", 2)
		}
		time.Sleep(time.Minute)
	case "program": // a launcher of one
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), scene+"=leave", "RINGO_RANK=0"), os.Stdout, os.Stderr
		fmt.Println(Program(context.Background(), cmd))
	case "leave":
		leaveScene()
	case "left":
		leftScene()
	case "leave once": // the first time
		mark := filepath.Join(os.Getenv("DIR"), "left")
		if os.Getenv("RINGO_RESTART") == "0" {
			spawn("stay", mark)
			for len(marks(mark)) == 0 {
				time.Sleep(time.Millisecond)
			}
			os.Exit(3)
		}
		for pid := marked(mark); slices.ContainsFunc(pid, func(p int) bool { return !zombie(p) }); pid = marked(mark) {
			time.Sleep(time.Millisecond)
		}
	}
}

// enter joins the group of the launcher's ranks.
func enter() (bootstrap.Group, error) {
	spec, _, err := bootstrap.FromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	return spec.Join(context.Background(), bootstrap.ListenOptions{}, bootstrap.JoinOptions{})
}

func writePID(file string) {
	os.WriteFile(file+"~", []byte(strconv.Itoa(os.Getpid())), 0o600)
	os.Rename(file+"~", file)
}

// readPID returns 0 until the file is there.
func readPID(file string) int {
	b, _ := os.ReadFile(file)
	pid, _ := strconv.Atoi(string(b))
	return pid
}

// awaitEnd returns when a process has written its number to file, and has ended.
func awaitEnd(file string) {
	for pid := 0; pid == 0 || syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		pid = readPID(file)
	}
}

// awaitText returns when out contains a text so many times.
func awaitText(t *testing.T, out *transcript.Transcript, text string, times int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(out.String(), text) >= times }, 10*time.Second,
		time.Millisecond)
}

func config(n int, s string) (Config, *transcript.Transcript) {
	out := new(transcript.Transcript)
	return Config{N: n, Args: []string{os.Args[0]}, Env: append(os.Environ(), scene+"="+s), Stdout: out, Stderr: out}, out
}

func TestOutput(t *testing.T) {
	c, out := config(3, "hello")
	c.Prefix = true
	require.NoError(t, Run(t.Context(), c))
	for _, line := range []string{"[0] out 0\n", "[0] err 0\n", "[1] out 1\n", "[1] err 1\n", "[1] unfinished\n",
		"[2] out 2\n", "[2] err 2\n"} {
		require.Contains(t, out.String(), line)
	}

	c, out = config(2, "hello")
	c.Prefix, c.Reporter = true, true
	require.NoError(t, Run(t.Context(), c))
	require.NotContains(t, out.String(), "[0]")
	require.Contains(t, out.String(), "[1] out 1\n")

	c, out = config(2, "hello")
	require.NoError(t, Run(t.Context(), c))
	require.NotContains(t, out.String(), "[")

	c.Stdout, c.Stderr = nil, nil
	require.NoError(t, Run(t.Context(), c))
}

// A line is written whole and in one call, whatever its pieces were; only one above maxLine is cut, and says so.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	w := prefixed(&b, "[7]")
	for _, s := range []string{"a", "b\nc\n", "\n", "\x00\r\xff\n", "d"} {
		n, err := w.Write([]byte(s))
		require.NoError(t, err)
		require.Equal(t, len(s), n)
	}
	finish(w)
	finish(w)
	require.Equal(t, "[7] ab\n[7] c\n[7] \n[7] \x00\r\xff\n[7] d\n", b.String())
	for _, more := range []int{-1, 0, 1} {
		b.Reset()
		line := bytes.Repeat([]byte("x"), maxLine+more)
		for piece := range slices.Chunk(append(line, "\ny\n"...), 300_000) {
			_, err := w.Write(piece)
			require.NoError(t, err)
		}
		want := "[7] " + string(line[:min(len(line), maxLine)]) + "\n"
		if more > 0 {
			want += "[7]+ x\n"
		}
		require.True(t, b.String() == want+"[7] y\n", "%d bytes", b.Len())
		require.LessOrEqual(t, cap(w.buf), keptLine)
	}
	_, err := w.Write(make([]byte, 2*maxLine+1))
	require.NoError(t, err)
	require.Greater(t, b.Len(), 2*maxLine, "an endless line is not kept")
}

func TestVariables(t *testing.T) {
	c, out := config(2, "env")
	c.Prefix = true
	c.Env = append(c.Env, "EXTRA=yes", "RANK=77")
	require.NoError(t, Run(t.Context(), c))
	for _, line := range []string{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
		"RINGO_RANK=1", "RINGO_SIZE=2", "EXTRA=yes"} {
		require.Contains(t, out.String(), "[1] "+line+"\n")
	}
	require.Regexp(t, `\[1\] RINGO_COMM_ID=ringo:[\w-]+\n`, out.String())
	require.NotRegexp(t, `RINGO_HOSTID=.+`, out.String())

	c, out = config(4, "env")
	c.Prefix, c.Hosts = true, 2
	require.NoError(t, Run(t.Context(), c))
	for r, host := range []string{"-0", "-0", "-1", "-1"} {
		require.Regexp(t, fmt.Sprintf(`(?m)^\[%d\] RINGO_HOSTID=.*%s$`, r, host), out.String())
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name, scene string
		want        string
		status      int
		says        string
	}{
		{"exit status", "exit 3", "rank 1: exit status 3", 3, ""},
		{"stopped", "stop 2", "rank 0: exit status 1; the process of rank 2 is stopped, which may be why", 1, ""},
		{"signal", "kill 2", "rank 2: killed by signal 9", 137, "rank 2 died, says 3\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, out := config(4, tt.scene)
			c.Grace = 5 * time.Second
			file := t.TempDir() + "/pid"
			c.Env = append(c.Env, "PID_FILE="+file)
			if tt.scene == "stop 2" {
				requireStops(t)
				c.Grace = 20 * time.Millisecond // rank 2 stays stopped
				go func() {
					for t.Context().Err() == nil && !stopped(readPID(file)) {
						time.Sleep(5 * time.Millisecond)
					}
					os.WriteFile(file+".stopped", nil, 0o600)
				}()
			}
			err := Run(t.Context(), c)
			require.EqualError(t, err, tt.want)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.status, e.ExitStatus())
			require.Contains(t, out.String(), tt.says)
		})
	}
}

// A program that returns from main without Close has left, one that fails has died.
func TestReturn(t *testing.T) {
	for status, says := range map[string]string{"0": "rank 1 has left", "3": "rank 1 died"} {
		c, out := config(3, "return")
		c.Env = append(c.Env, "STATUS="+status)
		c.Grace = 20 * time.Second
		err := Run(t.Context(), c)
		require.Equal(t, status == "0", err == nil, "%v", err)
		require.Equal(t, 2, strings.Count(out.String(), says), out.String())
	}
}

// If a rank ends with an error just before another is seen to be killed, the signal counts as the reason.
func TestSignalBeforeStatus(t *testing.T) {
	c, _ := config(2, "exit 3, then kill")
	c.Grace = 20 * time.Second
	require.EqualError(t, Run(t.Context(), c), "rank 1: killed by signal 9")
}

// requireStops skips the test where SIGSTOP stops no process, as under some tracers.
func requireStops(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), scene+"=stubborn")
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	for end := time.Now().Add(5 * time.Second); !stopped(cmd.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Skip("SIGSTOP stops no process here")
		}
	}
}

// The launcher knows who has ended before it joined, and the others hear of it.
func TestEndBeforeJoin(t *testing.T) {
	for _, rank := range []int{0, 2} {
		for how, why := range map[string]string{"signal 9": "killed by signal 9", "status 3": "exit status 3",
			"status 0": "exit status 0"} {
			t.Run(fmt.Sprint(rank, " ", how), func(t *testing.T) {
				c, out := config(4, fmt.Sprint("join ", rank))
				c.Env = append(c.Env, "HOW="+how)
				c.Grace = 20 * time.Second
				Run(t.Context(), c)
				for r := range 4 {
					if r != rank {
						require.Contains(t, out.String(),
							fmt.Sprintf("rank %d died, said to %d: join: rank %[1]d will not come, for its process has ended: %[3]s\n", rank,
								r, why))
					}
				}
			})
		}
	}
}

// The exit status of a launcher is that of its first rank that fails, as shells count.
func TestExitStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, []byte("no program"), 0o600))
	script := filepath.Join(t.TempDir(), "unknown")
	require.NoError(t, os.WriteFile(script, []byte("no program"), 0o700))
	for program, want := range map[string]int{"": 127, "no-such-program": 127, "/no/such/program": 127, file: 126,
		script: 126, filepath.Dir(file): 126, file + "/below": 126} {
		err := Run(t.Context(), Config{N: 2, Args: []string{program}})
		require.Equal(t, want, Status(err), "%q: %v", program, err)
		require.Equal(t, want, Status(Program(t.Context(), exec.Command(program))), "%q", program)
	}
	for _, want := range tier.Some(4, []int{0, 1, 126, 127, 2, 128 + 1, 128 + 2, 128 + 9, 128 + 15}) {
		c, _ := config(2, "end")
		c.Env = append(c.Env, fmt.Sprint("HOW=", want))
		err := Run(t.Context(), c)
		require.Equal(t, want, Status(err), err)
	}
	require.Equal(t, 1, Status(errKeeper))
	require.Error(t, Run(t.Context(), Config{N: 1, Args: []string{file}, Grace: -time.Second}))
}

// Rank 0 reads the launcher's input, the others an empty one.
func TestStdin(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	w.WriteString("words")
	w.Close()
	c, out := config(2, "echo")
	c.Stdin = r
	require.NoError(t, Run(t.Context(), c))
	require.Contains(t, out.String(), `rank 0 read "words"`)
	require.Contains(t, out.String(), `rank 1 read ""`)
}

// The rank whose process ends first may be another than the one to blame.
func TestBlame(t *testing.T) {
	c, out := config(3, "blame")
	c.Grace, c.GraceFlag = time.Millisecond, "-grace"
	err := Run(t.Context(), c)
	require.ErrorContains(t, err, "rank 0: exit status 4; ")
	require.ErrorContains(t, err, "the ranks blame rank 2: rank 1 failed: it hangs")
	require.Equal(t, "launch: killed ranks 1 and 2: they still ran 1ms (-grace) after rank 0 had failed with status 4\n",
		out.String())
}

func TestGroupsInTurn(t *testing.T) {
	c, out := config(3, "again")
	require.NoError(t, Run(t.Context(), c))
	require.Equal(t, strings.Repeat("met <nil>\n", 9), out.String())
}

// A rank that dies is started again, and the others open a group with it under the same
// variables; one that goes on failing ends the job.
func TestRestarts(t *testing.T) {
	c, out := config(3, "reopen")
	c.Restarts = 1
	require.NoError(t, Run(t.Context(), c))
	require.Equal(t, 2, strings.Count(out.String(), "met, start 0\n"), out.String())
	require.Equal(t, 1, strings.Count(out.String(), "met, start 1\n"), out.String())
	c, _ = config(1, "fail")
	c.Restarts = 2
	var e *Error
	require.ErrorAs(t, Run(t.Context(), c), &e)
	require.Equal(t, 3, e.Status)
}

func TestNoSuchProgram(t *testing.T) {
	c, _ := config(2, "hello")
	c.Args = []string{filepath.Join(t.TempDir(), "none")}
	var ended []int
	c.Ended = func(rank int, err *Error) {
		ended = append(ended, rank)
		require.ErrorContains(t, err, "not started")
	}
	err := Run(t.Context(), c)
	require.Equal(t, []int{0, 1}, ended)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "rank 0: ")
	require.Error(t, Run(t.Context(), Config{N: 0, Args: c.Args}))
	require.Error(t, Run(t.Context(), Config{N: 1}))
}

// A failing parent cannot start the second program.
type failing struct {
	parent
	none string
}

func (f failing) start(p program, files [3]*os.File) (*process, error) {
	if slices.Contains(p.env, "RANK=1") {
		p.path = f.none
	}
	return f.parent.start(p, files)
}

// Ranks that could be started hear of the one that could not; later ranks count as not started.
func TestStartFails(t *testing.T) {
	c, out := config(3, "join 2")
	c.Grace = 20 * time.Second
	var ended []string
	c.Ended = func(rank int, err *Error) { ended = append(ended, fmt.Sprint(rank, " ", err)) }
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Again: true, Launched: true})
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	none := filepath.Join(t.TempDir(), "none")
	j := newJob(c)
	j.id, j.parent = id, failing{newParent(nil), none}
	defer j.parent.close()
	why := "fork/exec " + none + ": no such file or directory"
	require.EqualError(t, j.run(t.Context()), "rank 1: "+why)
	require.Equal(t, []string{"1 rank 1: not started: " + why, "2 rank 2: not started: " + why, "0 <nil>"}, ended)
	require.Contains(t, out.String(),
		"rank 1 died, said to 0: join: rank 1 will not come, for its process has ended: "+why+"\n")
}

func TestCancel(t *testing.T) {
	for _, s := range []string{"wait", "stubborn"} {
		t.Run(s, func(t *testing.T) {
			c, out := config(2, s)
			c.Grace = 200 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			go func() { awaitText(t, out, "ready", 2); cancel() }()
			require.ErrorIs(t, Run(ctx, c), context.Canceled)
		})
	}
}

func TestSignalsAreForwarded(t *testing.T) {
	c, out := config(2, "wait")
	go func() {
		awaitText(t, out, "ready", 2)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	require.NoError(t, Run(t.Context(), c))
	require.Equal(t, 2, strings.Count(out.String(), "terminated"))
}

// zombie reports whether a process is dead, waited for by its new parent or not.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

func TestReservation(t *testing.T) {
	a, err := reserve()
	require.NoError(t, err)
	b, err := reserve()
	require.NoError(t, err)
	require.NotEqual(t, a.addr, b.addr)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}
