package cuda

import "runtime"

// With calls f on this OS thread with c as the current context, and puts the
// thread's own context back afterwards.
func With(d Driver, c Context, f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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
