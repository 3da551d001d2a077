package cudaemu

import (
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A thread is the driver's state of an OS thread.
type thread struct {
	id    int
	stack []*context // the last one is current
	mode  cuda.CaptureMode
	seen  time.Duration // modelled: the end of all that it has waited for
}

// thread is the state of the calling thread.
func (m *Machine) thread() *thread {
	id := threadID()
	t := m.threads[id]
	if t == nil {
		t = &thread{id: id}
		m.threads[id] = t
	}
	return t
}

func (t *thread) top() *context {
	if len(t.stack) == 0 {
		return nil
	}
	return t.stack[len(t.stack)-1]
}
