// Contexts of the real driver.

package cuda

func (d *libcuda) DevicePrimaryCtxRetain(dev Device) (Context, error) {
	c, err := d.get(cuDevicePrimaryCtxRetain, uintptr(dev))
	return Context(c), detail(err, "context of device %d", dev)
}

func (d *libcuda) DevicePrimaryCtxRelease(dev Device) error {
	return d.call(cuDevicePrimaryCtxRelease, uintptr(dev))
}

func (d *libcuda) DevicePrimaryCtxGetState(dev Device) (flags uint32, active bool, err error) {
	f, a, err := d.get2Of(cuDevicePrimaryCtxGetState, uintptr(dev))
	return uint32(f), int32(a) != 0, err
}

func (d *libcuda) CtxPushCurrent(c Context) error { return d.call(cuCtxPushCurrent, uintptr(c)) }

func (d *libcuda) CtxPopCurrent() (Context, error) {
	return made[Context](d, cuCtxPopCurrent)
}

func (d *libcuda) CtxGetCurrent() (Context, error) {
	return made[Context](d, cuCtxGetCurrent)
}

func (d *libcuda) CtxSetCurrent(c Context) error { return d.call(cuCtxSetCurrent, uintptr(c)) }

func (d *libcuda) CtxGetDevice() (Device, error) {
	dev, err := d.getInt(cuCtxGetDevice)
	return Device(dev), err
}

func (d *libcuda) CtxSynchronize() error { return d.call(cuCtxSynchronize) }

func (d *libcuda) CtxEnablePeerAccess(peer Context) error {
	return d.call(cuCtxEnablePeerAccess, uintptr(peer), 0)
}

func (d *libcuda) CtxDisablePeerAccess(peer Context) error {
	return d.call(cuCtxDisablePeerAccess, uintptr(peer))
}

func (d *libcuda) CtxGetStreamPriorityRange() (least, greatest int, err error) {
	l, g, err := d.get2(cuCtxGetStreamPriorityRange)
	return int(int32(l)), int(int32(g)), err
}
