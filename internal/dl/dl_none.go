//go:build !linux || !(amd64 || arm64) || ringo_nogpu

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

// Call is never called, since there is no function to call.
func Call(fn uintptr, args ...uintptr) uintptr { panic("dl: " + why) }

// Callback is never called, since there is nothing to hand it to.
func Callback(f func(uintptr)) uintptr { panic("dl: " + why) }

// Call is never called, since there is no function to call.
func (f *Frame) Call() { panic("dl: " + why) }
