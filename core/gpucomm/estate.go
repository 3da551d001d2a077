package gpucomm

import (
	"context"
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

// upkeep is what a communicator has besides its calls: the GPU memory that they need, who watches and observes them,
// and their end.
type upkeep struct {
	base
	estate    *estate
	watch     watch
	observed  *observed // nil if nobody observes
	closed    bool
	suspended bool // see Footprint
}

func (u *upkeep) open() (err error) {
	d := u.Device
	u.watch.judged, u.watch.end = context.WithCancel(context.Background())
	u.estate = &estate{driver: d.Driver(), dev: d.Handle(), later: d.Later, log: u.Log}
	if u.estate.ctx, err = d.Driver().DevicePrimaryCtxRetain(d.Handle()); err != nil {
		u.estate = nil
		return err
	}
	u.observed, err = openObserved(u.Numberer, u.estate)
	return err
}

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
func (u *upkeep) event() (gpu.Event, error) {
	e, err := newEvent(u.Device)
	if err == nil {
		u.estate.keep(func() error { return u.estate.driver.EventDestroy(e) }) // giveBack makes the context current
	}
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
