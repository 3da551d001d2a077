package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives a process a process group of its own, unless it stays here, so that a terminal's Ctrl-C reaches it
// only through the launcher. It dies with its parent.
func attributes(here bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !here, Pdeathsig: syscall.SIGKILL}
}

// adopt makes orphans of ranks children of this process.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// procfs is whether the children of a process can be looked up. A keeper needs /proc to start.
const procfs = true

// A stat is what /proc/PID/stat says.
type stat struct {
	state                  byte
	parent, group, session int
}

func statOf(pid int) (s stat, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name before may have blanks
	if len(f) < 4 {
		return s, false
	}
	s.state = f[0][0]
	for i, n := range []*int{&s.parent, &s.group, &s.session} {
		if *n, err = strconv.Atoi(f[1+i]); err != nil {
			return s, false
		}
	}
	return s, true
}

// stopped reports whether a process is stopped by a signal.
func stopped(pid int) bool {
	s, ok := statOf(pid)
	return ok && (s.state == 'T' || s.state == 't')
}

// children is the children of this process that it has not waited for.
func children() (all []orphan) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(0)
	own := os.Getpid()
	self, _ := unix.Getsid(0)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := statOf(pid); ok && s.parent == own {
			all = append(all, orphan{leftover{pid, commandOf(pid)}, s.group, s.session != self, s.state == 'Z'})
		}
	}
	return all
}

// maxCommand is how much of a command line a message has.
const maxCommand = 60

// commandOf is the command line of a process, for a message.
func commandOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if len(b) == 0 {
		b, _ = os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	}
	text := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
	if len(text) > maxCommand {
		text = text[:maxCommand] + "…"
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted // control characters are no terminal's business
	}
	return text
}
