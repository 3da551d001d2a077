package ringotest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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
			list = append(list, "goroutines: "+g.text)
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
