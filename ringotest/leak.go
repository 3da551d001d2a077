package ringotest

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/opened"
)

// A mark is the state of the process before a trial. Goroutines of the trial have its label, which goroutines that they
// start inherit; so goroutines of other tests are not taken for a leak. A goroutine that the library names (trace.Name)
// has that name in place of the label; such goroutines are counted.
type mark struct {
	label string
	files map[string]string // descriptors, as they were
	named map[string]int    // goroutines with a name, as they were
	alone bool              // no other trial has run at the same time
	runs  int64             // trials that had begun
}

const labelKey = "ringotest"

var (
	begun  atomic.Int64 // trials
	active atomic.Int64 // trials that have not ended
	labels sync.Mutex   // see goroutines
)

// newMark is the mark of a trial that begins.
func newMark() *mark {
	m := &mark{runs: begun.Add(1), alone: active.Add(1) == 1, named: map[string]int{}}
	m.label = fmt.Sprint(m.runs)
	if m.alone {
		m.files = files()
		for _, g := range goroutines() {
			m.named[g.name()] += g.n
		}
	}
	return m
}

func (m *mark) done() { active.Add(-1) }

// within calls f on a goroutine that belongs to the trial.
func (m *mark) within(f func() error) error {
	done := make(chan error)
	go pprof.Do(context.Background(), pprof.Labels(labelKey, m.label), func(context.Context) { done <- f() })
	return <-done
}

// children are communicators that ranks have made of theirs and not closed, by *ringo.Comm.
var children sync.Map

// A child is such a communicator.
type child struct {
	rank *Rank
	text string // how and where it was made
}

func init() {
	watch := func(parent, made any, how string) func() {
		var r *Rank
		if c, ok := children.Load(parent); ok {
			r = c.(*child).rank
		} else if of, ok := ofComm.Load(parent); ok {
			r = of.(*Rank)
		} else {
			return nil
		}
		text := "a communicator of " + how + " was not closed"
		b := make([]byte, stackBytes/16)
		frames := strings.Split(outside(string(b[:runtime.Stack(b, false)])), "\n")
		if len(frames) > 2 { // the first frame outside of Ringo
			text += ", of " + position(frames[2])
		}
		children.Store(made, &child{r, text})
		return func() { children.Delete(made) }
	}
	opened.Watch.Store(&watch)
}

// unclosed are the communicators that ranks of the trial have not closed, which are forgotten.
func (x *trial) unclosed() (list []string) {
	children.Range(func(made, c any) bool {
		if c := c.(*child); c.rank.trial == x {
			list = append(list, fmt.Sprintf("rank %d: %s", c.rank.rank, c.text))
			children.Delete(made)
		}
		return true
	})
	slices.Sort(list)
	return list
}

// leftovers are what is left of a trial. Goroutines and descriptors of a communicator that was not closed are not named
// beside it.
func (x *trial) leftovers(m *mark) []string {
	switch list := x.unclosed(); {
	case !x.leaks || x.t.Failed():
		return nil
	case len(list) > 0:
		return list
	}
	return m.left()
}

// settleTime is how long a leak has to last to count: goroutines and sockets take a moment to end.
var settleTime = 2 * time.Second

// left is the goroutines and descriptors that are left of a trial.
func (m *mark) left() (list []string) {
	for end := time.Now().Add(settleTime); ; time.Sleep(time.Millisecond) {
		alone := m.alone && begun.Load() == m.runs
		list = m.goroutines(alone)
		if alone {
			list = append(list, m.descriptors()...)
		}
		if len(list) == 0 || time.Now().After(end) {
			return list
		}
	}
}

// A likeness is goroutines with the same stack and labels.
type likeness struct {
	n    int
	text string // of package pprof
}

// goroutines are all goroutines of this process.
func goroutines() (list []likeness) {
	var b bytes.Buffer
	labels.Lock() // one profile at a time
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	labels.Unlock()
	_, all, _ := strings.Cut(b.String(), "\n") // the first line is their number
	for _, text := range strings.Split(all, "\n\n") {
		g := likeness{text: strings.TrimSpace(text)}
		fmt.Sscanf(g.text, "%d @", &g.n)
		list = append(list, g)
	}
	return list
}

// makers are the lines that started such goroutines, as a profile does not have them: those of all goroutines whose
// stacks have the same lines.
func (g *likeness) makers() (text string) {
	var want []string
	for line := range strings.Lines(g.text) {
		if strings.HasPrefix(line, "#\t0x") {
			want = append(want, strings.TrimSpace(line[strings.LastIndex(line, "\t"):]))
		}
	}
	b := make([]byte, stackBytes)
	for stack := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		frames, maker, ok := strings.Cut(strings.TrimSpace(stack), "\ncreated by ")
		var have []string
		for line := range strings.Lines(frames) {
			if at, frame := strings.CutPrefix(line, "\t"); frame {
				at, _, _ = strings.Cut(strings.TrimSpace(at), " +0x")
				have = append(have, at)
			}
		}
		function, line, _ := strings.Cut(maker, "\n")
		function, _, _ = strings.Cut(function, " in goroutine")
		if made := "\ncreated by " + function + " at " + position(line); ok && slices.Equal(want, have) &&
			!strings.Contains(text, made) {
			text += made
		}
	}
	return text
}

// position is "file.go:17" of a line of a stack.
func position(line string) string {
	at, _, _ := strings.Cut(strings.TrimSpace(line), " +0x")
	return filepath.Base(at)
}

// name is the library's name for the goroutines, "" if none. The watcher of GPUs counts as none: it is the process's.
func (g *likeness) name() string {
	_, name, _ := strings.Cut(g.text, `# labels: {"ringo":"`)
	if name, _, _ = strings.Cut(name, `"`); name == "watcher" {
		return ""
	}
	return name
}

// goroutines are the trial's, each with its stack; and if the trial is alone, named goroutines of which there are more
// than before.
func (m *mark) goroutines(alone bool) (list []string) {
	named := map[string]int{}
	for _, g := range goroutines() {
		name := g.name()
		named[name] += g.n
		if strings.Contains(g.text, fmt.Sprintf("%q:%q", labelKey, m.label)) ||
			alone && name != "" && named[name] > m.named[name] {
			list = append(list, "goroutines: "+g.text+g.makers())
		}
	}
	return list
}

// descriptors are the descriptors that were not there before.
func (m *mark) descriptors() (list []string) {
	for number, what := range files() {
		if m.files[number] != what {
			list = append(list, fmt.Sprintf("descriptor %s: %s", number, what))
		}
	}
	return list
}
