// Package dl opens C libraries at run time and calls their functions without cgo.
//
// It works on Linux on amd64 and arm64. With the tag ringo_nogpu or ringo_host, and
// on other systems, Open returns an error that says why it cannot, and the program
// stays statically linked.
package dl

import "errors"

// ErrUnsupported is in every error of Open where this program cannot open libraries at all.
var ErrUnsupported = errors.New("this program cannot open libraries")

// A Library is an opened library. It stays open until the process ends.
type Library uintptr
