//go:build unix

package setting

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Signal is the signal of a name such as USR2 or SIGUSR2, nil if there is none or none that a program can catch.
func Signal(name string) os.Signal {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if s := unix.SignalNum(name); !slices.Contains([]unix.Signal{0, unix.SIGKILL, unix.SIGSTOP}, s) {
		return s
	}
	return nil
}
