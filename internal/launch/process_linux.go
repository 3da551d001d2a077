package launch

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// attributes: a group of its own, so that a terminal's Ctrl-C comes once,
// through us; and no life without us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether a process is stopped by a signal.
func stopped(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}
