package programs

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

var update = flag.Bool("update", false, "write the table anew, instead of comparing with it")

const golden = "testdata/matrix.golden"

// patience bounds the wait for a line of a rank.
const patience = time.Minute

// A cell is a rank's end while another rank is in an operation.
type cell struct{ world, end, op string }

func (c cell) String() string { return c.world + " | " + c.end + " | " + c.op }

// An outcome is the result of the rank in the operation, and of the idle rank.
type outcome struct{ busy, idle string }

func (o outcome) String() string { return o.busy + " | " + o.idle }

// TestMatrix tests what ranks get when one of them ends: each way of ending, whatever another rank does at that time.
// It compares each cell with the table, which is in testdata/matrix.golden and in docs/recovery.md; go test -update,
// with RINGO_TEST=full, writes both.
func TestMatrix(t *testing.T) {
	if !stops {
		t.Skip("its processes are stopped and killed by signals")
	}
	table := readTable(t)
	var mu sync.Mutex
	written := map[cell]outcome{}
	for _, w := range regions {
		t.Run(w.name, func(t *testing.T) {
			if w.gpus || w.inC {
				tier.Long(t)
			}
			places := make(chan struct{}, 2)
			if w.inC && !w.gpus { // they wait more than they work
				places = make(chan struct{}, 8)
			}
			var cells sync.WaitGroup // for the time of t.Parallel would begin when this function ends
			for _, c := range cellsOf(w) {
				if !tier.Pairs() && !sampled(w, c) {
					continue
				}
				want := table[c]
				if w.together {
					t.Run(c.end+"/"+c.op, func(t *testing.T) { written[c] = check(t, w, c, want) })
					continue
				}
				cells.Go(func() {
					if c.end != "SIGSTOP" { // a rank that is stopped takes no time of a processor
						places <- struct{}{}
						defer func() { <-places }()
					}
					t.Run(c.end+"/"+c.op, func(t *testing.T) {
						got := check(t, w, c, want)
						mu.Lock()
						defer mu.Unlock()
						written[c] = got
					})
				})
			}
			cells.Wait()
		})
	}
	if *update {
		for c, o := range written {
			table[c] = o
		}
		writeTable(t, table)
		writeDocument(t, table)
	}
}

func cellsOf(w region) (all []cell) {
	for _, end := range w.ends {
		for _, op := range w.ops {
			all = append(all, cell{w.name, end, op})
		}
	}
	return all
}

// sampled reports whether a cell belongs to the default tier: a diagonal, of processes with GPUs two cells of it, and
// of programs in C one.
func sampled(w region, c cell) bool {
	switch {
	case w.inC && (w.gpus || c.end != "SIGKILL"):
		return false
	case w.gpus && !w.together && c.end != "SIGKILL" && c.end != "Abort":
		return false
	}
	return c.end != "SIGSTOP" && slices.Index(cellsOf(w), c)%(len(w.ops)+1) == 0
}

// check runs a cell, and again if an outcome comes later than the table says: the machine may have been busy.
func check(t *testing.T, w region, c cell, want outcome) (got outcome) {
	for range 3 {
		got = runCell(t, w, c, want)
		if *update || asGood(got.busy, want.busy) && asGood(got.idle, want.idle) {
			return got
		}
	}
	require.Equal(t, want, got, "%v", c)
	return got
}

// times are how soon ranks hear of an end.
var times = []string{"at once", "within 3 s", "by Config.Timeout"}

// asGood reports whether a rank hears the wanted result, and no later than wanted.
func asGood(got, want string) bool {
	g, soon, _ := strings.Cut(got, ", ")
	w, due, _ := strings.Cut(want, ", ")
	return g == w && slices.Index(times, soon) <= slices.Index(times, due)
}

// runCell has rank 1 end.
func runCell(t *testing.T, w region, c cell, want outcome) outcome {
	all := w.start(t)
	busy, ends, idle := all[0], all[1], all[2]
	each(t, all, "open", "")
	if c.op != "first connection" {
		each(t, all, "done", "do all to all")
	}
	if c.op == "replay" {
		each(t, all, "done", "do graph")
	}
	stopped := c.end == "SIGSTOP"
	if stopped && c.op == "first connection" {
		require.NoError(t, stop(ends.w.cmd.Process))
	}
	if c.op != "Shrink" { // which ends the communicator for all
		idle.tell("watch")
	}
	if c.op == "idle" {
		busy.tell("watch")
	} else {
		busy.tell("do " + c.op)
		said, _ := busy.hear("in", patience)
		require.Empty(t, said, "rank 0 is to be in %s", c.op)
	}
	began := time.Now()
	switch c.end {
	case "SIGKILL":
		require.NoError(t, ends.w.cmd.Process.Kill())
	case "SIGSTOP":
		require.NoError(t, stop(ends.w.cmd.Process))
		time.Sleep(8 * time.Second) // longer than any time-out that is not Config.Timeout
		resume(ends.w.cmd.Process)
		return resumed(t, w, c, all)
	default:
		ends.tell("end " + c.end)
	}
	if c.op == "capture" {
		busy.tell("on")
	}
	if c.op == "Shrink" {
		idle.tell("do Shrink")
	}
	o := outcome{get(w, busy, c, "done", want.busy, began), get(w, idle, c, "fell", want.idle, began)}
	if c.op == "idle" { // until the next operation
		for _, h := range []*handle{busy, idle} {
			h.tell("do " + w.ops[1])
			said, _ := h.hear("done", patience)
			require.Contains(t, []string{"died", "left", "aborted"}, said)
		}
	}
	each(t, []*handle{busy, idle}, "closed", "close") // succeeds whatever has happened
	gone := []*handle{busy, idle}
	switch c.end {
	case "Close", "Abort", "ncclCommDestroy", "ncclCommAbort":
		each(t, []*handle{ends}, "ended", "")
		each(t, []*handle{ends}, "closed", "close")
		gone = all
	case "return", "exit":
		if w.inC {
			gone = all
		}
	}
	if !w.together {
		each(t, gone, "gone", "")
	}
	return o
}

// get is what a rank hears of the end, and roughly when. An idle rank that hears nothing is looked at when others have
// heard.
func get(w region, h *handle, c cell, word, want string, began time.Time) string {
	wait := patience
	switch {
	case c.op == "Shrink":
		word = "done"
	case c.op == "idle":
		word = "fell"
	}
	if word == "fell" && want == "well" {
		wait = 0
	} else if word == "fell" && want == "" {
		wait = 1500 * time.Millisecond // the table is being written
	}
	said, at := h.hear(word, wait)
	if word == "fell" && said == "nothing" {
		return "well"
	}
	switch took := at.Sub(began); {
	case took < tier.Soon(800*time.Millisecond) && slices.Contains(w.atOnce, c.end):
		return said + ", " + times[0]
	case took < tier.Soon(3*time.Second):
		return said + ", " + times[1]
	}
	return said + ", " + times[2]
}

// resumed is what ranks get if the stopped one goes on: all do their part.
func resumed(t *testing.T, w region, c cell, all []*handle) outcome {
	o := outcome{"waits", "well"}
	for r, h := range all {
		if c.op == "idle" {
			h.tell("do " + w.ops[1])
		} else if r > 0 {
			h.tell("do " + c.op)
		}
		if c.op == "capture" {
			h.tell("on")
		}
	}
	wants := "well"
	if c.op == "Shrink" {
		wants = errOf(ranks).Error()
	}
	for r, h := range all {
		if said, _ := h.hear("done", patience); said != wants && r == 0 {
			o.busy = said
		} else if said != wants {
			o.idle = said
		}
	}
	each(t, all, "closed", "close")
	each(t, all, "gone", "")
	return o
}

// each tells all ranks, and waits until they say that it went well.
func each(t *testing.T, all []*handle, word, command string) {
	for _, h := range all {
		if command != "" {
			h.tell(command)
		}
	}
	for r, h := range all {
		said, _ := h.hear(word, patience)
		require.Equal(t, "well", said, "rank %d: %s %s", r, command, word)
	}
}

// readTable gives the table; it is empty while it is written anew.
func readTable(t *testing.T) map[cell]outcome {
	table := map[cell]outcome{}
	if *update && tier.Full() {
		return table
	}
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	for row := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(row, "\n"), " | ")
		require.Len(t, f, 5, row)
		table[cell{f[0], f[1], f[2]}] = outcome{f[3], f[4]}
	}
	return table
}

func writeTable(t *testing.T, table map[cell]outcome) {
	var b strings.Builder
	for _, w := range regions {
		for _, c := range cellsOf(w) {
			if o, ok := table[c]; ok {
				fmt.Fprintf(&b, "%v | %v\n", c, o)
			}
		}
	}
	require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
}
