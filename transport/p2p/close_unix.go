//go:build unix

package p2p

import "golang.org/x/sys/unix"

// closeFile closes a descriptor that the driver or a peer gave.
func closeFile(fd int) { unix.Close(fd) }
