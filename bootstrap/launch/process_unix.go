//go:build unix && !linux

package launch

import "syscall"

// attributes gives a process a process group of its own, unless it stays here, so that a terminal's Ctrl-C reaches it
// only through the launcher.
func attributes(here bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: !here} }

func stopped(int) bool { return false }

// adopt does nothing: orphans are known by their process groups alone.
func adopt() {}

const procfs = false

func children() []orphan { return nil }
