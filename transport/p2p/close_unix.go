//go:build unix

package p2p

import "golang.org/x/sys/unix"

func closeFile(fd int) { unix.Close(fd) }
