package gpucomm

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/process"
	"github.com/ringo-go/ringo/trace"
)

// The watcher looks at the control blocks of communicators every watchPeriod while a GPU
// works for one of them. In quiet times the period doubles up to idlePeriod, and no more:
// graphs are launched without a call of this package, and what is queued may wait long for
// the caller's own work.
const (
	watchPeriod = 5 * time.Millisecond
	idlePeriod  = 100 * time.Millisecond
)

// A watcher is a goroutine that looks at all communicators of the process. There is one
// while a communicator is open that has used its GPU.
type watcher struct {
	wake  chan struct{}
	dozes atomic.Bool // it sleeps longer than watchPeriod

	mu      sync.Mutex
	watched []watched // guarded by mu
	runs    bool      // guarded by mu
}

// A watched is what the watcher looks at: the watch of a communicator. look reports whether operations are under way,
// and whether there is no more to watch.
type watched interface {
	look(now time.Time) (works, done bool)
}

var watchers = process.NewRegistry(func() *watcher { return &watcher{wake: make(chan struct{}, 1)} })

// add has the watcher look at a communicator.
func (w *watcher) add(x watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = append(w.watched, x)
	if !w.runs {
		w.runs = true
		go w.run()
	}
}

// remove has the watcher forget a communicator. When it returns nobody looks at the communicator.
func (w *watcher) remove(x watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = slices.DeleteFunc(w.watched, func(o watched) bool { return o == x })
	w.rouse() // to end, if that was the last
}

// rouse has the watcher look at once, if it dozes. It does not wait.
func (w *watcher) rouse() {
	if !w.dozes.Load() {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default: // roused already
	}
}

func (w *watcher) run() {
	trace.Name("watcher")
	timer := time.NewTimer(watchPeriod)
	defer timer.Stop()
	for period := watchPeriod; ; {
		select {
		case <-timer.C:
			period = min(2*period, idlePeriod)
		case <-w.wake:
			period = watchPeriod
		}
		busy, goesOn := w.look()
		if !goesOn {
			return
		}
		if busy {
			period = watchPeriod
		}
		w.dozes.Store(period > watchPeriod)
		timer.Reset(period)
	}
}

// look looks at all communicators. It reports whether a GPU works for one of them, and
// whether one still needs a watcher.
func (w *watcher) look() (busy, goesOn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left, now := 0, time.Now()
	for _, x := range w.watched {
		works, done := x.look(now)
		busy = busy || works
		if !done {
			w.watched[left] = x
			left++
		}
	}
	clear(w.watched[left:])
	w.watched = w.watched[:left]
	w.runs = left > 0
	return busy, w.runs
}
