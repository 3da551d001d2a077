package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A region is memory that placed connections may have their slots in.
type region struct {
	transport.Memory
	users    sync.WaitGroup // ends whose slots lie in it
	released atomic.Bool

	mu   sync.Mutex
	errs []error // of ends that have left it
}

// releaseTime is how long the ends may take in all to leave a region: they close at once.
func (t *Transport) releaseTime() time.Duration { return 2*closeTime + t.ends.Linger() }

// leave notes that an end has closed its comms, with the error of that.
func (r *region) leave(err error) {
	if err != nil {
		r.mu.Lock()
		r.errs = append(r.errs, err)
		r.mu.Unlock()
	}
	r.users.Done()
}

// Register is part of transport.Registrar: memory of the host, or of a GPU where all devices of
// the plugin take that, for the slots of placed connections. Each connection registers all of the
// memory with the plugin anew. When memory of a GPU is registered for the first time in a process,
// the plugin has to carry slots within it as a trial (see try), if the memory is large enough.
// Release closes the connections whose slots lie in the memory, and waits until the plugin has let
// go of it, as long as closing a connection takes.
func (t *Transport) Register(m transport.Memory) (release func() error, err error) {
	r := &region{Memory: m}
	addr, err := t.add(r)
	if n := t.cfg.Limits.Slots * t.cfg.Limits.SlotBytes; err == nil && !m.IsHost() && m.Len() >= n {
		slots := m.Slice(0, n)
		if err = t.try(trial{m.Dev(), m.DMABuf != nil}, addr, &slots); err != nil {
			err = errors.Join(err, t.release(r))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("plugin: register: %w", err)
	}
	return func() error { return t.release(r) }, nil
}

// add adds r to the regions, if all devices take its memory. It returns the address on which this
// rank listens.
func (t *Transport) add(r *region) (addr []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.addr == nil {
		return nil, errors.New("this rank does not listen yet")
	}
	for _, d := range t.devices {
		if err := t.lib.takes(d, r.Memory); err != nil {
			return nil, t.lib.failed("getProperties", err)
		}
	}
	t.regions = append(t.regions, r)
	return t.addr, nil
}

// takes is why a device cannot have memory registered, nil if it can.
func (l *Library) takes(d *Device, m transport.Memory) error {
	switch {
	case m.IsHost(): // see usable
		return nil
	case l.flushes(d, m) && l.table.fn[fnIflush] == 0:
		return errors.New("its table has no iflush, without which GPUs do not see what came")
	case d.memory&deviceMemory != 0, l.exports(d, m):
		return nil
	case d.memory&dmaBuf == 0:
		return fmt.Errorf("device %v takes no GPU memory (it says neither NCCL_PTR_CUDA nor NCCL_PTR_DMABUF)", d)
	case l.table.fn[fnRegMrDmaBuf] == 0:
		return fmt.Errorf("device %v takes GPU memory as a dma-buf (NCCL_PTR_DMABUF) and the plugin's table has no "+
			"regMrDmaBuf", d)
	}
	return fmt.Errorf("device %v takes GPU memory only as a dma-buf (NCCL_PTR_DMABUF), which this GPU or its driver "+
		"does not export", d)
}

// flushes reports whether data that a device has received into memory are flushed before kernels are
// told. A plugin that needs no flush completes it at once.
func (l *Library) flushes(d *Device, m transport.Memory) bool {
	return !m.IsHost() && (!m.Ordered || d.flush)
}

// exports reports whether a device gets memory as a dma-buf.
func (l *Library) exports(d *Device, m transport.Memory) bool {
	return d.memory&dmaBuf != 0 && l.table.fn[fnRegMrDmaBuf] != 0 && m.DMABuf != nil
}

func (t *Transport) release(r *region) error {
	t.mu.Lock()
	t.regions = slices.DeleteFunc(t.regions, func(x *region) bool { return x == r })
	t.mu.Unlock()
	r.released.Store(true)
	for _, e := range t.ends.Append(nil) {
		if e.lies(r) {
			_ = e.Close()
		}
	}
	left := make(chan struct{})
	go func() {
		r.users.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(t.releaseTime()):
		return fmt.Errorf("plugin: release: %w",
			t.lib.failed("", fmt.Errorf("it has not let go of the memory in %v", t.releaseTime())))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// evicted reports whether the memory in which the slots lie was released.
func (h *half) evicted() bool {
	r := h.region.Load()
	return r != nil && r.released.Load()
}

// lies reports whether the slots lie in r.
func (h *half) lies(r *region) bool { return h.region.Load() == r }

// find is the region in which slots lie.
func (t *Transport) find(slots mem.Region) (*region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.enclosing(slots)
}

// enclosing is find with mu held.
func (t *Transport) enclosing(slots mem.Region) (*region, error) {
	if l := t.cfg.Limits; slots.Len() != l.Slots*l.SlotBytes {
		return nil, fmt.Errorf("%d bytes for %d slots of %d", slots.Len(), l.Slots, l.SlotBytes)
	}
	for _, r := range t.regions {
		if r.Dev() == slots.Dev() && slots.Ptr() >= r.Ptr() && slots.Ptr()+uintptr(slots.Len()) <= r.Ptr()+uintptr(r.Len()) {
			return r, nil
		}
	}
	return nil, errors.New("slots in memory that was not registered")
}

// settle registers the slots of a placed end with the plugin.
func (h *half) settle(ctx context.Context, slots mem.Region) error {
	var seen bool
	err := h.within(ctx, func() error {
		h.t.mu.Lock()
		r, err := h.t.enclosing(slots)
		if err == nil {
			r.users.Add(1) // until end
			h.region.Store(r)
		}
		h.t.mu.Unlock()
		if err != nil {
			return err
		}
		seen = !h.t.lib.flushes(h.dev, r.Memory)
		return h.register(h.direct, r.Memory)
	})
	if err != nil {
		return err
	}
	return h.outcome(fnRegMr, h.t.data.do(ctx, func() error {
		h.slots, h.seen = slots, seen
		return nil
	}))
}

// knowRing registers the ring with the plugin.
func (h *half) knowRing(ctx context.Context) error {
	return h.within(ctx, func() error {
		return h.register(h.main, transport.Memory{Region: mem.Host(h.ring.memory)})
	})
}

// within has the actor carry out f, unless the comms are closed.
func (h *half) within(ctx context.Context, f func() error) error {
	return h.outcome(fnRegMr, h.setup.do(ctx, func() error {
		if h.ended {
			return fifo.ErrClosed
		}
		return f()
	}))
}

// register registers the memory of a queue's messages, a GPU's as a dma-buf where that is possible.
func (h *half) register(q *queue, m transport.Memory) error {
	f, kind := fnRegMr, hostMemory
	if !m.IsHost() {
		kind = deviceMemory
	}
	var r Result
	if kind == deviceMemory && h.t.lib.exports(h.dev, m) {
		fd, offset, err := m.DMABuf()
		switch {
		case err == nil:
			f = fnRegMrDmaBuf
			q.mr, r = q.call.registerDMABuf(m.Ptr(), m.Len(), offset, fd)
			_ = os.NewFile(uintptr(fd), "dma-buf").Close() // the plugin has made a duplicate if it needs one
		case h.dev.memory&deviceMemory == 0:
			return h.blamed(fnRegMrDmaBuf, fmt.Errorf("export GPU memory: %w", err))
		}
	}
	if f == fnRegMr {
		q.mr, r = q.call.register(m.Ptr(), m.Len(), kind)
	}
	q.known = r == 0
	return h.result(f, r)
}
