// Package dl opens C libraries at run time and calls their functions without cgo.
//
// It does so on Linux on amd64 and arm64, unless the program was built with the
// tag ringo_nogpu: then, and on other systems, Open says why it does not, and
// nothing of it makes the program dynamically linked.
package dl

import "errors"

// ErrUnsupported is in every error of Open where this program cannot open libraries at all.
var ErrUnsupported = errors.New("this program cannot open libraries")

// A Library is an opened library. It stays open until the process ends.
type Library uintptr
