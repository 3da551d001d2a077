package capi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// An allocation is memory of MemAlloc.
type allocation struct {
	device *gpu.Device // nil on the host
	region mem.Region
	host   []byte // keeps host memory alive; it does not move
}

// The memory of MemAlloc begins at a multiple of windowAlign, as windows must. A GPU's has whole
// blocks of the driver's, so that a peer to which it is opened sees nothing else.
const (
	windowAlign = 4096
	deviceBlock = 2 << 20
)

// MemAlloc allocates n bytes on the calling thread's GPU, or on the host. All GPUs that reach the memory have access to
// it.
func (l *Library) MemAlloc(n uint64) (uintptr, error) {
	if n > 1<<46 {
		return 0, fmt.Errorf("%w: ncclMemAlloc of %d bytes", ringo.ErrInvalid, n)
	}
	d, err := l.here()
	if n == 0 || err != nil {
		return 0, err // no memory is at 0, as with cudaMalloc
	}
	at, err := l.allocate(d, n)
	if err == nil && d != nil {
		if err = l.grant(at); err != nil {
			return 0, errors.Join(err, l.MemFree(at))
		}
	}
	return at, err
}

// grant gives all GPUs access to memory of allocate.
func (l *Library) grant(at uintptr) error {
	l.mu.Lock()
	a, m := l.memory[at], l.machine
	l.mu.Unlock()
	var all []*gpu.Device
	for i := range m.Count() {
		d, err := m.Device(i)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	return a.device.Grant(a.region, all...)
}

func (l *Library) allocate(d *gpu.Device, n uint64) (_ uintptr, err error) {
	a := allocation{device: d}
	at := uintptr(0)
	if d == nil {
		a.host = make([]byte, n+windowAlign-1)
		at = (addressOf(a.host) + windowAlign - 1) &^ (windowAlign - 1)
	} else {
		// Mapped memory begins with a page, other memory of whole blocks with one; the emulator's begins anywhere.
		whole := int(n+deviceBlock-1) &^ (deviceBlock - 1)
		if a.region, err = d.AllocMapped(whole); err == nil && a.region.Ptr()%windowAlign != 0 {
			if err = d.Free(a.region); err == nil {
				a.region, err = d.AllocMapped(whole + windowAlign)
			}
		}
		if err != nil {
			return 0, err
		}
		at = (a.region.Ptr() + windowAlign - 1) &^ (windowAlign - 1)
	}
	l.mu.Lock()
	l.memory[at] = a
	l.mu.Unlock()
	return at, nil
}

// MemFree frees memory of MemAlloc. Work that uses the memory has to be done. Memory that other
// ranks may still have open as a window is freed when the window is closed, see Deregister.
func (l *Library) MemFree(at uintptr) error {
	if at == 0 {
		return nil
	}
	l.mu.Lock()
	a, ok := l.memory[at]
	delete(l.memory, at)
	l.mu.Unlock()
	switch {
	case !ok:
		return &cudaError{fmt.Errorf("ncclMemFree: %#x is no memory of ncclMemAlloc, or was freed: cudaFree frees other "+
			"memory", at)}
	case a.device == nil:
		return nil
	case l.postpone(a):
		return nil
	}
	return a.device.Free(a.region)
}

// postpone has memory freed later if it is in a window.
func (l *Library) postpone(a allocation) bool {
	l.mu.Lock()
	list := slices.Concat(l.comms.all(), l.ending)
	l.mu.Unlock()
	for _, c := range list {
		if c.holds(a.region) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.late = append(l.late, a)
			return true
		}
	}
	return false
}

// holds reports whether a region is in a window of the communicator that peers may have open.
func (c *comm) holds(r mem.Region) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.windows {
		if w != nil && w.ring != nil && w.ring.Region().Overlaps(r) {
			return true
		}
	}
	return false
}

// release ends the windows and handles of a communicator that has ended.
func (l *Library) release(c *comm) error {
	c.mu.Lock()
	left := slices.DeleteFunc(c.windows, func(w *window) bool { return w == nil || !w.resource || w.ended })
	c.windows = nil
	c.mu.Unlock()
	l.dropWindows(c)
	errs := []error{c.records.free()}
	for _, w := range left { // programs destroy device communicators late, or never
		errs = append(errs, l.MemFree(w.at))
	}
	return errors.Join(append(errs, l.freeLate())...)
}

// freeLate frees memory of late that is in no window any more.
func (l *Library) freeLate() error {
	l.mu.Lock()
	waiting := l.late
	l.late = nil
	l.mu.Unlock()
	var errs []error
	for _, a := range waiting {
		if !l.postpone(a) {
			errs = append(errs, a.device.Free(a.region))
		}
	}
	return errors.Join(errs...)
}

// A window is memory that a program has registered.
type window struct {
	comm     *comm
	at       uintptr
	bytes    int
	number   int           // index among the communicator's windows, -1 for Register
	ring     *ringo.Window // nil where the window has no effect
	record   uintptr       // address of the record that kernels take for the window; 0 for none
	base     uint64        // address of rank 0's memory for kernels, 0 where they have none
	stride   uint64        // from a rank's memory to the next rank's
	reason   string        // why base is 0
	resource bool          // the memory is the library's, for a device communicator
	ended    bool          // guarded by comm.mu; deregistered by the program
}

// Register notes memory of one rank, without effect. NCCL gives peers direct access to such memory;
// here that needs all ranks to call WindowRegister.
func (l *Library) Register(handle, at uintptr) (uintptr, error) {
	c, _, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	return l.windows.Add(&window{comm: c, at: at, number: -1}), nil
}

// WindowRegister makes a window of all ranks' memory. All ranks call it together, with the same number of
// bytes. Outside of a group it waits for the others, even if the communicator does not block. On a GPU
// the handle is the address of the window's record (records.go).
func (l *Library) WindowRegister(group, handle, at uintptr, n uint64) (_ uintptr, err error) {
	defer func() { l.Fail(group, err) }()
	if at == 0 || n == 0 { // as with NCCL, no rank makes a window
		return 0, nil
	}
	c, r, err := l.ready(handle)
	if err != nil {
		return 0, err
	}
	if at%windowAlign != 0 {
		return 0, fmt.Errorf("%w: ncclCommWindowRegister of %d bytes at %#x: a window begins at a multiple of %d",
			ringo.ErrInvalid, n, at, windowAlign)
	}
	w := &window{comm: c, at: at, bytes: int(n), number: -1}
	h := l.addWindow(w)
	register := job{c, nil, func() (*ringo.Comm, error) {
		return nil,
			errorOf("ncclCommWindowRegister", l.register(w, r))
	}}
	if group == 0 { // NCCL never returns ncclInProgress here, and PyTorch would take it for an error
		err = register.carryOut()
	} else {
		err = l.job(group, register)
	}
	if err != nil && err != errInProgress {
		_, _ = l.takeWindow(h)
		if w.number < 0 {
			c.records.put(w.record)
		}
		return 0, err
	}
	return h, err
}

// register has all ranks make a window. They call it together.
func (l *Library) register(w *window, r *ringo.Comm) error {
	c := w.comm
	if c.device == nil {
		return c.registerHost(w, r)
	}
	if err := c.closeEnded(r); err != nil {
		return err
	}
	if err := l.freeLate(); err != nil {
		return err
	}
	ring, err := r.Register(mem.Device(c.device.Number(), w.at, w.bytes))
	if err != nil {
		return err
	}
	c.mu.Lock()
	w.ring, w.number = ring, len(c.windows)
	c.windows = append(c.windows, w)
	c.mu.Unlock()
	return w.layOut(r)
}

// registerHost makes a window of host memory, which one-sided messages use. All ranks call it together.
func (c *comm) registerHost(w *window, r *ringo.Comm) (err error) {
	c.mu.Lock()
	p := c.post
	c.mu.Unlock()
	if p == nil {
		if p, err = openPost(c.opening, r, c.config); err != nil {
			return err
		}
	}
	number := p.add(hostMemory(w.at, w.bytes))
	c.mu.Lock()
	c.post, w.number = p, number
	c.mu.Unlock()
	return ringo.Barrier(r) // a put after this finds the window on every rank
}

// closeEnded closes the windows that all ranks have deregistered, so that their memory may be
// registered anew. All ranks call it together.
func (c *comm) closeEnded(r *ringo.Comm) error {
	c.mu.Lock()
	windows := slices.Clone(c.windows)   // another thread may abort the communicator
	ended := make([]uint8, len(windows)) // as many on all ranks
	for i, w := range windows {
		if w != nil && w.ended {
			ended[i] = 1
		}
	}
	c.mu.Unlock()
	if len(ended) == 0 {
		return nil
	}
	if err := ringo.AllReduce(r, ended, ringo.Min); err != nil {
		return err
	}
	for i, all := range ended {
		if all == 0 {
			continue
		}
		err := windows[i].ring.Close()
		if errors.Is(err, ringo.ErrInvalid) { // on all ranks: a graph holds operations in it
			continue
		}
		if err != nil {
			return err
		}
		if err = c.records.unlist(windows[i]); err != nil {
			return err
		}
		c.records.put(windows[i].record)
		c.mu.Lock()
		if i < len(c.windows) {
			c.windows[i] = nil
		}
		c.mu.Unlock()
	}
	return nil
}

// Deregister ends the handle of a Register or WindowRegister, for this rank alone and without
// waiting, since programs call it where they free memory. No later call of this rank uses the window, so
// its memory may be freed or mapped anew after the work already queued. The ranks' access to each other's
// memory ends with the first WindowRegister after all ranks have deregistered the window, or with the
// communicator.
func (l *Library) Deregister(handle, window uintptr) error {
	c, err := l.comms.Get(handle)
	if err != nil || window == 0 { // 0 is the handle of a registration of nothing
		return err
	}
	w, err := l.window(window)
	if err != nil {
		return err
	}
	if w.comm != c {
		return fmt.Errorf("%w: the window is another communicator's", ringo.ErrInvalid)
	}
	if _, err = l.takeWindow(window); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.ended = true
	if w.ring != nil {
		w.ring.Retire()
	}
	if c.post != nil && w.number >= 0 {
		c.post.remove(w.number)
	}
	return nil
}

// WindowAt is where the memory of a window begins.
func (l *Library) WindowAt(handle, window uintptr) (uintptr, error) {
	w, err := l.window(window)
	if err != nil {
		return 0, err
	}
	if c, err := l.comms.Get(handle); err != nil || w.comm != c {
		return 0, fmt.Errorf("%w: the window is another communicator's", ringo.ErrInvalid)
	}
	return w.at, nil
}

// Unsupported returns the error of a function of NCCL that this library does not have.
func Unsupported(name string) error {
	return fmt.Errorf("%s: %w by libnccl of Ringo %s, which has nothing for kernels that use networks: call collectives "+
		"from the host, or ask for LSA barriers",
		name, ringo.ErrUnsupported, ringo.Version)
}
