package cuda

import (
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo/internal/dl"
)

// A frame holds the arguments and outputs of a call. It is on Go's heap, because C writes
// to it and a goroutine's stack may move. It is used again, so that a call allocates
// nothing.
type frame struct {
	dl.Frame
	out  [2]uintptr
	outs [2]uintptr // the addresses of out
}

var frames = sync.Pool{New: func() any {
	f := new(frame)
	f.outs = [2]uintptr{uintptr(unsafe.Pointer(&f.out[0])), uintptr(unsafe.Pointer(&f.out[1]))}
	return f
}}

// result is the CUresult in a register: an int, so the lower half.
func result(r uintptr) Result { return Result(int32(r)) }

// invoke calls fn with args and, before args[at], pointers to outs outputs. Outputs have
// at most 8 bytes; the rest of shorter ones is zero.
func invoke(fn uintptr, at, outs int, args []uintptr) (v, w uintptr, r Result) {
	f := frames.Get().(*frame)
	f.out = [2]uintptr{}
	n := copy(f.Args[:], args[:at])
	n += copy(f.Args[n:], f.outs[:outs])
	copy(f.Args[n:], args[at:])
	f.Fn = fn
	f.Call()
	v, w, r = f.out[0], f.out[1], result(f.Result)
	frames.Put(f)
	return v, w, r
}

// do is invoke for a function of the driver, with an error.
func (d *libcuda) do(s symbol, at, outs int, args []uintptr) (v, w uintptr, err error) {
	fn, err := d.addr(s)
	if err != nil {
		return 0, 0, err
	}
	v, w, r := invoke(fn, at, outs, args)
	if r != 0 {
		return 0, 0, d.failed(s, r)
	}
	return v, w, nil
}

// call calls a function. No argument may be a pointer to Go memory.
func (d *libcuda) call(s symbol, args ...uintptr) error {
	_, _, err := d.do(s, 0, 0, args)
	return err
}

// get calls a function whose first parameter points to its output, and returns that.
func (d *libcuda) get(s symbol, args ...uintptr) (uintptr, error) {
	v, _, err := d.do(s, 0, 1, args)
	return v, err
}

// made is get for a handle.
func made[T ~uintptr | ~uint64](d *libcuda, s symbol, args ...uintptr) (T, error) {
	v, _, err := d.do(s, 0, 1, args)
	return T(v), err
}

// getInt is get for an int.
func (d *libcuda) getInt(s symbol, args ...uintptr) (int, error) {
	v, _, err := d.do(s, 0, 1, args)
	return int(int32(v)), err
}

// get2 is get for a function with two outputs.
func (d *libcuda) get2(s symbol, args ...uintptr) (v, w uintptr, err error) {
	return d.do(s, 0, 2, args)
}

// getOf is get for a function that takes a handle before the output.
func getOf[T ~uintptr | ~uint64 | ~uint32](d *libcuda, s symbol, handle uintptr) (T, error) {
	v, _, err := d.do(s, 1, 1, []uintptr{handle})
	return T(v), err
}

// get2Of is getOf for a function with two outputs.
func (d *libcuda) get2Of(s symbol, handle uintptr) (v, w uintptr, err error) {
	return d.do(s, 1, 2, []uintptr{handle})
}

// ready calls a query. It returns false for ErrNotReady.
func (d *libcuda) ready(s symbol, handle uintptr) (bool, error) {
	fn, err := d.addr(s)
	if err != nil {
		return false, err
	}
	_, _, r := invoke(fn, 0, 0, []uintptr{handle})
	if r != 0 && r != ErrNotReady {
		return false, d.failed(s, r)
	}
	return r == 0, nil
}

// callPtr is call for arguments that are pointers to Go memory, converted in its
// argument list: they stay valid during the call (go:uintptrescapes). The driver keeps none of them afterwards.
//
//go:uintptrescapes
func (d *libcuda) callPtr(s symbol, args ...uintptr) error {
	fn, err := d.addr(s)
	if err != nil {
		return err
	}
	if r := result(dl.Call(fn, args...)); r != 0 {
		return d.failed(s, r)
	}
	return nil
}

// getNamed is get for a function that takes a handle and a name.
func (d *libcuda) getNamed(s symbol, handle uintptr, name string) (v uintptr, err error) {
	b := append([]byte(name), 0)
	err = d.callPtr(s, uintptr(unsafe.Pointer(&v)), handle, uintptr(unsafe.Pointer(&b[0])))
	return v, err
}

// legacyStream asks cuGetProcAddress for the functions that take stream 0 as the
// legacy default stream.
const legacyStream = 1

// procAddress is the address that cuGetProcAddress gives, or 0. That function tells a
// failure by its result, and since CUDA 12 by a status.
func (d *libcuda) procAddress(name string, version int) uintptr {
	var p, status uintptr
	r := ErrNotFound
	b := append([]byte(name), 0)
	if d.getProcAddress2 != 0 {
		r = result(dl.Call(d.getProcAddress2, uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&p)), uintptr(version),
			legacyStream, uintptr(unsafe.Pointer(&status))))
	} else if d.getProcAddress != 0 {
		r = result(dl.Call(d.getProcAddress, uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&p)), uintptr(version),
			legacyStream))
	}
	if r != 0 {
		return 0
	}
	return p
}
