package programs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

// ranks is how many there are: rank 1 ends, rank 0 is in the operation of the cell, rank 2 is idle.
const ranks = 3

// A handle is the test's end of a rank.
type handle struct {
	tell  func(command string)
	says  <-chan line
	heard []line // and not yet asked for
	w     *worker
	words func(said string) string // a result in the words of the table; nil where it is
}

// A line is what a process has said, and when.
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
					return fmt.Sprintf("nothing: it has ended after %v\n%v", h.heard, h.w.said), time.Now()
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
			if word == "gone" && h.w != nil && h.words == nil {
				h.w.free = true
			}
			return rest, at
		}
	}
}

// A region is where ranks run.
type region struct {
	name  string
	short string // in the document
	start func(t *testing.T) []*handle
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
	regions = []region{
		{name: "processes, host memory", short: "host memory", start: processes(false), ends: allEnds, ops: hostOps,
			atOnce: []string{"return", "exit", "Abort", "SIGKILL"}},
		{name: "goroutines, host memory", short: "goroutines", start: goroutines(false), ends: []string{"Close", "Abort"},
			ops: hostOps, atOnce: []string{"Abort"}, together: true},
		{name: "goroutines, emulated GPUs", short: "GPUs of goroutines", start: goroutines(true),
			ends: []string{"Close", "Abort"}, ops: gpuOps, gpus: true, together: true},
		{name: "processes, emulated GPUs", short: "GPUs", start: processes(true),
			ends: allEnds, ops: gpuOps, gpus: true},
		{name: "C, host memory", short: "host memory", start: inC(false), ends: cEnds, ops: cOps,
			atOnce: []string{"SIGKILL"}, inC: true},
		{name: "C, emulated GPUs", short: "GPUs", start: inC(true), ends: cEnds, ops: cGPUOps, gpus: true, inC: true},
	}
)

// processes are workers, which serve several tests.
func processes(gpus bool) func(t *testing.T) []*handle {
	return func(t *testing.T) []*handle {
		id := commtest.Meeting(t)
		all := make([]*handle, ranks)
		for r := range all {
			w, err := servants.take()
			require.NoError(t, err)
			all[r] = handleOf(t, w)
			all[r].tell(fmt.Sprintf("rank %d %v %s", r, gpus, id.String()))
		}
		return all
	}
}

// servants are processes that wait to serve.
var servants crew

// handleOf is the handle of a process until the end of the test.
func handleOf(t *testing.T, w *worker) *handle {
	t.Cleanup(func() {
		if w.free {
			servants.give(w)
			return
		}
		resume(w.cmd.Process)
		_ = w.end()
	})
	return &handle{w: w, says: w.lines, tell: func(command string) { _, _ = io.WriteString(w.in, command+"\n") }}
}

// goroutines are the ranks of one process.
func goroutines(gpus bool) func(t *testing.T) []*handle {
	return func(t *testing.T) []*handle {
		cfg := asServant(gpus)
		if gpus {
			cfg.Devices = gputest.GPUs(t, ranks, gputest.Emu(emulated))
		}
		comms, err := ringo.OpenLocal(ranks, cfg)
		require.NoError(t, err)
		all := make([]*handle, ranks)
		for i, c := range comms {
			says := make(chan line, 100)
			r := newServant(c, c.Device(),
				func(format string, args ...any) { says <- line{fmt.Sprintf(format, args...), time.Now()} })
			over := false
			all[i] = &handle{says: says, tell: func(command string) { over = over || !r.obey(command) }}
			says <- line{"open well", time.Now()}
			t.Cleanup(func() {
				if !over {
					_ = r.close()
				}
			})
		}
		return all
	}
}
