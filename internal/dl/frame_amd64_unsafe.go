//go:build linux && amd64 && !ringo_nogpu && !ringo_host

package dl

import "unsafe"

// Call calls the function and puts its result into Result, in about half the time of
// Call of this package, and then calls Next without coming back to Go in between.
func (f *Frame) Call() { cgocall(invokeABI0, unsafe.Pointer(f)) }

// cgocall runs a C function on the thread's own stack, as cgo does. It is one of
// the few functions of the runtime that are open to other packages.
// Its argument escapes, so that a Frame is on the heap: a stack may move when C
// calls Go back.
//
//go:linkname cgocall runtime.cgocall
func cgocall(fn uintptr, arg unsafe.Pointer) int32

// invokeABI0 is the address of invoke in frame_amd64.s.
var invokeABI0 uintptr
