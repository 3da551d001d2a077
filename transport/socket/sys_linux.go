package socket

import "golang.org/x/sys/unix"

func sysUnacked(fd int) int {
	p := []unix.PollFd{{Fd: int32(fd)}}
	if _, err := unix.Poll(p, 0); err != nil || p[0].Revents != 0 {
		return 0 // reset: nothing will be acknowledged any more
	}
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}
