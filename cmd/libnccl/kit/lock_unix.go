//go:build unix && !solaris && !aix

package kit

import (
	"errors"
	"os"
	"syscall"
)

// lock reports whether f was free, and is locked now until it is closed or the process ends.
func lock(f *os.File) (free bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
