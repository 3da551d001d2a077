package ringo

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A device is the GPU half of a communicator. Its fields are guarded by
// Comm.run, like the host half's.
type device struct {
	gpu    *gpu.Device
	net    *deviceNet
	engine *grid.Engine
	planner
	job      grid.Job
	programs map[programKey]*grid.Program

	known    acquaintance
	captures bool // the stream of the call that was admitted

	last  gpu.Stream // of the last operation that was not captured
	event gpu.Event  // its end, 0 if there was none; the stream may be gone

	spare []mem.Region // for all-to-alls in place; the last is the largest

	fold      *fold // for reductions in order of rank, with its workplace
	workplace *devicePlace

	windows    windows
	registered int       // windows so far
	at         placement // of the call that was routed
	placements placements
	detour     detour
}

// connectDevice connects the GPUs of all ranks. Device memory needs a GPU of every
// rank; c.noDevice says why it cannot be used otherwise.
func (c *Comm) connectDevice(ctx context.Context, self transport.Info) error {
	var without []int
	for i := range c.profiles {
		if c.profiles[i].GPU == "" {
			without = append(without, i)
		}
	}
	switch {
	case len(without) == c.size:
		c.noDevice = "no rank has a GPU: give each one with Config.Device"
		return nil
	case len(without) > 0:
		c.noDevice = fmt.Sprintf("rank %d has no GPU: give every rank one with Config.Device", without[0])
		return nil
	}
	d := &device{gpu: c.cfg.Device, programs: map[programKey]*grid.Program{}}
	c.dev = d
	c.enter()
	ctxHandle, err := d.gpu.Context()
	if err != nil {
		return err
	}
	d.net = &deviceNet{
		rank: c.rank, size: c.size, group: c.group, self: self, cfg: &c.cfg,
		driver: d.gpu.Driver(), ctx: ctxHandle, dev: d.gpu.Handle(),
		geometry: geometryOf(c.size, sharing(c.profiles), c.profiles[0].Processors),
	}
	if c.noDevice, err = d.net.connect(ctx, c); err != nil || c.noDevice != "" {
		return err
	}
	d.engine, err = grid.New(d.gpu.Driver(), ctxHandle, d.gpu.Handle(), d.net, grid.Options{
		Rank: sched.Rank(c.rank), Ranks: c.size, Blocks: d.net.blocks, DirectBlocks: min(grid.MaxBlocks, d.net.blocks),
	})
	if err != nil {
		return err
	}
	if err := d.engine.PrepareCopies(); err != nil {
		return err
	}
	for _, note := range append(d.net.notes(), sharingNotes(c.profiles)...) {
		c.notes = append(c.notes, note)
		c.log.Info("path chosen", "subsys", "INIT", "path", note)
	}
	if err := d.prepareFold(c); err != nil {
		return err
	}
	return c.agreeOnPlan(ctx)
}

// queueOnDevice carries out a checked call on device memory, with c.run held: it
// is queued on the call's stream.
func (c *Comm) queueOnDevice(call *Call) error {
	if err := c.checkDevice(call); err != nil {
		return err
	}
	d := c.dev
	err := d.gpu.With(func() error {
		if err := d.admit(c, call); err != nil {
			return c.refuse(call, err)
		}
		if err := c.begin(call); err != nil {
			return err
		}
		r, err := c.request(call, d.route(call))
		if err == nil {
			err = d.queue(c, call, &r)
		}
		if err != nil {
			return c.fail(call, err)
		}
		return nil
	})
	return c.placed(call, err)
}

// checkDevice finds what is wrong with the memory of a call for a GPU.
func (c *Comm) checkDevice(call *Call) error {
	d := c.dev
	if d == nil || d.engine == nil {
		return c.errorOf(call, 0, fmt.Errorf("%w: GPU memory: %s", ErrUnsupported, c.noDevice))
	}
	for _, r := range []Region{call.In, call.Out} {
		if !r.IsHost() && r.Dev() != d.gpu.Number() {
			return c.errorOf(call, 0, fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", ErrInvalid, r.Dev(), d.gpu.Number()))
		}
	}
	return nil
}

// queue queues a request, with the device's context current.
func (d *device) queue(c *Comm, call *Call, r *request) error {
	if a := r.key.algo; a == algoWindow || a == algoCopies {
		return d.reach(c, call, r)
	}
	switch {
	case r.key.algo == algoByRank:
		return d.queueByRank(c, call, r)
	case r.key.algo == algoTwoShot && call.Kind == KindReduce:
		return d.reduceInShares(c, call, r)
	}
	if k, ok := d.kernel(call.Kind, r.key.algo, call.bytes()); ok {
		return d.post(c, call, r, k)
	}
	j := &d.job
	if err := d.prepare(c, call, r, j); err != nil {
		return err
	}
	return d.inOrder(call.Stream, func() error {
		if call.copiesIn() {
			if err := d.copyIn(call, j); err != nil {
				return err
			}
		}
		return d.engine.Run(j)
	})
}

// post queues a request for a direct kernel.
func (d *device) post(c *Comm, call *Call, r *request, k grid.Direct) error {
	j := &d.job
	*j = jobOf(call, r)
	return d.inOrder(call.Stream, func() error {
		if call.copiesIn() && call.In.Ptr() != call.Out.Ptr() {
			if err := d.copyIn(call, j); err != nil {
				return err
			}
		}
		if r.op == kernels.KindPreMulSum {
			if err := d.scaleIn(c, call, r, j); err != nil {
				return err
			}
		}
		return d.engine.RunDirect(j, k, sched.Rank(max(0, r.key.peer)), call.Count*r.size)
	})
}

// jobOf is the job of a request without its program.
func jobOf(call *Call, r *request) grid.Job {
	return grid.Job{
		In: call.In.Slice(0, r.in), Out: call.Out.Slice(0, r.out),
		Reducer: r.reducer, Scalar: r.scalar, Stamp: r.stamp, Stream: call.Stream,
	}
}

// copyIn has the job read a copy of In, for a collective that writes before it
// has read all.
func (d *device) copyIn(call *Call, j *grid.Job) error {
	spare, err := d.scratch(j.In.Len())
	if err != nil {
		return err
	}
	if err := d.gpu.Driver().MemcpyAsync(spare.Ptr(), j.In.Ptr(), j.In.Len(), call.Stream); err != nil {
		return err
	}
	j.In = spare
	return nil
}

// inOrder has f queue an operation on a stream, after the operation before.
func (d *device) inOrder(s gpu.Stream, f func() error) error {
	if err := d.follow(s); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	d.net.wake()
	if d.captures {
		return nil
	}
	d.last = s
	return d.gpu.Driver().EventRecord(d.event, s)
}

// follow has the stream wait for the operation before, if that is on another
// one: operations of a communicator happen in the order they are called. What is
// captured is ordered by the caller, who knows where the graph is launched.
func (d *device) follow(s gpu.Stream) (err error) {
	driver := d.gpu.Driver()
	switch {
	case d.captures:
	case d.event == 0:
		d.event, err = driver.EventCreate(eventForOrder)
	case d.last != s:
		err = driver.StreamWaitEvent(s, d.event, 0)
	}
	return err
}

// eventForOrder is CU_EVENT_DISABLE_TIMING, which is cheaper.
const eventForOrder = 2

// scratch is n bytes of device memory for an operation. What was handed out
// before is kept, since graphs may go on using it.
func (d *device) scratch(n int) (mem.Region, error) {
	if k := len(d.spare); k > 0 && d.spare[k-1].Len() >= n {
		return d.spare[k-1].Slice(0, n), nil
	}
	r, err := d.gpu.Alloc(max(1, n)) // no memory has no address
	if err != nil {
		return r, err
	}
	d.spare = append(d.spare, r)
	return r.Slice(0, n), nil
}

// Device is the rank's GPU, nil if it has none.
func (c *Comm) Device() *gpu.Device { return c.cfg.Device }

// Synchronize waits until the work of a stream of this rank's GPU is done and
// returns why the communicator has failed, if it has.
func (c *Comm) Synchronize(s gpu.Stream) error {
	if c.cfg.Device == nil {
		return fmt.Errorf("%w: this rank has no GPU", ErrInvalid)
	}
	if err := c.cfg.Device.Synchronize(s); err != nil {
		return err
	}
	return c.verdict()
}

// finish waits until the operations that were queued have ended.
func (d *device) finish(guard *fifo.Guard) error {
	if d.event == 0 {
		return nil
	}
	if guard.Aborted() != nil {
		d.engine.Control().Abort()
	}
	return d.gpu.With(func() error { return d.gpu.Driver().EventSynchronize(d.event) })
}

// release gives everything back. Work that was queued has been waited for or
// aborted.
func (d *device) release() error {
	var errs []error
	if d.engine != nil {
		errs = append(errs, d.engine.Close())
	}
	if d.event != 0 {
		errs = append(errs, d.gpu.DestroyEvent(d.event))
	}
	errs = append(errs, d.detour.close(d.gpu))
	if d.workplace != nil {
		errs = append(errs, d.workplace.close())
	}
	for _, r := range d.spare {
		errs = append(errs, d.gpu.Free(r))
	}
	if d.net != nil {
		errs = append(errs, d.net.close())
	}
	return errors.Join(errs...)
}
