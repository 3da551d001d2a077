package verbs

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// allocate maps n bytes, all zero.
func allocate(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	return b, os.NewSyscallError("mmap", err)
}

func closeFD(fd int) { _ = unix.Close(fd) }

func free(b []byte) { _ = unix.Munmap(b) }

// A sleeper waits for one of some descriptors to become readable.
type sleeper struct{ fds []unix.PollFd }

func (s *sleeper) add(fd int) { s.fds = append(s.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}) }

// readable reports whether descriptor i was readable after sleep.
func (s *sleeper) readable(i int) bool { return s.fds[i].Revents != 0 }

// sleep waits for at most d.
func (s *sleeper) sleep(d time.Duration) { _, _ = unix.Poll(s.fds, int(d.Milliseconds())) }
