package cuda

import (
	"runtime"
	"unsafe"
)

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

// ArgsOf is the bytes of a struct of kernel parameters. Go lays out fixed-size
// fields as C and PTX do; the struct must hold no Go pointers. The driver wants
// the exact size of the kernel's parameters (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
// otherwise), so where the struct has padding at its end and the parameters are
// not one struct in the kernel too, cut it off.
func ArgsOf[T any](args *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(args)), unsafe.Sizeof(*args))
}
