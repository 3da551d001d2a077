package cuda

import (
	"errors"
	"runtime"
)

// With calls f on this OS thread with c as the current context, and puts the
// thread's own context back afterwards.
func With(d Driver, c Context, f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if now, err := d.CtxGetCurrent(); err == nil && now == c { // mostly it is
		return f()
	}
	return Within(d, c, f)
}

// Within is With where another context is current on this OS thread, to which the caller has locked its goroutine.
func Within(d Driver, c Context, f func() error) (err error) {
	if err := d.CtxPushCurrent(c); err != nil {
		return err
	}
	defer func() {
		if _, e := d.CtxPopCurrent(); err == nil {
			err = e
		}
	}()
	return f()
}

// Quietly is With for work that must not be part of a capture: a stream of this
// thread may be capturing meanwhile, and f may allocate, load and wait.
func Quietly(d Driver, c Context, f func() error) error {
	return With(d, c, func() error {
		mode, err := d.ThreadExchangeStreamCaptureMode(CaptureRelaxed)
		if err != nil {
			return err
		}
		err = f()
		_, back := d.ThreadExchangeStreamCaptureMode(mode)
		return errors.Join(err, back)
	})
}

// Write copies src to device memory and returns when work on any stream sees it.
// MemcpyHtoD alone returns as soon as it has read src, and only the legacy stream's work
// is ordered after the copy.
func Write(d Driver, dst uintptr, src []byte) error {
	if err := d.MemcpyHtoD(dst, src); err != nil {
		return err
	}
	return d.StreamSynchronize(StreamLegacy)
}

// Capability is the compute capability of a device: 90 for 9.0.
func Capability(d Driver, dev Device) (int, error) {
	major, err := d.DeviceGetAttribute(AttrComputeCapabilityMajor, dev)
	if err != nil {
		return 0, err
	}
	minor, err := d.DeviceGetAttribute(AttrComputeCapabilityMinor, dev)
	return 10*major + minor, err
}

// After makes stream s wait for the work that is now on the other stream, by event e.
func After(d Driver, s, other Stream, e Event) error {
	if err := d.EventRecord(e, other); err != nil {
		return err
	}
	return d.StreamWaitEvent(s, e, 0)
}
