//go:build linux && (amd64 || arm64) && !ringo_nogpu && !ringo_host

package dl

import (
	"fmt"
	"runtime"

	"github.com/ebitengine/purego"
)

// Open loads a library by its file name, which the dynamic linker looks for as
// usual, or by its path. Its symbols stay out of the way of other libraries.
func Open(name string) (Library, error) {
	runtime.LockOSThread() // the linker keeps the text of an error for each thread
	defer runtime.UnlockOSThread()
	h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, fmt.Errorf("open library: %w", err)
	}
	return Library(h), nil
}

// Sym is the address of a symbol.
func (l Library) Sym(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := purego.Dlsym(uintptr(l), name)
	if err != nil {
		return 0, fmt.Errorf("find symbol: %w", err)
	}
	return p, nil
}

// Call calls a C function with at most 32 integers and pointers and gives its
// integer result, whose upper half is garbage where C's is an int. It takes 60
// to 110 ns and allocates nothing itself. A pointer converted to uintptr in the
// argument list stays valid during the call, as for syscall.Syscall.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// Callback is a C function void (*)(void *) that calls f, on whatever thread.
// It is never freed, and a process can have about 2000.
func Callback(f func(uintptr)) uintptr {
	return purego.NewCallback(func(p uintptr) { f(p) })
}

// Function is a C function that calls f, whatever its integers, pointers and floats, on
// whatever thread. Its result is f's integer, if it has one. It is never freed; see Callback.
func Function(f any) uintptr { return purego.NewCallback(f) }
