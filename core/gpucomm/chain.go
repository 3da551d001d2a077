package gpucomm

import (
	"slices"
	"sync"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A chain has the operations of all communicators of a process on a GPU follow each other, in
// the order of their calls, on whichever streams and in whichever graphs they are (see
// ringo.Config.LaunchOrder). order.inTurn does the same for the operations of one communicator.
type chain struct {
	driver cuda.Driver
	event  gpu.Event // the end of the last operation
	users  int       // guarded by chains
	turn   sync.Mutex

	mu         sync.Mutex            // may be taken while turn is held
	recordings map[uint64]*recording // guarded by mu; by capture
}

type chainKey struct {
	driver cuda.Driver
	dev    cuda.Device
}

var chains struct {
	sync.Mutex
	of map[chainKey]*chain
}

// joinChain gives the chain of a GPU, until leave.
func joinChain(d *gpu.Device) (c *chain, leave func() error, err error) {
	key := chainKey{d.Driver(), d.Handle()}
	ctx, err := d.Context()
	if err != nil {
		return nil, nil, err
	}
	chains.Lock()
	defer chains.Unlock()
	if c = chains.of[key]; c == nil {
		c = &chain{driver: d.Driver(), recordings: map[uint64]*recording{}}
		if c.event, err = newEvent(d); err != nil {
			return nil, nil, err
		}
		if chains.of == nil {
			chains.of = map[chainKey]*chain{}
		}
		chains.of[key] = c
	}
	c.users++
	return c, func() error {
		chains.Lock()
		defer chains.Unlock()
		if c.users--; c.users > 0 {
			return nil
		}
		delete(chains.of, key)
		return cuda.Quietly(c.driver, ctx, func() error { return c.driver.EventDestroy(c.event) })
	}, nil
}

// after calls f, which queues an operation, so that the operation follows the one queued before it, whichever
// communicator that was of.
func (c *chain) after(e *entry, f func() error) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	if e.captures {
		return c.recording(e.capture.ID).add(c.driver, e, c.event, func() (err error) {
			if e.capture, err = c.driver.StreamGetCaptureInfo(e.handle); err != nil { // with the new dependencies
				return err
			}
			return f()
		})
	}
	if err := c.driver.StreamWaitEvent(e.handle, c.event, 0); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return c.driver.EventRecord(c.event, e.handle)
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

// follow makes what the stream captures next depend on the recording's last operation alone, which depends on the
// earlier ones: operations that are captured on several streams make a graph without branches.
func (r *recording) follow(d cuda.Driver, s gpu.Stream, has []cuda.GraphNode) error {
	after := slices.Clone(r.last)
	for _, n := range has {
		if !r.past[n] && !slices.Contains(after, n) {
			after = append(after, n)
		}
	}
	if len(after) == len(has) &&
		!slices.ContainsFunc(has, func(n cuda.GraphNode) bool { return !slices.Contains(after, n) }) {
		return nil
	}
	return d.StreamUpdateCaptureDependencies(s, after, cuda.CaptureSetDependencies)
}
