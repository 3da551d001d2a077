package launch

import "syscall"

// attributes: a group of its own, so that a terminal's Ctrl-C comes once,
// through us; and no life without us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
