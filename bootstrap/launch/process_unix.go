//go:build unix && !linux

package launch

import "syscall"

// attributes gives a rank a process group of its own, so that a terminal's Ctrl-C
// reaches it only through the launcher.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func stopped(int) bool { return false }
