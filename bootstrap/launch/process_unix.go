//go:build unix && !linux

package launch

import "syscall"

// attributes: a group of its own, so that a terminal's Ctrl-C comes once,
// through us.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func stopped(int) bool { return false }
