//go:build unix && !solaris && !aix

package kit

import (
	"errors"
	"io/fs"
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

// mine reports whether a file is this user's.
func mine(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
