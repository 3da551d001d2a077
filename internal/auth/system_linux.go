package auth

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser reports whether the other end of a Unix socket is a process of this
// process's user.
func sameUser(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(peer.Uid) == os.Geteuid()
	})
	return err == nil && same
}
