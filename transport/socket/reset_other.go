//go:build !windows && (!linux || ringo_portable)

package socket

import "syscall"

// errReset and errAborted are the system's errors of a connection that was cut off.
const (
	errReset   = syscall.ECONNRESET
	errAborted = syscall.ECONNABORTED
)
