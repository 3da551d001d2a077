package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: a group of its own, so that a terminal's Ctrl-C comes once,
// through us; and no life without us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether a child of this process is stopped by a signal. It asks
// the kernel as its parent, for /proc may be that of other processes in a container.
func stopped(pid int) bool {
	var what unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &what, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && what.Signo != 0 // none: it runs
}
