//go:build !windows && (!linux || ringo_portable)

package socket

import "syscall"

const (
	errReset   = syscall.ECONNRESET
	errAborted = syscall.ECONNABORTED
)
