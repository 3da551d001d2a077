//go:build unix

package programs

import (
	"os"
	"syscall"
	"time"
)

// pause stops a process for a time. It is not waited for, and may end before.
func pause(p *os.Process, d time.Duration) {
	_ = p.Signal(syscall.SIGSTOP)
	time.AfterFunc(d, func() { _ = p.Signal(syscall.SIGCONT) })
}
