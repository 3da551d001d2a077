package cudaemu

import (
	"maps"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A context is the primary one of a device, from the first retain to the last release, or one of CtxCreate.
type context struct {
	m         *Machine
	handle    cuda.Context
	dev       *device
	refs      int
	destroyed bool
	sticky    *failure // the error of every call since a kernel failed
	peers     uint64   // devices whose memory kernels may touch
	legacy    *stream
	perThread map[int]*stream
	streams   []*stream // all, with legacy and those of threads
	alone     bool      // a call that lets no other in waits for the context's work
	// calls that wait for work of the context and keep copies of other GPUs waiting, see Config.LoadsWait
	held int

	limits [len(defaultLimits)]int // see CtxSetLimit
	heap   heap
}

// A failure is the error that ended a context.
type failure struct {
	result cuda.Result
	detail string
}

// context is the context of a handle.
func (c *call) context(h cuda.Context) (*context, error) {
	for _, d := range c.devices {
		for _, x := range d.contexts() {
			if x.handle == h {
				return x, nil
			}
		}
	}
	for _, t := range c.threads {
		for _, x := range t.stack {
			if x.handle == h {
				return nil, c.fail(cuda.ErrContextIsDestroyed, "context %#x", h)
			}
		}
	}
	return nil, c.fail(cuda.ErrInvalidContext, "%#x is no context", h)
}

func (m *Machine) newContext(d *device) *context {
	x := &context{m: m, handle: cuda.Context(m.handles.give(contextHandle)), dev: d, perThread: map[int]*stream{},
		limits: defaultLimits}
	x.heap.ctx = x
	x.legacy = x.newStream(cuda.StreamLegacy, cuda.StreamDefault, 0)
	return x
}

// contexts are the device's contexts that are not destroyed.
func (d *device) contexts() []*context {
	if d.primary == nil {
		return d.created
	}
	return append([]*context{d.primary}, d.created...)
}

// CtxCreate is cuCtxCreate, which this module does not call: programs of others do. The context is current on the
// thread from then on. Kernels of one context reach memory of another here, which on hardware they do not.
func (m *Machine) CtxCreate(d cuda.Device) (cuda.Context, error) {
	return ofDevice(m, "cuCtxCreate", d, func(c *call, d *device) (cuda.Context, error) {
		x := m.newContext(d)
		d.created = append(d.created, x)
		c.th.stack = append(c.th.stack, x)
		return x.handle, nil
	})
}

// CtxDestroy destroys a context of CtxCreate, which is no longer current on the calling thread then.
func (m *Machine) CtxDestroy(h cuda.Context) error {
	return ofContext(m, "cuCtxDestroy", h, func(c *call, x *context) error {
		if x == x.dev.primary {
			return c.fail(cuda.ErrInvalidContext, "%#x is a primary context, which is released", h)
		}
		if !m.exec.wait(x.idle) {
			return c.fail(cuda.ErrDeinitialized, "the machine was closed")
		}
		if top := len(c.th.stack) - 1; top >= 0 && c.th.stack[top] == x {
			c.th.stack = c.th.stack[:top]
		}
		x.destroy()
		return nil
	})
}

// ofContext calls f with the context of a handle.
func ofContext(m *Machine, name string, h cuda.Context, f func(*call, *context) error) error {
	c, err := m.begin(name)
	if err != nil {
		return err
	}
	defer c.end()
	x, err := c.context(h)
	if err != nil {
		return err
	}
	return f(c, x)
}

func (m *Machine) DevicePrimaryCtxRetain(d cuda.Device) (cuda.Context, error) {
	return ofDevice(m, "cuDevicePrimaryCtxRetain", d, func(c *call, d *device) (cuda.Context, error) {
		if d.primary == nil {
			d.primary = m.newContext(d)
		}
		d.primary.refs++
		return d.primary.handle, nil
	})
}

func (m *Machine) DevicePrimaryCtxRelease(d cuda.Device) error {
	c, err := m.begin("cuDevicePrimaryCtxRelease")
	if err != nil {
		return err
	}
	defer c.end()
	if d < 0 || int(d) >= len(c.visible) {
		return c.fail(cuda.ErrInvalidDevice, "device %d of %d", d, len(c.visible))
	}
	ctx := m.visible[d].primary
	if ctx == nil {
		return c.fail(cuda.ErrInvalidContext, "released more often than retained")
	}
	if ctx.refs--; ctx.refs > 0 {
		return nil
	}
	for s := range m.captures {
		if s.origin.ctx == ctx {
			s.invalidate()
		}
	}
	if !m.exec.wait(ctx.idle) {
		return c.fail(cuda.ErrDeinitialized, "the machine was closed")
	}
	ctx.destroy()
	return nil
}

// DevicePrimaryCtxReset is cuDevicePrimaryCtxReset, which this module does not call: programs of others do. All that
// lies in the context is freed, which is no leak, whoever has retained it.
func (m *Machine) DevicePrimaryCtxReset(d cuda.Device) error {
	_, err := ofDevice(m, "cuDevicePrimaryCtxReset", d, func(c *call, d *device) (none struct{}, err error) {
		x := d.primary
		if x == nil {
			return none, nil
		}
		if !m.exec.wait(x.idle) {
			return none, c.fail(cuda.ErrDeinitialized, "the machine was closed")
		}
		x.drop()
		return none, nil
	})
	return err
}

// destroy frees all that lies in the context, and notes what the program should have freed.
func (x *context) destroy() {
	x.m.leaks = append(x.m.leaks, x.contents()...)
	x.drop()
}

// drop frees all that lies in the context.
func (x *context) drop() {
	m := x.m
	x.destroyed = true
	if x == x.dev.primary {
		x.dev.primary = nil
	}
	x.dev.created = slices.DeleteFunc(x.dev.created, func(y *context) bool { return y == x })
	for _, r := range slices.Clone(m.regions.sorted) {
		if r.ctx == x {
			m.drop(r)
		}
	}
	for _, s := range x.streams {
		if s.isUser() && !s.destroyed {
			m.forgetStream(s)
		}
	}
	for _, h := range slices.Sorted(maps.Keys(m.events)) {
		if e := m.events[h]; e.ctx == x {
			e.close()
			m.forgetEvent(e)
		}
	}
	for _, h := range slices.Sorted(maps.Keys(m.modules)) {
		if mod := m.modules[h]; mod.ctx == x {
			m.forgetModule(mod)
			mod.unload()
		}
	}
}

// idle reports whether all work is done.
func (x *context) idle() bool {
	return !slices.ContainsFunc(x.streams, func(s *stream) bool { return s.last != nil && !s.last.done })
}

// fail ends the context and drops its queued work.
func (x *context) fail(r cuda.Result, detail string) {
	if x.sticky == nil {
		x.sticky = &failure{r, detail}
	}
}

// broken reports whether the context's work must not run.
func (x *context) broken() bool { return x.sticky != nil || x.dev.lost != 0 || x.destroyed }

func (m *Machine) DevicePrimaryCtxGetState(d cuda.Device) (flags uint32, active bool, err error) {
	active, err = ofDevice(m, "cuDevicePrimaryCtxGetState", d, func(c *call, d *device) (bool, error) {
		return d.primary != nil, nil
	})
	return 0, active, err
}

func (m *Machine) CtxPushCurrent(h cuda.Context) error {
	return ofContext(m, "cuCtxPushCurrent", h, func(c *call, x *context) error {
		c.th.stack = append(c.th.stack, x)
		return nil
	})
}

func (m *Machine) CtxPopCurrent() (cuda.Context, error) {
	c, err := m.begin("cuCtxPopCurrent")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if c.ctx == nil {
		return 0, c.healthy(nil)
	}
	c.th.stack = c.th.stack[:len(c.th.stack)-1]
	return c.ctx.handle, nil
}

func (m *Machine) CtxGetCurrent() (cuda.Context, error) {
	c, err := m.begin("cuCtxGetCurrent")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if c.ctx == nil {
		return 0, nil
	}
	return c.ctx.handle, nil
}

func (m *Machine) CtxSetCurrent(h cuda.Context) error {
	c, err := m.begin("cuCtxSetCurrent")
	if err != nil {
		return err
	}
	defer c.end()
	top := max(0, len(c.th.stack)-1)
	if h == 0 {
		c.th.stack = c.th.stack[:top]
		return nil
	}
	x, err := c.context(h)
	if err != nil {
		return err
	}
	c.th.stack = append(c.th.stack[:top], x)
	return nil
}

func (m *Machine) CtxGetDevice() (cuda.Device, error) {
	c, err := m.begin("cuCtxGetDevice")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if c.ctx == nil {
		return 0, c.healthy(nil)
	}
	return cuda.Device(c.number(c.ctx.dev)), nil
}

func (m *Machine) CtxSynchronize() error {
	c, err := m.beginIn("cuCtxSynchronize")
	if err != nil {
		return err
	}
	defer c.end()
	if bad := c.capturesOf(func(s *stream) bool { return s.ctx == c.ctx }); bad != nil {
		return c.violate(bad, cuda.ErrStreamCaptureUnsupported, "a stream of the context is capturing")
	}
	if err := c.unsafe(); err != nil {
		return err
	}
	return c.synchronize(c.ctx, c.ctx.streams)
}

func (m *Machine) CtxEnablePeerAccess(h cuda.Context) error {
	return m.peer("cuCtxEnablePeerAccess", h, func(c *call, peer *context) error {
		bit := uint64(1) << peer.dev.ordinal
		switch {
		case !c.ctx.dev.canAccess(peer.dev):
			return c.fail(cuda.ErrPeerAccessUnsupported, "device %d cannot access device %d", c.ctx.dev.ordinal,
				peer.dev.ordinal)
		case c.ctx.peers&bit != 0:
			return c.fail(cuda.ErrPeerAccessAlreadyEnabled, "to device %d", peer.dev.ordinal)
		}
		c.ctx.peers |= bit
		return nil
	})
}

func (m *Machine) CtxDisablePeerAccess(h cuda.Context) error {
	return m.peer("cuCtxDisablePeerAccess", h, func(c *call, peer *context) error {
		bit := uint64(1) << peer.dev.ordinal
		if c.ctx.peers&bit == 0 {
			return c.fail(cuda.ErrPeerAccessNotEnabled, "to device %d", peer.dev.ordinal)
		}
		c.ctx.peers &^= bit
		return nil
	})
}

func (m *Machine) peer(name string, h cuda.Context, f func(*call, *context) error) error {
	c, err := m.beginIn(name)
	return on(c, err, (*call).context, h, f)
}

// Priorities of streams, smaller is more urgent.
const (
	leastPriority    = 0
	greatestPriority = -5
)

func (m *Machine) CtxGetStreamPriorityRange() (least, greatest int, err error) {
	c, err := m.beginIn("cuCtxGetStreamPriorityRange")
	if err != nil {
		return 0, 0, err
	}
	defer c.end()
	return leastPriority, greatestPriority, nil
}
