//go:build unix

package matrix

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

// joinAtMost is the longest JoinTimeout of the tests.
const joinAtMost = 20 * time.Second

// ranks is how many there are: rank 1 ends, rank 0 is in the operation of the cell, rank 2 is idle.
const ranks = 3

func TestMain(m *testing.M) {
	switch os.Getenv("RINGO_TEST_RANK") {
	case "":
		code := m.Run()
		// The hub of a group whose members were killed before they came ends by itself, after their JoinTimeout.
		for end := time.Now().Add(joinAtMost + patience); code == 0; time.Sleep(100 * time.Millisecond) {
			err := goleak.Find()
			if err == nil {
				break
			}
			if time.Now().After(end) {
				fmt.Println(err)
				code = 1
			}
		}
		os.Exit(code)
	case "matrix":
		rankMain()
	}
}

// rankMain is a rank that is told on standard input what to do. When it returns, main does.
func rankMain() {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	c, d, err := open()
	if err != nil {
		say("open %s", result(err))
		os.Exit(2)
	}
	say("open well")
	r := newRank(c, d, say)
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		switch command := commands.Text(); command {
		case "end return":
			return
		case "end exit":
			os.Exit(0)
		default:
			if !r.obey(command) {
				return
			}
		}
	}
}

// A handle is the test's end of a rank.
type handle struct {
	tell  func(command string)
	says  chan line
	heard []line // and not yet asked for
	cmd   *exec.Cmd
	words func(said string) string // a result in the words of the table; nil where it is
}

// A line is what a rank has said, and when.
type line struct {
	text string
	at   time.Time
}

// hear waits for a line that begins with a word, and gives the rest, or "nothing" if none comes in time.
func (h *handle) hear(word string, wait time.Duration) (text string, at time.Time) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for i := 0; ; i++ {
		for i == len(h.heard) {
			select {
			case l, ok := <-h.says:
				if !ok {
					return "nothing: it has ended after " + fmt.Sprint(h.heard), time.Now()
				}
				h.heard = append(h.heard, l)
			case <-end.C:
				return "nothing", time.Now()
			}
		}
		if first, rest, _ := strings.Cut(h.heard[i].text, " "); first == word {
			if at = h.heard[i].at; h.words != nil {
				rest = h.words(rest)
			}
			h.heard = append(h.heard[:i], h.heard[i+1:]...)
			return rest, at
		}
	}
}

// A world is where ranks run.
type world struct {
	name  string
	short string // in the document
	start func(t *testing.T, timeout, join time.Duration) []*handle
	ends  []string
	ops   []string

	atOnce []string // the ends that are known at once; others when ranks are asked, after a second
	gpus   bool     // emulated, which are slow
	inC    bool

	together bool // in one process, whose stacks say where a rank is: a cell at a time
}

var (
	allEnds = []string{"return", "exit", "Close", "Abort", "SIGKILL", "SIGSTOP"}
	hostOps = []string{"idle", "AllReduce 8 B", "AllReduce 1 MiB", "Recv", "Send", "Split", "Shrink", "first connection"}
	gpuOps  = []string{"idle", "AllReduce 8 B", "AllReduce 1 MiB", "Recv", "Send", "Split", "Shrink", "Register",
		"first connection", "capture", "replay"}
	cEnds = []string{"return", "exit", "ncclCommDestroy", "ncclCommAbort", "SIGKILL", "SIGSTOP"}
	cOps  = []string{"idle", "ncclAllReduce, 8 B", "ncclAllReduce, 1 MiB", "ncclRecv", "ncclSend", "ncclCommSplit",
		"ncclCommShrink", "ncclCommWindowRegister", "first connection"}
	cGPUOps = append(slices.Clip(cOps), "capture", "replay")
	worlds  = []world{
		{name: "processes, host memory", short: "host memory", start: processes(), ends: allEnds, ops: hostOps,
			atOnce: []string{"return", "exit", "Abort", "SIGKILL"}},
		{name: "goroutines, host memory", short: "goroutines", start: goroutines(false), ends: []string{"Close", "Abort"},
			ops: hostOps, atOnce: []string{"Abort"}, together: true},
		{name: "goroutines, emulated GPUs", short: "GPUs of goroutines", start: goroutines(true),
			ends: []string{"Close", "Abort"}, ops: gpuOps, gpus: true, together: true},
		{name: "processes, emulated GPUs", short: "GPUs", start: processes("RINGO_TEST_GPU=1", "RINGO_MAX_CTAS=2"),
			ends: allEnds, ops: gpuOps, gpus: true},
		{name: "C, host memory", short: "host memory", start: programs(false), ends: cEnds, ops: cOps,
			atOnce: []string{"SIGKILL"}, inC: true},
		{name: "C, emulated GPUs", short: "GPUs", start: programs(true), ends: cEnds, ops: cGPUOps, gpus: true, inC: true},
	}
)

// processes are of this test binary.
func processes(env ...string) func(t *testing.T, timeout, join time.Duration) []*handle {
	return func(t *testing.T, timeout, join time.Duration) []*handle {
		env := append(env, fmt.Sprint("RINGO_TIMEOUT=", timeout), fmt.Sprint("RINGO_JOIN_TIMEOUT=", join))
		id := commtest.Meeting(t)
		all := make([]*handle, ranks)
		for r := range all {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "RINGO_TEST_RANK=matrix", "RINGO_COMM_ID="+id.String(),
				fmt.Sprint("RINGO_RANK=", r), fmt.Sprint("RINGO_SIZE=", ranks))
			cmd.Env = append(cmd.Env, env...)
			all[r] = begin(t, cmd)
		}
		return all
	}
}

// begin starts a process that obeys.
func begin(t *testing.T, cmd *exec.Cmd) *handle {
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	h := &handle{says: make(chan line, 100), cmd: cmd,
		tell: func(command string) { _, _ = io.WriteString(in, command+"\n") }}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(h.says)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case h.says <- line{lines.Text(), time.Now()}:
			default: // more than anybody asks for
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
		in.Close()
	})
	return h
}

// goroutines are the ranks of one process.
func goroutines(gpus bool) func(t *testing.T, timeout, join time.Duration) []*handle {
	return func(t *testing.T, timeout, join time.Duration) []*handle {
		cfg := ringo.Config{Timeout: timeout, JoinTimeout: join}
		if gpus {
			// queues that an emulated kernel soon fills
			cfg.Devices, cfg.MaxBlocks = gputest.GPUs(t, ranks, gputest.Emu(emulated)), 2
		}
		comms, err := ringo.OpenLocal(ranks, cfg)
		require.NoError(t, err)
		all := make([]*handle, ranks)
		for i, c := range comms {
			h := &handle{says: make(chan line, 100)}
			r := newRank(c, c.Device(),
				func(format string, args ...any) { h.says <- line{fmt.Sprintf(format, args...), time.Now()} })
			over := false
			h.tell = func(command string) { over = over || !r.obey(command) }
			h.says <- line{"open well", time.Now()}
			t.Cleanup(func() {
				if !over {
					_ = r.close()
				}
			})
			all[i] = h
		}
		return all
	}
}
