//go:build !linux || !(amd64 || arm64) || ringo_nogpu || ringo_host

package dl

import "fmt"

// Open says why it opens nothing.
func Open(name string) (Library, error) {
	return 0, fmt.Errorf("open library %s: %w: %s", name, ErrUnsupported, why)
}

// Sym is never called, since there is no Library.
func (l Library) Sym(name string) (uintptr, error) {
	return 0, fmt.Errorf("find symbol %s: %w: %s", name, ErrUnsupported, why)
}

// noFunction is the result of every call here. No library opens in this build, so the calls are never reached.
const noFunction = ^uintptr(0)

// Call is never called.
func Call(fn uintptr, args ...uintptr) uintptr { return noFunction }

// Callback is never called.
func Callback(f func(uintptr)) uintptr { return noFunction }

// Function is never called.
func Function(f any) uintptr { return noFunction }

// Call is never called.
func (f *Frame) Call() { f.Result = noFunction }
