package cuda

import (
	"errors"
	"fmt"
)

// An Answer is the result of a probe.
type Answer uint8

const (
	Unknown Answer = iota // it could not be found out
	No
	Yes
)

func (a Answer) String() string { return [...]string{"unknown", "no", "yes"}[a] }

// A Feature is something that not every driver, device or pair of devices has.
type Feature struct {
	Name  string
	Since int // the first driver that has it, as DriverGetVersion has it

	device func(d Driver, dev Device) (bool, error)
	pair   func(d Driver, dev, peer Device) (bool, error)
	lacks  string // what a device or pair without it lacks
}

// The features that Ringo uses or reports.
var (
	IPCHandles = Feature{Name: "IPC handles of memory", Since: 4010, device: tryIPC,
		lacks: "gives no handles of its memory"}
	MemoryFDs = Feature{Name: "memory as file descriptors", Since: 10020,
		device: attributes(AttrVirtualMemorySupported, AttrPosixFDSupported),
		lacks:  "has no virtual-memory API with file descriptors"}
	StreamValues = Feature{Name: "stream memory operations", Since: 11070, device: attributes(AttrStreamValues64),
		lacks: "has no 64-bit stream memory operations"}
	CooperativeLaunch = Feature{Name: "cooperative launches", Since: 11060, device: attributes(AttrCooperativeLaunch),
		lacks: "has no cooperative launches"}
	ClusterLaunch = Feature{Name: "clusters of blocks", Since: 11080, device: attributes(AttrClusterLaunch),
		lacks: "has no clusters of blocks"}
	MemoryPools = Feature{Name: "memory pools", Since: 11020, device: attributes(AttrMemoryPoolsSupported),
		lacks: "has no memory pools"}
	RDMA = Feature{Name: "direct access of network cards", Since: 11030,
		device: attributes(AttrRDMASupported), lacks: "does not let network cards into its memory"}
	DMABuf = Feature{Name: "memory as a dma-buf", Since: 11070, device: attributes(AttrDMABufSupported),
		lacks: "exports no memory as a dma-buf"}
	UserObjects = Feature{Name: "user objects of graphs", Since: 11030}
	PeerAccess  = Feature{Name: "peer access", Since: 4000, pair: Driver.DeviceCanAccessPeer,
		lacks: "cannot reach each other's memory"}
	PeerAtomics = Feature{Name: "atomics between peers", Since: 8000, pair: peerAtomics,
		lacks: "have no atomics between each other"}
)

// Features are all of the above.
func Features() []Feature {
	return []Feature{IPCHandles, MemoryFDs, StreamValues, CooperativeLaunch, ClusterLaunch, MemoryPools, RDMA, DMABuf,
		UserObjects, PeerAccess, PeerAtomics}
}

// A Finding is the result of Probe, with its reason.
type Finding struct {
	Feature string
	Answer  Answer
	Since   int    // the first driver that has it; 0 unknown
	Reason  string // of No and Unknown
}

func (f Finding) String() string {
	if f.Answer == Yes {
		return f.Feature + ": yes"
	}
	return fmt.Sprintf("%s: %s: %s", f.Feature, f.Answer, f.Reason)
}

// Probe finds out whether a feature works on all of the devices, or between all
// pairs of them; without devices, all that the driver has. The answer No is
// certain, a failure to ask is Unknown. It costs microseconds, except for
// IPCHandles, which makes the device's context if no one has.
func Probe(d Driver, f Feature, devices ...Device) Finding {
	found := Finding{Feature: f.Name, Since: f.Since}
	unknown := func(err error) Finding {
		found.Answer, found.Reason = Unknown, err.Error()
		return found
	}
	no := func(format string, args ...any) Finding {
		found.Answer, found.Reason = No, fmt.Sprintf(format, args...)
		return found
	}

	version, err := d.DriverGetVersion()
	if err != nil {
		return unknown(err)
	}
	if version < f.Since {
		return no("the driver is of CUDA %s, it is there since %s", versionString(version), versionString(f.Since))
	}
	if len(devices) == 0 {
		if devices, err = allDevices(d); err != nil {
			return unknown(err)
		}
	}
	if f.pair != nil && len(devices) < 2 {
		return no("there is one device")
	}

	var failed error // a No elsewhere is better
	for i, dev := range devices {
		if f.device != nil {
			if has, err := f.device(d, dev); err != nil {
				failed = err
			} else if !has {
				return no("device %d %s", dev, f.lacks)
			}
		}
		for j, peer := range devices {
			if f.pair == nil || i == j {
				continue
			}
			if has, err := f.pair(d, dev, peer); err != nil {
				failed = err
			} else if !has {
				return no("devices %d and %d %s", dev, peer, f.lacks)
			}
		}
	}
	if failed != nil {
		return unknown(failed)
	}
	found.Answer = Yes
	return found
}

func allDevices(d Driver) ([]Device, error) {
	n, err := d.DeviceGetCount()
	if err != nil {
		return nil, err
	}
	devices := make([]Device, n)
	for i := range devices {
		if devices[i], err = d.DeviceGet(i); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// attributes makes the test of a feature that a device has if these attributes are all
// non-zero. A driver that returns ErrInvalidValue does not know an attribute, nor the feature.
func attributes(as ...DeviceAttribute) func(Driver, Device) (bool, error) {
	return func(d Driver, dev Device) (bool, error) {
		for _, a := range as {
			v, err := d.DeviceGetAttribute(a, dev)
			if errors.Is(err, ErrInvalidValue) {
				return false, nil
			}
			if err != nil || v == 0 {
				return false, err
			}
		}
		return true, nil
	}
}

// A Link is what carries a device's accesses to the memory of another one.
type Link string

const (
	NoLink      Link = "" // the device cannot access it
	SameGPU     Link = "the same GPU"
	NVLink      Link = "NVLink"
	PCIe        Link = "PCIe"
	UnknownLink Link = "an unknown link" // the driver does not say which
)

// Whole reports whether the link carries lines whole: an aligned line of 128 bytes that a
// warp stores with one instruction, 16 bytes a thread, arrives at once. Over PCIe it may
// arrive in words, in any order.
func (l Link) Whole() bool { return l == SameGPU || l == NVLink }

// LinkBetween is the link between two devices. NVLink is known by its native atomics: PCIe
// has some of them at most. The error is the driver's, of asking whether there is any link.
func LinkBetween(d Driver, dev, peer Device) (Link, error) {
	if dev == peer {
		return SameGPU, nil
	}
	can, err := d.DeviceCanAccessPeer(dev, peer)
	if err != nil || !can {
		return NoLink, err
	}
	switch has, err := peerAtomics(d, dev, peer); {
	case err != nil:
		return UnknownLink, nil
	case has:
		return NVLink, nil
	}
	return PCIe, nil
}

func peerAtomics(d Driver, dev, peer Device) (bool, error) {
	v, err := d.DeviceGetP2PAttribute(P2PNativeAtomics, dev, peer)
	return v != 0, err
}

// tryIPC asks for a handle of some memory, since no attribute tells whether a device gives any.
func tryIPC(d Driver, dev Device) (has bool, err error) {
	c, err := d.DevicePrimaryCtxRetain(dev)
	if err != nil {
		return false, err
	}
	defer d.DevicePrimaryCtxRelease(dev)
	err = With(d, c, func() error {
		p, err := d.MemAlloc(1)
		if err != nil {
			return err
		}
		defer d.MemFree(p)
		_, err = d.IpcGetMemHandle(p)
		has = err == nil
		if errors.Is(err, ErrNotSupported) || errors.Is(err, ErrInvalidValue) {
			return nil // p is memory, so the device has no handles
		}
		return err
	})
	return has, err
}
