//go:build !windows

package listen

import "syscall"

// errRefused is the system's error of a dial where nobody listens.
const errRefused = syscall.ECONNREFUSED
