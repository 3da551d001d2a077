//go:build unix

package ringotest

import "syscall"

const canStop = true

// stop stops a process, and wake has it go on. A process that has gone is no error.
func stop(pid int) { _ = syscall.Kill(pid, syscall.SIGSTOP) }
func wake(pid int) { _ = syscall.Kill(pid, syscall.SIGCONT) }
