package gpucomm

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cuda"
)

// An estate is what the operations of a communicator need on its GPU. The communicator
// holds it until it is closed, and each graph that has captured one of its operations until
// the last of what was made of the graph is destroyed.
type estate struct {
	graphs atomic.Int64 // that hold it

	mu    sync.Mutex
	ended []uint64 // guarded by mu; captures whose graphs are gone, until the communicator has heard of it
}

// hold has a graph that is being captured hold the estate.
func (e *estate) hold(d cuda.Driver, graph cuda.Graph, id uint64) error {
	e.graphs.Add(1)
	o, err := d.UserObjectCreate(func() { e.lost(id) }, 1)
	if err != nil {
		e.lost(id)
		return err
	}
	if err := d.GraphRetainUserObject(graph, o, 1, true); err != nil {
		return errors.Join(err, d.UserObjectRelease(o, 1)) // which calls lost
	}
	return nil
}

// lost says that the graph of a capture is gone. A thread of the driver calls it, on which
// the driver must not be called.
func (e *estate) lost(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, id)
	e.graphs.Add(-1)
}

// gone are the captures whose graphs are gone since the last time that it was called.
func (e *estate) gone() []uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.ended
	e.ended = nil
	return list
}
