package cudaemu

import (
	"encoding/binary"
	"os"

	"github.com/ringo-go/ringo/internal/cuda"
)

// ipcName is the content of an IPCHandle: where a chunk is found, and its identity.
type ipcName struct {
	Magic   uint32
	Kind    uint32
	Host    uint64 // hash of Config.Host
	Machine uint64
	PID     int32
	FD      int32
	ID      uint64 // of the chunk's label
	Size    uint64
	Sum     uint64
}

const ipcMagic = 0x756d6552

func (n *ipcName) sum() uint64 {
	return hash("ipc", uint64(n.Kind), n.Host, n.Machine, uint64(n.PID), uint64(n.FD), n.ID, n.Size)
}

// name is the handle of a chunk.
func (m *Machine) name(k *chunk) (h cuda.IPCHandle) {
	n := ipcName{
		Magic: ipcMagic, Kind: uint32(k.label.kind), Host: hash(m.cfg.Host), Machine: m.id,
		PID: int32(os.Getpid()), FD: int32(k.fd), ID: k.label.id, Size: k.label.size,
	}
	n.Sum = n.sum()
	binary.Encode(h[:], binary.LittleEndian, &n)
	return h
}

// openName maps the chunk of a handle that another process made.
func (c *call) openName(h cuda.IPCHandle, kind chunkKind) (*chunk, *device) {
	var n ipcName
	binary.Decode(h[:], binary.LittleEndian, &n)
	switch {
	case n.Magic != ipcMagic || n.Sum != n.sum() || n.Kind != uint32(kind):
		r := cuda.ErrInvalidValue
		if kind == chunkEvent {
			r = cuda.ErrMapFailed
		}
		c.fail(r, "not a handle of emulated memory or events")
	case n.Host != hash(c.cfg.Host):
		c.fail(cuda.ErrInvalidValue, "a handle of another host")
	case n.Machine == c.id:
		c.fail(cuda.ErrInvalidContext, "a handle of this process: use the pointer or the event itself")
	case !sharing:
		c.fail(cuda.ErrNotSupported, "emulated memory is shared between processes on Linux alone")
	}
	k, err := openOf(int(n.PID), int(n.FD))
	if err == nil && k.label.id != n.ID {
		k.close()
		err = errNoChunk
	}
	c.refuse(err != nil, cuda.ErrInvalidHandle, "freed, or process %d has ended: %v", n.PID, err)
	d := c.deviceOf(k.label.device)
	if d == nil {
		k.close()
		c.fail(cuda.ErrInvalidDevice, "of a device that this process does not have")
	}
	return k, d
}

func (m *Machine) IpcGetMemHandle(p uintptr) (_ cuda.IPCHandle, err error) {
	c := m.call("cuIpcGetMemHandle", &err)
	defer c.end()
	c.beginIn()
	r := m.regions.find(uint64(p))
	c.refuse(r == nil || r.kind != regionAlloc, cuda.ErrInvalidValue, "%#x is not memory of cuMemAlloc", p)
	c.refuse(!sharing, cuda.ErrNotSupported, "emulated memory is shared between processes on Linux alone")
	m.share(r)
	return m.name(r.chunk), nil
}

// IpcOpenMemHandle gives the beginning of the allocation, even if the handle was
// made of a pointer into its middle. Kernels of the current device may touch the
// memory, which must be of that device or of a peer.
func (m *Machine) IpcOpenMemHandle(h cuda.IPCHandle) (_ uintptr, err error) {
	c := m.call("cuIpcOpenMemHandle", &err)
	defer c.end()
	c.beginIn()
	c.unsafe()
	k, d := c.openName(h, chunkAlloc)
	if d != c.ctx.dev && !c.ctx.dev.canAccess(d) {
		k.close()
		c.fail(cuda.ErrPeerAccessUnsupported, "memory of device %d, which device %d cannot access", d.ordinal,
			c.ctx.dev.ordinal)
	}
	for _, r := range m.regions.sorted {
		if r.kind == regionOpened && r.chunk.label.id == k.label.id && r.ctx == c.ctx {
			k.close()
			c.fail(cuda.ErrAlreadyMapped, "opened at %#x already", r.addr)
		}
	}
	r := &region{kind: regionOpened, addr: m.regions.address(k.label.size, false), size: k.label.size,
		dev: d, ctx: c.ctx, chunk: k, granted: 1 << c.ctx.dev.ordinal, foreign: true}
	if err := m.add(r, k.data, k.written); err != nil {
		k.close()
		c.fail(cuda.ErrUnknown, "%v", err)
	}
	m.opened++
	return uintptr(r.addr), nil
}

func (m *Machine) IpcCloseMemHandle(p uintptr) error {
	return m.giveBack("cuIpcCloseMemHandle", p, regionOpened, false, "was not opened, or is closed already")
}

func (m *Machine) IpcGetEventHandle(h cuda.Event) (_ cuda.IPCHandle, err error) {
	c := m.call("cuIpcGetEventHandle", &err)
	defer c.end()
	e := c.onEvent(h)
	c.refuse(e.shared == nil || e.opened, cuda.ErrInvalidHandle, "the event was not made with EventInterprocess here")
	c.refuse(!sharing, cuda.ErrNotSupported, "emulated events are shared between processes on Linux alone")
	return m.name(e.shared), nil
}

func (m *Machine) IpcOpenEventHandle(h cuda.IPCHandle) (_ cuda.Event, err error) {
	c := m.call("cuIpcOpenEventHandle", &err)
	defer c.end()
	c.beginIn()
	k, _ := c.openName(h, chunkEvent)
	e := &event{handle: cuda.Event(m.handles.give(eventHandle)), ctx: c.ctx,
		flags: cuda.EventDisableTiming | cuda.EventInterprocess, shared: k, opened: true,
		by: m.caller(c.ctx.dev)}
	m.events[e.handle] = e
	return e.handle, nil
}
