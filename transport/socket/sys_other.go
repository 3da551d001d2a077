//go:build !linux

package socket

import "golang.org/x/sys/unix"

func sysRead(fd int, b []byte) (int, error)  { return unix.Read(fd, b) }
func sysWrite(fd int, b []byte) (int, error) { return unix.Write(fd, b) }
func sysReadv(fd int, b, b2 []byte) (int, error) {
	return unix.Readv(fd, [][]byte{b, b2})
}

// sysUnacked does not matter where nothing is lent and no credits come back.
func sysUnacked(int) int { return 0 }
