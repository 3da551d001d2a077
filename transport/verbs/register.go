package verbs

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A memory is memory that Register has registered with all devices of a Transport.
type memory struct {
	mem.Region
	readBack bool // kernels see the writes of devices only after a read by the same device
	mrs      map[*device]*ibverbs.MR
}

// Register pins memory and registers it with all devices of the Transport, which it opens if need be.
// That takes about 50 µs and 0.1 µs a page for each device, and for GPU memory about as much. Slots of
// placed connections lie in registered memory. After release devices cannot reach the memory, and
// connections that still use it fail.
func (t *Transport) Register(m transport.Memory) (release func() error, err error) {
	if _, err := t.open(); err != nil {
		return nil, fmt.Errorf("ib: register: %w", err)
	}
	defer t.ends.Leave()
	known := &memory{Region: m.Region, readBack: !m.IsHost() && !m.Ordered, mrs: map[*device]*ibverbs.MR{}}
	for _, d := range t.devices {
		mr, err := d.register(m, known.access())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("ib: register: %s: %w", d.name, err), known.release())
		}
		known.mrs[d] = mr
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.memory = append(t.memory, known)
	return func() error { return t.release(known) }, nil
}

// access is the access that devices have to the memory. Peers can only write: reading back goes over a
// queue pair of its own, the only one that allows reads. Relaxed ordering would be correct for slots,
// since only completions are polled, but it is not set: no device at hand could show a gain.
func (m *memory) access() int {
	if m.readBack {
		return ibverbs.AccessLocalWrite | ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead
	}
	return ibverbs.AccessLocalWrite | ibverbs.AccessRemoteWrite
}

func (t *Transport) release(m *memory) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.memory, m)
	if i < 0 {
		return nil // released before, or with the Transport
	}
	t.memory = slices.Delete(t.memory, i, i+1)
	return m.release()
}

func (m *memory) release() error {
	var errs []error
	for d, mr := range m.mrs {
		if err := d.verbs.DeregMR(mr); err != nil {
			errs = append(errs, fmt.Errorf("ib: release: %s: %w", d.name, err))
		}
	}
	return errors.Join(errs...)
}

// register registers memory with a device.
func (d *device) register(m transport.Memory, access int) (*ibverbs.MR, error) {
	if m.IsHost() {
		mr, err := d.verbs.RegMR(d.pd, m.Ptr(), m.Len(), access)
		return mr, lockedMemory(err)
	}
	mr, err := d.registerDMABuf(m, access)
	if err == nil {
		return mr, nil
	}
	mr, byAddress := d.verbs.RegMR(d.pd, m.Ptr(), m.Len(), access)
	if byAddress == nil {
		return mr, nil
	}
	return nil, fmt.Errorf("GPU memory: %w; and by its address: %w (modprobe nvidia-peermem)", err, byAddress)
}

func (d *device) registerDMABuf(m transport.Memory, access int) (*ibverbs.MR, error) {
	if m.DMABuf == nil {
		return nil, errors.New("the driver or the GPU exports no dma-buf")
	}
	fd, offset, err := m.DMABuf()
	if err != nil {
		return nil, fmt.Errorf("export a dma-buf: %w", err)
	}
	mr, err := d.verbs.RegDMABufMR(d.pd, offset, m.Len(), uint64(m.Ptr()), fd, access)
	closeFD(fd)
	return mr, err
}

// lockedMemory adds a remedy to the error of a registration of host memory.
func lockedMemory(err error) error {
	if errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("%w: the limit of locked memory may be too low, raise it (ulimit -l unlimited, docker run "+
			"--ulimit memlock=-1)", err)
	}
	return err
}

// known is the registered memory in which a placed connection's slots lie.
func (t *Transport) known(slots mem.Region) (*memory, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if want := t.cfg.Limits.Slots * t.cfg.Limits.SlotBytes; slots.Len() < want {
		return nil, fmt.Errorf("%d slots of %d bytes in memory of %d", t.cfg.Limits.Slots,
			t.cfg.Limits.SlotBytes, slots.Len())
	}
	for _, m := range t.memory {
		if m.Dev() == slots.Dev() && m.Ptr() <= slots.Ptr() && slots.Ptr()+uintptr(slots.Len()) <= m.Ptr()+uintptr(m.Len()) {
			return m, nil
		}
	}
	return nil, errors.New("the slots lie in memory that was not registered")
}
