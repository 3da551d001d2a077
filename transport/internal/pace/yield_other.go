//go:build !linux

package pace

import "runtime"

// yield lets another goroutine have the core.
func yield() { runtime.Gosched() }
