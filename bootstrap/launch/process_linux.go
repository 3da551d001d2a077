package launch

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: a group of its own, so that a terminal's Ctrl-C comes once,
// through us; and no life without us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether a child of this process is stopped by a signal. It asks the kernel
// as its parent, and then /proc: a debugger may hide the one, a container the other.
func stopped(pid int) bool {
	var what unix.Siginfo
	if unix.Waitid(unix.P_PID, pid, &what, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil) == nil && what.Signo != 0 {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}
