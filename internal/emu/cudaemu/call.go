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

// begin starts a call that needs no context. If there is no error the caller ends it.
func (m *Machine) begin(name string) (*call, error) {
	m.lock()
	c := &call{Machine: m, name: name, th: m.thread()}
	c.ctx = c.th.top()
	err := c.permitted()
	if err != nil {
		m.mu.Unlock()
		return nil, err
	}
	return c, nil
}

// permitted returns the error of a call that the machine refuses whatever its arguments, nil if it permits the call.
func (c *call) permitted() error {
	if c.closing {
		return c.fail(cuda.ErrDeinitialized, "the machine is closed")
	}
	if v := since[c.name]; v > c.cfg.DriverVersion {
		return c.fail(cuda.ErrNotFound, "came with CUDA %d.%d, the driver is %d.%d", v/1000, v%1000/10,
			c.cfg.DriverVersion/1000, c.cfg.DriverVersion%1000/10)
	}
	if c.exec.calling(c.th.id) {
		return c.fail(cuda.ErrNotPermitted, "called from a host function")
	}
	device := -1
	if c.ctx != nil {
		device = c.ctx.dev.ordinal
	}
	if r, _ := c.inject.check(c.name, device); r != 0 {
		return c.fail(r, "injected")
	}
	return nil
}

// beginIn starts a call that needs a context that works.
func (m *Machine) beginIn(name string) (*call, error) {
	c, err := m.begin(name)
	if err != nil {
		return nil, err
	}
	if c.ctx != nil && c.ctx.alone {
		if err := c.await(nil, func() bool { return !c.ctx.alone }); err != nil {
			c.end()
			return nil, err
		}
	}
	if err := c.healthy(c.ctx); err != nil {
		c.end()
		return nil, err
	}
	if m.cfg.AllocsWait && allocates[name] {
		if err := c.idle(c.ctx); err != nil {
			c.end()
			return nil, err
		}
	}
	return c, nil
}

// allocates are the calls of Config.AllocsWait.
var allocates = map[string]bool{
	"cuMemAlloc": true, "cuMemFree": true, "cuMemHostAlloc": true, "cuMemFreeHost": true, "cuMemHostRegister": true,
	"cuMemHostUnregister":        true,
	"cuStreamCreateWithPriority": true,
}

// healthy returns the error that every call in a broken context gets, nil if the context works.
func (c *call) healthy(ctx *context) error {
	switch {
	case ctx == nil:
		return c.fail(cuda.ErrInvalidContext, "thread %d has no current context", c.th.id)
	case ctx.destroyed:
		return c.fail(cuda.ErrContextIsDestroyed, "")
	case ctx.dev.lost != 0:
		return c.following(ctx.dev.lost, "device lost")
	case ctx.sticky != nil:
		return c.following(ctx.sticky.result, ctx.sticky.detail)
	}
	return nil
}

// following is the error of a call that fails because earlier work has.
func (c *call) following(r cuda.Result, detail string) error {
	err := c.fail(r, "%s", detail)
	err.Follows = true
	return err
}

func (c *call) end() { c.mu.Unlock() }

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

func (c *call) fail(r cuda.Result, detail string, args ...any) *cuda.Error {
	e := &cuda.Error{Call: c.name, Result: r, Device: -1, Detail: fmt.Sprintf(detail, args...)}
	if c.ctx != nil {
		e.Device = c.ctx.dev.ordinal
	}
	if r == cuda.ErrInvalidContext && e.Remedy == "" {
		e.Remedy = "make a context current on this OS thread, see cuda.With"
	}
	return e
}

// want fails unless ok.
func (c *call) want(ok bool, r cuda.Result, detail string, args ...any) error {
	if ok {
		return nil
	}
	return c.fail(r, detail, args...)
}

// await waits until done is true, while work goes on, and then returns the error of
// the context. It releases the lock meanwhile.
func (c *call) await(ctx *context, done func() bool) error {
	if !c.exec.wait(done) {
		return c.fail(cuda.ErrDeinitialized, "the machine was closed")
	}
	if ctx == nil {
		return nil
	}
	return c.healthy(ctx)
}

// awaitAlone waits until all work of a context is done, and lets no other call in meanwhile, see
// Config.LoadsWait.
func (c *call) awaitAlone(ctx *context) error {
	ctx.alone = c.cfg.LoadsWait
	ctx.held++
	defer func() {
		ctx.alone = false
		ctx.held--
		c.exec.progress.Broadcast() // wakes the calls that were kept waiting: maybe no work is left to wake them
	}()
	return c.await(ctx, ctx.idle)
}

// on carries out a call that begin has begun, or refused: it finds the object of a handle, calls f with it, and ends
// the call.
func on[H, T any](c *call, err error, find func(*call, H) (T, error), h H, f func(*call, T) error) error {
	if err != nil {
		return err
	}
	defer c.end()
	x, err := find(c, h)
	if err != nil {
		return err
	}
	return f(c, x)
}
