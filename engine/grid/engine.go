package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels/collective"
)

// An Engine carries out operations on one device, one after the other: the caller
// orders its streams so that no two operations run at once. Its methods must not be
// called concurrently. There is one for each carrier; which of them carries a job out the caller decides, by its Facts.
type Engine struct {
	base
	bulk
	interpreter
	linger
	messages
	directKernels
	batches
	norms
	windows
	copyEngines
	signaling
}

// New makes an Engine for a device and its primary context. It allocates the memory
// that outlasts operations and loads no kernel.
func New(d cuda.Driver, ctx cuda.Context, dev cuda.Device, l Links, o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	e := &Engine{base: newBase(newMemory(d, ctx, dev), l, &o)}
	e.bulk.base, e.interpreter.bulk, e.linger.interpreter, e.messages.bulk = &e.base, &e.bulk, &e.interpreter, &e.bulk
	e.directKernels.base, e.batches.directKernels, e.norms.directKernels = &e.base, &e.directKernels, &e.directKernels
	e.windows.base, e.copyEngines.windows, e.signaling.base = &e.base, &e.windows, &e.base
	err := e.quietly(func() error {
		for _, open := range []func(*Options) error{e.base.open, e.bulk.open, e.linger.open, e.messages.open,
			e.directKernels.open, e.norms.open, e.windows.open, e.copyEngines.open, e.signaling.open} {
			if err := open(&o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("grid: device %d: %w", dev, err), e.Close())
	}
	return e, nil
}

// Close frees the Engine's memory and modules. Its kernels have to be done, and
// graphs that hold them must not be launched again.
func (e *Engine) Close() error {
	if e.store == nil {
		return nil
	}
	return errors.Join(e.copyEngines.close(), e.linger.close(), e.base.close())
}

// Run queues a job for a schedule, one way or another. The caller chooses it by the job's Facts.
func (e *Engine) Run(j *Job, way collective.Way) error {
	switch way {
	case collective.ByMessages:
		return e.RunMessages([]*Job{j})
	case collective.BySideBySide:
		return e.RunSideBySide(j)
	case collective.ByLinger:
		return e.RunLingering(j)
	case collective.ByBulk:
		return e.RunBulk(j)
	}
	return e.RunThreads(j)
}

// PrepareCopies loads all kernels that only copy: the interpreter's, and direct and
// window kernels where there are any. Call it before any kernel runs: loading may wait
// for the running kernels of the context, and these may wait for a rank that this
// thread calls only after the load.
func (e *Engine) PrepareCopies() error {
	err := e.Prepare(nil)
	if e.CanDirect() {
		err = errors.Join(err, e.PrepareDirect(nil))
	}
	if len(e.gates) > 0 {
		err = errors.Join(err, e.PrepareWindow(nil))
	}
	return err
}
