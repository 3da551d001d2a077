package p2p

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A CardMemory is memory of a rank's GPU that network cards of its host may reach (GPUDirect). It
// is mapped, so making it waits for no kernel. Its contents are undefined.
type CardMemory struct {
	cfg    Config
	at     uintptr
	bytes  int
	dmabuf bool // networks may get the memory by dma-buf
	memory transport.Memory
}

// NewCardMemory makes at least cfg.Bytes. The error is why the GPU or its driver cannot. With dmabuf
// networks may get the memory by dma-buf; without, by address, which takes a kernel module.
func NewCardMemory(cfg Config, dmabuf bool) (m *CardMemory, err error) {
	m = &CardMemory{cfg: cfg, dmabuf: dmabuf}
	err = m.with(func() error {
		for _, a := range []struct {
			attribute cuda.DeviceAttribute
			lacks     string
		}{
			{cuda.AttrVirtualMemorySupported, "has no virtual-memory API"},
			{cuda.AttrRDMASupported, "lets no network cards into its memory"},
			{cuda.AttrRDMAVirtualMemorySupported, "lets no network cards into mapped memory"},
		} {
			v, err := cfg.Driver.DeviceGetAttribute(a.attribute, cfg.Device)
			if err != nil {
				return err
			}
			if v == 0 {
				return errors.New("the GPU " + a.lacks)
			}
		}
		return m.allocate()
	})
	if err != nil {
		return nil, fmt.Errorf("p2p: memory for network cards: %w", err)
	}
	return m, nil
}

func (m *CardMemory) with(f func() error) error { return cuda.Quietly(m.cfg.Driver, m.cfg.Context, f) }

// allocate maps the memory, with the context current.
func (m *CardMemory) allocate() error {
	d, prop := m.cfg.Driver, cuda.AllocationProp{Device: m.cfg.Device, RDMA: true}
	unit, err := d.MemGetAllocationGranularity(prop, cuda.GranularityRecommended)
	if err != nil {
		return err
	}
	m.bytes = (max(1, m.cfg.Bytes) + unit - 1) / unit * unit
	h, err := d.MemCreate(m.bytes, prop)
	if err != nil {
		return err
	}
	if m.at, err = d.MemAddressReserve(m.bytes, 0); err != nil {
		return errors.Join(err, d.MemRelease(h))
	}
	if err = d.MemMap(m.at, m.bytes, h); err != nil {
		return errors.Join(err, d.MemRelease(h), d.MemAddressFree(m.at, m.bytes))
	}
	err = errors.Join(d.MemRelease(h), d.MemSetAccess(m.at, m.bytes, m.cfg.Device)) // the mapping keeps the memory
	if err != nil {
		return errors.Join(err, m.free())
	}
	m.memory.Region = mem.Device(int(m.cfg.Device), m.at, m.bytes)
	// The driver tells whether kernels see the writes of cards in order (CUDA driver API,
	// CUGPUDirectRDMAWritesOrdering). If not, the network flushes.
	ordering, err := d.DeviceGetAttribute(cuda.AttrRDMAWritesOrdering, m.cfg.Device)
	m.memory.Ordered = err == nil && ordering >= cuda.RDMAWritesOrderingOwner
	exports, err := d.DeviceGetAttribute(cuda.AttrDMABufSupported, m.cfg.Device)
	if err == nil && exports != 0 && m.dmabuf {
		m.memory.DMABuf = m.export
	}
	return nil
}

func (m *CardMemory) export() (fd int, offset uint64, err error) {
	err = m.with(func() error {
		fd, err = m.cfg.Driver.MemGetHandleForAddressRange(m.at, m.bytes)
		return err
	})
	return fd, 0, err
}

// Memory is the memory, for a network to register.
func (m *CardMemory) Memory() transport.Memory { return m.memory }

// Bytes is the length of the memory.
func (m *CardMemory) Bytes() int { return m.bytes }

func (m *CardMemory) free() error {
	d := m.cfg.Driver
	return errors.Join(d.MemUnmap(m.at, m.bytes), d.MemAddressFree(m.at, m.bytes))
}

// Close gives the memory back. No kernel and no card may use it any more.
func (m *CardMemory) Close() error { return m.with(m.free) }
