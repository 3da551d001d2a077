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
func (c *call) context(h cuda.Context) *context {
	for _, d := range c.devices {
		for _, x := range d.contexts() {
			if x.handle == h {
				return x
			}
		}
	}
	for _, t := range c.threads {
		for _, x := range t.stack {
			c.refuse(x.handle == h, cuda.ErrContextIsDestroyed, "context %#x", h)
		}
	}
	c.fail(cuda.ErrInvalidContext, "%#x is no context", h)
	return nil
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
	return of(m, "cuCtxCreate", (*call).device, d, func(c *call, d *device) cuda.Context {
		x := m.newContext(d)
		d.created = append(d.created, x)
		c.th.stack = append(c.th.stack, x)
		return x.handle
	})
}

// CtxDestroy destroys a context of CtxCreate, which is no longer current on the calling thread then.
func (m *Machine) CtxDestroy(h cuda.Context) (err error) {
	c := m.call("cuCtxDestroy", &err)
	defer c.end()
	c.begin()
	x := c.context(h)
	c.refuse(x == x.dev.primary, cuda.ErrInvalidContext, "%#x is a primary context, which is released", h)
	c.await(nil, x.idle)
	if top := len(c.th.stack) - 1; top >= 0 && c.th.stack[top] == x {
		c.th.stack = c.th.stack[:top]
	}
	x.destroy()
	return nil
}

func (m *Machine) DevicePrimaryCtxRetain(d cuda.Device) (cuda.Context, error) {
	return of(m, "cuDevicePrimaryCtxRetain", (*call).device, d, func(c *call, d *device) cuda.Context {
		if d.primary == nil {
			d.primary = m.newContext(d)
		}
		d.primary.refs++
		return d.primary.handle
	})
}

func (m *Machine) DevicePrimaryCtxRelease(d cuda.Device) (err error) {
	c := m.call("cuDevicePrimaryCtxRelease", &err)
	defer c.end()
	c.begin()
	c.refuse(d < 0 || int(d) >= len(c.visible), cuda.ErrInvalidDevice, "device %d of %d", d, len(c.visible))
	ctx := m.visible[d].primary
	c.refuse(ctx == nil, cuda.ErrInvalidContext, "released more often than retained")
	if ctx.refs--; ctx.refs > 0 {
		return nil
	}
	for s := range m.captures {
		if s.origin.ctx == ctx {
			s.invalid = true
		}
	}
	c.await(nil, ctx.idle)
	ctx.destroy()
	return nil
}

// DevicePrimaryCtxReset is cuDevicePrimaryCtxReset, which this module does not call: programs of others do. All that
// lies in the context is freed, which is no leak, whoever has retained it.
func (m *Machine) DevicePrimaryCtxReset(d cuda.Device) (err error) {
	c := m.call("cuDevicePrimaryCtxReset", &err)
	defer c.end()
	c.begin()
	if x := c.device(d).primary; x != nil {
		c.await(nil, x.idle)
		x.drop()
	}
	return nil
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
	active, err = of(m, "cuDevicePrimaryCtxGetState", (*call).device, d, func(c *call, d *device) bool {
		return d.primary != nil
	})
	return 0, active, err
}

func (m *Machine) CtxPushCurrent(h cuda.Context) (err error) {
	c := m.call("cuCtxPushCurrent", &err)
	defer c.end()
	c.begin()
	c.th.stack = append(c.th.stack, c.context(h))
	return nil
}

func (m *Machine) CtxPopCurrent() (_ cuda.Context, err error) {
	c := m.call("cuCtxPopCurrent", &err)
	defer c.end()
	c.begin()
	if c.ctx == nil {
		c.healthy(nil)
	}
	c.th.stack = c.th.stack[:len(c.th.stack)-1]
	return c.ctx.handle, nil
}

func (m *Machine) CtxGetCurrent() (_ cuda.Context, err error) {
	c := m.call("cuCtxGetCurrent", &err)
	defer c.end()
	c.begin()
	if c.ctx == nil {
		return 0, nil
	}
	return c.ctx.handle, nil
}

func (m *Machine) CtxSetCurrent(h cuda.Context) (err error) {
	c := m.call("cuCtxSetCurrent", &err)
	defer c.end()
	c.begin()
	top := max(0, len(c.th.stack)-1)
	if h == 0 {
		c.th.stack = c.th.stack[:top]
		return nil
	}
	c.th.stack = append(c.th.stack[:top], c.context(h))
	return nil
}

func (m *Machine) CtxGetDevice() (_ cuda.Device, err error) {
	c := m.call("cuCtxGetDevice", &err)
	defer c.end()
	c.begin()
	if c.ctx == nil {
		c.healthy(nil)
	}
	return cuda.Device(c.number(c.ctx.dev)), nil
}

func (m *Machine) CtxSynchronize() (err error) {
	c := m.call("cuCtxSynchronize", &err)
	defer c.end()
	c.beginIn()
	if bad := c.capturesOf(func(s *stream) bool { return s.ctx == c.ctx }); bad != nil {
		c.violate(bad, cuda.ErrStreamCaptureUnsupported, "a stream of the context is capturing")
	}
	c.unsafe()
	c.waitFor(c.ctx, c.ctx.work())
	return nil
}

func (m *Machine) CtxEnablePeerAccess(h cuda.Context) (err error) {
	c := m.call("cuCtxEnablePeerAccess", &err)
	defer c.end()
	c.beginIn()
	own, peer := c.ctx.dev, c.context(h).dev
	c.refuse(!own.canAccess(peer), cuda.ErrPeerAccessUnsupported, "device %d cannot access device %d", own.ordinal,
		peer.ordinal)
	c.refuse(c.ctx.peers>>peer.ordinal&1 != 0, cuda.ErrPeerAccessAlreadyEnabled, "to device %d", peer.ordinal)
	c.ctx.peers |= 1 << peer.ordinal
	return nil
}

func (m *Machine) CtxDisablePeerAccess(h cuda.Context) (err error) {
	c := m.call("cuCtxDisablePeerAccess", &err)
	defer c.end()
	c.beginIn()
	peer := c.context(h).dev.ordinal
	c.refuse(c.ctx.peers>>peer&1 == 0, cuda.ErrPeerAccessNotEnabled, "to device %d", peer)
	c.ctx.peers &^= 1 << peer
	return nil
}

// Priorities of streams, smaller is more urgent.
const (
	leastPriority    = 0
	greatestPriority = -5
)

func (m *Machine) CtxGetStreamPriorityRange() (least, greatest int, err error) {
	c := m.call("cuCtxGetStreamPriorityRange", &err)
	defer c.end()
	c.beginIn()
	return leastPriority, greatestPriority, nil
}
