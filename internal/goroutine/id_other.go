//go:build (!amd64 && !arm64) || purego

package goroutine

import (
	"bytes"
	"runtime"
	"strconv"
)

// ID identifies the calling goroutine among those that live. It is the runtime's number of it.
func ID() uintptr {
	b := make([]byte, 64)
	number := bytes.Fields(b[:runtime.Stack(b, false)])[1] // goroutine 12 [running]:
	n, _ := strconv.ParseUint(string(number), 10, 64)
	return uintptr(n)
}
