//go:build !js && !wasip1

package command

import "syscall"

// nonblock has the opening of a pipe without a reader fail at once.
const nonblock = syscall.O_NONBLOCK
