//go:build unix

package check

import "golang.org/x/sys/unix"

// limitSegments bounds the payload of packets of a socket that is not connected.
func limitSegments(fd uintptr, most int) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, most)
}
