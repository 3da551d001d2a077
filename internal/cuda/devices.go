// Devices of the real driver; devices_unsafe.go has the calls that get memory of Go.

package cuda

import "strings"

func (d *libcuda) DeviceGetCount() (int, error) { return d.getInt(cuDeviceGetCount) }

func (d *libcuda) DeviceGet(ordinal int) (Device, error) {
	dev, err := d.getInt(cuDeviceGet, uintptr(ordinal))
	return Device(dev), detail(err, "device %d", ordinal)
}

func (d *libcuda) DeviceGetName(dev Device) (string, error) {
	return d.getText(cuDeviceGetName, dev)
}

func (d *libcuda) DeviceGetPCIBusId(dev Device) (string, error) {
	s, err := d.getText(cuDeviceGetPCIBusId, dev)
	return strings.ToLower(s), err // as /sys has it
}

func (d *libcuda) DeviceTotalMem(dev Device) (int, error) {
	n, err := d.get(cuDeviceTotalMem, uintptr(dev))
	return int(n), err
}

func (d *libcuda) DeviceGetAttribute(a DeviceAttribute, dev Device) (int, error) {
	return d.getInt(cuDeviceGetAttribute, uintptr(a), uintptr(dev))
}

func (d *libcuda) DeviceCanAccessPeer(dev, peer Device) (bool, error) {
	can, err := d.getInt(cuDeviceCanAccessPeer, uintptr(dev), uintptr(peer))
	return can != 0, err
}

func (d *libcuda) DeviceGetP2PAttribute(a P2PAttribute, src, dst Device) (int, error) {
	return d.getInt(cuDeviceGetP2PAttribute, uintptr(a), uintptr(src), uintptr(dst))
}
