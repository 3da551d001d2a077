package ibverbs

import (
	"os"

	"golang.org/x/sys/unix"
)

// duplicate is another descriptor of the same file, which does not block.
func duplicate(fd int32) (uintptr, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
	}
	if err := nonblocking(n); err != nil {
		unix.Close(n)
		return 0, err
	}
	return uintptr(n), nil
}

func nonblocking(fd int) error {
	return os.NewSyscallError("fcntl O_NONBLOCK", unix.SetNonblock(fd, true))
}
