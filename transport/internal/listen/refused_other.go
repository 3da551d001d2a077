//go:build !windows

package listen

import "syscall"

const errRefused = syscall.ECONNREFUSED
