package gpucomm

import (
	"sync"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/process"
)

// A chain has the operations of all communicators of a process on a GPU follow each other, in
// the order of their calls, on whichever streams and in whichever graphs they are (see
// ringo.Config.LaunchOrder). An order does the same for those of one communicator.
type chain struct {
	driver cuda.Driver
	ctx    cuda.Context
	event  gpu.Event // the end of the last operation
	turn   sync.Mutex

	mu         sync.Mutex            // may be taken while turn is held
	recordings map[uint64]*recording // guarded by mu; by capture
}

type chainKey struct {
	driver cuda.Driver
	dev    cuda.Device
}

var chains = process.NewShared[chainKey]((*chain).close)

// joinChain gives the chain of a GPU, until leave.
func joinChain(in *process.Process, d *gpu.Device) (c *chain, leave func() error, err error) {
	key := chainKey{d.Driver(), d.Handle()}
	ctx, err := d.Context()
	if err != nil {
		return nil, nil, err
	}
	c, err = chains.Open(in, key, func() (*chain, error) {
		event, err := newEvent(key.driver, ctx)
		return &chain{driver: key.driver, ctx: ctx, event: event, recordings: map[uint64]*recording{}}, err
	})
	return c, func() error { return chains.Leave(in, key) }, err
}

func (c *chain) close() error {
	return cuda.Quietly(c.driver, c.ctx, func() error { return c.driver.EventDestroy(c.event) })
}

// begin takes the turn, and puts an operation after the one queued before it, whichever communicator that was of.
func (c *chain) begin(e *entry) (err error) {
	c.turn.Lock()
	e.chained = true
	if !e.captures {
		return c.driver.StreamWaitEvent(e.handle, c.event, 0)
	}
	e.inChain = c.recording(e.capture.ID)
	if err = e.inChain.begin(c.driver, e, c.event); err == nil {
		e.capture, err = c.driver.StreamGetCaptureInfo(e.handle) // with the new dependencies
	}
	return err
}

// end notes the end of the operation.
func (c *chain) end(e *entry) error {
	if e.captures {
		return e.inChain.end(c.driver, e, c.event)
	}
	return c.driver.EventRecord(c.event, e.handle)
}

// leave gives the turn back, if the operation has it.
func (c *chain) leave(e *entry) {
	if e.chained {
		e.chained = false
		c.turn.Unlock()
	}
}

// recording is the recording of a capture, which it makes the first time.
func (c *chain) recording(id uint64) *recording {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.recordings[id]
	if r == nil {
		r = new(recording)
		c.recordings[id] = r
	}
	return r
}

// forget drops the recordings of graphs that are gone. A nil chain has none.
func (c *chain) forget(captures []uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range captures {
		delete(c.recordings, id)
	}
}
