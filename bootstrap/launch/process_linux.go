package launch

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives a rank a process group of its own, so that a terminal's Ctrl-C
// reaches it only through the launcher, and kills it when the launcher dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether a child of this process is stopped by a signal. It asks by waitid, and
// then in /proc: a debugger may hide the first answer, a container the second.
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
