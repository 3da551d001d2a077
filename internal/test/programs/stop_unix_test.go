//go:build unix

package programs

import (
	"os"
	"syscall"
)

const stops = true

func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) { _ = p.Signal(syscall.SIGCONT) } // it may have ended
