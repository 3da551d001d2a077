package cudaemu

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A call is one call of the driver; it holds the machine's lock.
type call struct {
	*Machine
	name string
	th   *thread
	ctx  *context // current; nil if none
	err  *error   // of the call's result
}

// since is the driver version that introduced a function, for those that are not in
// every driver that this library supports.
var since = map[string]int{
	"cuMemGetAllocationGranularity": 10020, "cuMemCreate": 10020, "cuMemRelease": 10020,
	"cuMemAddressReserve": 10020, "cuMemAddressFree": 10020, "cuMemMap": 10020, "cuMemUnmap": 10020,
	"cuMemSetAccess": 10020, "cuMemExportToShareableHandle": 10020, "cuMemImportFromShareableHandle": 10020,
	"cuMemGetHandleForAddressRange":     11070,
	"cuMemRetainAllocationHandle":       11000,
	"cuThreadExchangeStreamCaptureMode": 10010,
	"cuEventRecordWithFlags":            11010, "cuGraphUpload": 11010,
	"cuStreamGetCaptureInfo": 11030, "cuStreamUpdateCaptureDependencies": 11030,
	"cuUserObjectCreate": 11030, "cuUserObjectRetain": 11030, "cuUserObjectRelease": 11030,
	"cuGraphRetainUserObject":     11030,
	"cuGraphAddEventRecordNode":   11010,
	"cuGraphInstantiateWithFlags": 11040,
	"cuGraphExecUpdate":           12000,
	"cuStreamBeginCaptureToGraph": 12030, "cuGraphConditionalHandleCreate": 12030, "cuGraphAddNode": 12030,
	"cuStreamGetId": 12000,
}

// call starts a call of the driver. The caller defers end, then calls begin or what begins with it. A check that fails
// ends the call: it does not return, and err is set.
func (m *Machine) call(name string, err *error) *call {
	m.lock()
	c := &call{Machine: m, name: name, th: m.thread(), err: err}
	c.ctx = c.th.top()
	return c
}

// failed is what a check panics with; end recovers it.
type failed struct{ err error }

func (c *call) end() {
	c.mu.Unlock()
	c.failed(recover())
}

// failed sets the error of the check that failed. Any other panic goes on.
func (c *call) failed(p any) {
	switch p := p.(type) {
	case nil:
	case failed:
		*c.err = p.err
	default:
		panic(p)
	}
}

// begin fails a call that the machine refuses whatever its arguments.
func (c *call) begin() {
	c.refuse(c.closing, cuda.ErrDeinitialized, "the machine is closed")
	if v := since[c.name]; v > c.cfg.DriverVersion {
		c.fail(cuda.ErrNotFound, "came with CUDA %d.%d, the driver is %d.%d", v/1000, v%1000/10,
			c.cfg.DriverVersion/1000, c.cfg.DriverVersion%1000/10)
	}
	c.refuse(c.exec.calling(c.th.id), cuda.ErrNotPermitted, "called from a host function")
	device := -1
	if c.ctx != nil {
		device = c.ctx.dev.ordinal
	}
	if r, _ := c.inject.check(c.name, device); r != 0 {
		c.fail(r, "injected")
	}
}

// beginIn is begin for a call that needs a context that works.
func (c *call) beginIn() {
	c.begin()
	if c.ctx != nil && c.ctx.alone {
		c.await(nil, func() bool { return !c.ctx.alone })
	}
	c.healthy(c.ctx)
	if c.cfg.AllocsWait && allocates[c.name] {
		ops := c.ctx.work() // which orders nothing for the host
		c.await(c.ctx, func() bool { return allDone(ops) })
	}
}

// allocates are the calls of Config.AllocsWait.
var allocates = map[string]bool{
	"cuMemAlloc": true, "cuMemFree": true, "cuMemHostAlloc": true, "cuMemFreeHost": true, "cuMemHostRegister": true,
	"cuMemHostUnregister":        true,
	"cuStreamCreateWithPriority": true,
}

// healthy fails if the context is broken.
func (c *call) healthy(ctx *context) {
	switch {
	case ctx == nil:
		c.fail(cuda.ErrInvalidContext, "thread %d has no current context", c.th.id)
	case ctx.destroyed:
		c.fail(cuda.ErrContextIsDestroyed, "")
	case ctx.dev.lost != 0:
		c.follow(ctx.dev.lost, "device lost")
	case ctx.sticky != nil:
		c.follow(ctx.sticky.result, ctx.sticky.detail)
	}
}

// follow fails a call because earlier work has failed.
func (c *call) follow(r cuda.Result, detail string) {
	err := c.error(r, "%s", detail)
	err.Follows = true
	panic(failed{err})
}

// caller is who makes a call about a device, or about none.
func (m *Machine) caller(d *device) Caller {
	switch {
	case m.cfg.Caller == nil:
		return Caller{}
	case d == nil:
		return m.cfg.Caller(-1)
	}
	return m.cfg.Caller(m.number(d))
}

func (c *call) error(r cuda.Result, detail string, args ...any) *cuda.Error {
	e := &cuda.Error{Call: c.name, Result: r, Device: -1, Detail: fmt.Sprintf(detail, args...)}
	if c.ctx != nil {
		e.Device = c.ctx.dev.ordinal
	}
	if r == cuda.ErrInvalidContext {
		e.Remedy = "make a context current on this OS thread, see cuda.With"
	}
	return e
}

// fail ends the call with an error.
func (c *call) fail(r cuda.Result, detail string, args ...any) {
	panic(failed{c.error(r, detail, args...)})
}

// refuse fails the call if something is wrong.
func (c *call) refuse(wrong bool, r cuda.Result, detail string, args ...any) {
	if wrong {
		c.fail(r, detail, args...)
	}
}

// check fails the call if another part of the emulator has failed.
func (c *call) check(err error, r cuda.Result) { c.refuse(err != nil, r, "%v", err) }

// of is a call that asks something of the object of a handle.
func of[H, X, T any](m *Machine, name string, find func(*call, H) X, h H, ask func(*call, X) T) (_ T, err error) {
	c := m.call(name, &err)
	defer c.end()
	c.begin()
	return ask(c, find(c, h)), nil
}

// await waits until done is true, while work goes on, and fails if the context is broken then. It releases the lock
// meanwhile.
func (c *call) await(ctx *context, done func() bool) {
	c.refuse(!c.exec.wait(done), cuda.ErrDeinitialized, "the machine was closed")
	if ctx != nil {
		c.healthy(ctx)
	}
}

// awaitAlone waits until all work of a context is done, and lets no other call in meanwhile, see
// Config.LoadsWait.
func (c *call) awaitAlone(ctx *context) {
	ctx.alone = c.cfg.LoadsWait
	ctx.held++
	defer func() {
		ctx.alone = false
		ctx.held--
		c.exec.progress.Broadcast() // wakes the calls that were kept waiting: maybe no work is left to wake them
	}()
	c.await(ctx, ctx.idle)
}
