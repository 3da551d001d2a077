//go:build !cgo || !linux || !(amd64 || arm64)

// On this system the library cannot be built: see go.go.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "libcuda: build it as a library, on Linux with cgo: scripts/libcuda")
	os.Exit(2)
}
