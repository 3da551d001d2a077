// The devices of a Machine, their attributes, and access to each other's memory.

package cudaemu

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/simt"
)

type device struct {
	m       *Machine
	ordinal int
	Device
	used    int // bytes
	primary *context
	created []*context // by CtxCreate
	lost    cuda.Result
}

func newDevice(m *Machine, i int, d Device) *device {
	return &device{m: m, ordinal: i, Device: d}
}

// device is the device of a number.
func (c *call) device(d cuda.Device) *device {
	c.refuse(d < 0 || int(d) >= len(c.visible), cuda.ErrInvalidDevice, "device %d of %d", d, len(c.visible))
	dev := c.visible[d]
	c.refuse(dev.lost != 0, dev.lost, "device %d lost", d)
	return dev
}

func (m *Machine) DeviceGetCount() (_ int, err error) {
	c := m.call("cuDeviceGetCount", &err)
	defer c.end()
	c.begin()
	return len(m.visible), nil
}

func (m *Machine) DeviceGet(ordinal int) (cuda.Device, error) {
	d := cuda.Device(ordinal)
	return of(m, "cuDeviceGet", (*call).device, d, func(*call, *device) cuda.Device { return d })
}

func (m *Machine) DeviceGetName(d cuda.Device) (string, error) {
	return of(m, "cuDeviceGetName", (*call).device, d, func(_ *call, d *device) string { return d.Name })
}

func (m *Machine) DeviceGetUuid(d cuda.Device) ([16]byte, error) {
	return of(m, "cuDeviceGetUuid", (*call).device, d, func(_ *call, d *device) [16]byte { return d.UUID })
}

func (m *Machine) DeviceGetPCIBusId(d cuda.Device) (string, error) {
	return of(m, "cuDeviceGetPCIBusId", (*call).device, d, func(_ *call, d *device) string {
		return fmt.Sprintf("0000:%02x:00.0", d.Bus)
	})
}

func (m *Machine) DeviceTotalMem(d cuda.Device) (int, error) {
	return of(m, "cuDeviceTotalMem", (*call).device, d, func(_ *call, d *device) int { return d.Memory })
}

func (m *Machine) DeviceGetAttribute(a cuda.DeviceAttribute, d cuda.Device) (int, error) {
	return of(m, "cuDeviceGetAttribute", (*call).device, d, func(c *call, d *device) int {
		v, ok := d.attribute(a)
		c.refuse(!ok, cuda.ErrInvalidValue, "attribute %d is not emulated", a)
		return v
	})
}

func (m *Machine) DeviceCanAccessPeer(d, peer cuda.Device) (bool, error) {
	return of(m, "cuDeviceCanAccessPeer", (*call).device, d, func(c *call, d *device) bool {
		return d.canAccess(c.device(peer))
	})
}

func (m *Machine) DeviceGetP2PAttribute(a cuda.P2PAttribute, src, dst cuda.Device) (int, error) {
	return of(m, "cuDeviceGetP2PAttribute", (*call).device, src, func(c *call, s *device) int {
		d := c.device(dst)
		c.refuse(s == d, cuda.ErrInvalidDevice, "a device is no peer of itself")
		switch a {
		case cuda.P2PPerformanceRank:
		case cuda.P2PAccessSupported:
			return boolInt(s.canAccess(d))
		case cuda.P2PNativeAtomics:
			link := m.cfg.Link(s.ordinal, d.ordinal)
			c.refuse(link == cuda.UnknownLink, cuda.ErrUnknown, "the link is not to be known")
			return boolInt(s.canAccess(d) && link == cuda.NVLink)
		default:
			c.fail(cuda.ErrInvalidValue, "attribute %d is not emulated", a)
		}
		return 0
	})
}

// number is a device's number for the program, 0 if the device is hidden: the driver answers so for opened memory of a
// hidden device.
func (m *Machine) number(d *device) int { return max(0, slices.Index(m.visible, d)) }

// deviceOf is the device with a UUID, hidden or not, nil if there is none.
func (m *Machine) deviceOf(uuid [16]byte) *device {
	for _, d := range m.devices {
		if d.UUID == uuid {
			return d
		}
	}
	return nil
}

// canAccess reports whether access to a peer's memory can be enabled.
func (d *device) canAccess(peer *device) bool {
	return d != peer && d.m.cfg.Peers(d.ordinal, peer.ordinal)
}

func (d *device) attribute(a cuda.DeviceAttribute) (int, bool) {
	v := d.m.cfg.DriverVersion
	switch a {
	case cuda.AttrMaxThreadsPerBlock:
		return d.Shape.ThreadsPerBlock, true
	case cuda.AttrMaxSharedPerBlock:
		return min(sharedByDefault, d.Shape.SharedPerBlock), true
	case cuda.AttrMaxSharedPerBlockOptin:
		return d.Shape.SharedPerBlock, true
	case cuda.AttrMaxSharedPerMultiprocessor:
		return d.Shape.SharedPerSM, true
	case cuda.AttrMaxThreadsPerMultiprocessor:
		return d.Shape.ThreadsPerSM, true
	case cuda.AttrMaxBlocksPerMultiprocessor:
		return d.Shape.BlocksPerSM, true
	case cuda.AttrMultiprocessorCount:
		return d.Shape.SMs, true
	case cuda.AttrMaxRegistersPerMultiprocessor:
		return simt.RegistersPerSM, true
	case cuda.AttrWarpSize:
		return 32, true
	case cuda.AttrClockRate, cuda.AttrMemoryClockRate:
		return 1_000_000, true // kHz; the emulator counts an instruction a nanosecond
	case cuda.AttrGlobalMemoryBusWidth:
		return 64, true
	case cuda.AttrL2CacheSize:
		return 1 << 20, true
	case cuda.AttrPCIBusID:
		return d.Bus, true
	case cuda.AttrPCIDeviceID, cuda.AttrPCIDomainID:
		return 0, true
	case cuda.AttrComputeCapabilityMajor:
		return d.Major, true
	case cuda.AttrComputeCapabilityMinor:
		return d.Minor, true
	case cuda.AttrAsyncEngineCount:
		return 2, true
	case cuda.AttrUnifiedAddressing, cuda.AttrCooperativeLaunch, cuda.AttrHostRegisterSupported:
		return 1, true
	case cuda.AttrVirtualMemorySupported, cuda.AttrPosixFDSupported:
		return boolInt(v >= since["cuMemCreate"] && sharing), true
	case cuda.AttrStreamValues64, cuda.AttrStreamWaitNOR:
		return boolInt(v >= since["cuStreamWaitValue64"]), true
	case cuda.AttrIPCEventSupported:
		return boolInt(sharing), true
	case cuda.AttrRDMASupported, cuda.AttrRDMAVirtualMemorySupported, cuda.AttrDMABufSupported:
		return boolInt(v >= since["cuMemGetHandleForAddressRange"] && sharing && d.m.cfg.RDMA), true
	case cuda.AttrRDMAWritesOrdering:
		return boolInt(d.m.cfg.RDMA && !d.m.cfg.Flushes) * cuda.RDMAWritesOrderingOwner, true
	case cuda.AttrComputeMode, cuda.AttrManagedMemory, cuda.AttrComputePreemption,
		cuda.AttrMemoryPoolsSupported, cuda.AttrMulticastSupported:
		return 0, true
	case cuda.AttrClusterLaunch:
		return boolInt(d.Major >= 9), true
	}
	n, ok := others[a]
	return n, ok || a > 0 && a < attributes // of the rest the device has nothing
}

// attributes is the first number that is no attribute, as of CUDA 13.
const attributes = 147

// others are attributes that this module does not ask for, and whose value is the same for all devices: those
// of a GPU without a display.
var others = map[cuda.DeviceAttribute]int{
	2: 1024, 3: 1024, 4: 64, // threads of a block, in each dimension
	5: 1<<31 - 1, 6: 65535, 7: 65535, // blocks of a grid
	9: 64 << 10, 11: 1<<31 - 1, 12: 64 << 10, // constant memory, pitch, registers of a block
	14: 512, 30: 512, 51: 32, // alignments of textures and surfaces
	15: 1, 19: 1, 31: 1, // copies beside kernels, mapped host memory, kernels side by side
	35: 1, 78: 1, 79: 1, 80: 1, // no display, priorities, caches
	// float64 at half the speed, registered memory by the host's address, stream memory operations
	87: 2, 91: 1, 92: 1, 93: 1, 98: 1,
	111: 1 << 10, 113: 1, 129: 1, // shared memory of the system, read-only registration, functions by one address
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
