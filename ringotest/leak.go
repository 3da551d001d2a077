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

// A mark is what there was before a trial. Goroutines of the trial have its label, which those that they start inherit; so
// what other tests do at the same time is not taken for a leak.
type mark struct {
	label string
	files map[string]string // descriptors, as they were
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
	m := &mark{runs: begun.Add(1), alone: active.Add(1) == 1}
	m.label = fmt.Sprint(m.runs)
	if m.alone {
		m.files = files()
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

// settleTime is how long a leak has to last to be one: goroutines and sockets take a moment to end.
var settleTime = 2 * time.Second

// left says what is left of a trial.
func (m *mark) left() (list []string) {
	for end := time.Now().Add(settleTime); ; time.Sleep(time.Millisecond) {
		list = m.goroutines()
		if m.alone && begun.Load() == m.runs {
			list = append(list, m.descriptors()...)
		}
		if len(list) == 0 || time.Now().After(end) {
			return list
		}
	}
}

// goroutines are those of the trial, each with its stack.
func (m *mark) goroutines() (list []string) {
	var b bytes.Buffer
	labels.Lock() // one profile at a time
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	labels.Unlock()
	for _, g := range strings.Split(b.String(), "\n\n") {
		if strings.Contains(g, fmt.Sprintf("%q:%q", labelKey, m.label)) {
			list = append(list, "goroutines: "+strings.TrimSpace(g))
		}
	}
	return list
}

// descriptors are those that were not there before.
func (m *mark) descriptors() (list []string) {
	for number, what := range files() {
		if m.files[number] != what {
			list = append(list, fmt.Sprintf("descriptor %s: %s", number, what))
		}
	}
	return list
}
