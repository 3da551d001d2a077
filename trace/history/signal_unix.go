//go:build unix

package history

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// signalOf is the signal of a name such as USR2 or SIGUSR2, nil if there is none.
func signalOf(name string) os.Signal {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if s := unix.SignalNum(name); s != 0 {
		return s
	}
	return nil
}
