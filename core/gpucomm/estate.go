package gpucomm

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// An estate is what the operations of a communicator need on its GPU. The communicator
// holds it until it is closed, and each graph that has captured one of its operations until
// the last of what was made of the graph is destroyed. Then it is given back.
type estate struct {
	driver cuda.Driver
	dev    cuda.Device
	later  func(func()) // gpu.Device.Later
	ctx    cuda.Context // held, since graphs may outlast the gpu.Device's use
	log    *slog.Logger
	graphs atomic.Int64 // that hold it
	left   atomic.Bool  // the communicator does not hold it any more

	rooms []*cuda.Growing // guarded by the Turn

	mu      sync.Mutex
	ended   []uint64       // guarded by mu; captures whose graphs are gone, until the communicator has heard of it
	things  []func() error // guarded by mu; they give back, the last one first
	sealed  bool           // guarded by mu
	control *grid.Control  // guarded by mu; nil unless it is sealed and not given back
	ran     uint64         // guarded by mu; operations until it was sealed
	late    uint64         // guarded by mu; operations since
}

// newEstate retains the primary context of a GPU.
func newEstate(d *gpu.Device, log *slog.Logger) (*estate, error) {
	e := &estate{driver: d.Driver(), dev: d.Handle(), later: d.Later, log: log}
	var err error
	if e.ctx, err = e.driver.DevicePrimaryCtxRetain(e.dev); err != nil {
		return nil, err
	}
	return e, nil
}

// keep has the estate give something back at its end.
func (e *estate) keep(giveBack func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.things = append(e.things, giveBack)
}

// memory makes memory that grows, which the estate gives back.
func (e *estate) memory() *cuda.Growing {
	m := cuda.NewGrowing(e.driver, e.ctx, e.dev)
	e.rooms = append(e.rooms, m)
	e.keep(m.Close)
	return m
}

// event makes an event for order, which the estate gives back.
func (e *estate) event() (gpu.Event, error) {
	made, err := newEvent(e.driver, e.ctx)
	if err == nil {
		e.keep(func() error { return e.driver.EventDestroy(made) }) // giveBack makes the context current
	}
	return made, err
}

// newEvent returns an event for order, without a time stamp, which is cheaper.
func newEvent(d cuda.Driver, ctx cuda.Context) (e gpu.Event, err error) {
	err = cuda.With(d, ctx, func() error {
		e, err = d.EventCreate(cuda.EventDisableTiming)
		return err
	})
	return e, err
}

// hold has a graph that is being captured hold the estate.
func (e *estate) hold(graph cuda.Graph, id uint64) error {
	e.graphs.Add(1)
	o, err := e.driver.UserObjectCreate(func() { e.lost(id) }, 1)
	if err != nil {
		e.lost(id)
		return err
	}
	if err := e.driver.GraphRetainUserObject(graph, o, 1, true); err != nil {
		return errors.Join(err, e.driver.UserObjectRelease(o, 1)) // which calls lost
	}
	return nil
}

// lost says that the graph of a capture is gone. A thread of the driver calls it, on which
// the driver must not be called.
func (e *estate) lost(id uint64) {
	e.mu.Lock()
	e.ended = append(e.ended, id)
	e.mu.Unlock()
	if e.graphs.Add(-1) == 0 && e.left.Load() {
		e.later(func() {
			if err := e.giveBack(); err != nil {
				e.log.Warn("what graphs have held is not given back", "subsys", "GPU", "err", err)
			}
		})
	}
}

// gone are the captures whose graphs are gone since the last time that it was called.
func (e *estate) gone() []uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.ended
	e.ended = nil
	return list
}

// seal says that all operations have ended, and that the device knows that there are to be
// no more. From now on operations of graphs are counted.
func (e *estate) seal(c *grid.Control) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.control, e.sealed = c, true
	e.ran, _ = c.Progress()
}

// trespass reports whether the estate is sealed. It is an error if graphs were launched after
// that.
func (e *estate) trespass() (sealed bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.count(); e.late > 0 {
		err = fmt.Errorf("%w, and %d operations of graphs that were launched later did nothing: destroy graphs that hold "+
			"operations of a communicator when it is closed, or launch them no more", call.ErrClosed, e.late)
	}
	return e.sealed, err
}

// count brings late up to date. The caller holds mu.
func (e *estate) count() {
	if e.control != nil {
		started, _ := e.control.Progress()
		e.late = started - e.ran
	}
}

// leave ends the communicator's hold, and gives back unless a graph holds the estate.
func (e *estate) leave() error {
	e.left.Store(true)
	n := e.graphs.Load()
	if n == 0 {
		return e.giveBack()
	}
	e.log.Info("graphs hold operations of a closed communicator: its memory is given back when they are destroyed",
		"subsys", "GPU", "graphs", n)
	return nil
}

// giveBack gives everything back, once.
func (e *estate) giveBack() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == 0 {
		return nil
	}
	e.count()
	e.control = nil
	err := cuda.Quietly(e.driver, e.ctx, func() error { // for another thread may capture a stream meanwhile
		var errs []error
		for i := len(e.things) - 1; i >= 0; i-- {
			errs = append(errs, e.things[i]())
		}
		return errors.Join(errs...)
	})
	e.things, e.ctx = nil, 0
	return errors.Join(err, e.driver.DevicePrimaryCtxRelease(e.dev))
}
