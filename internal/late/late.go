//go:build cgo && linux && (amd64 || arm64)

// Package late begins Go's runtime of a C library with the library's first call (late.h). cmd/libnccl and cmd/libcuda
// import it for its C functions, and have the linker put Go's beginning aside by their scripts (*.ld).
//
// The trap: without such a script Go begins on loading, and a process that has loaded the library must not fork.
package late

// #cgo CFLAGS: -Wall
import "C"
